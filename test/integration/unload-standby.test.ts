import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions } from '../../src/index.ts'
import { type PostgresServer, startPostgres15, startStandby15 } from '../support/services.ts'

const ROWS = 1000
/** Two seconds' work: long enough that a VACUUM comes between. */
const SLOW = 'SELECT id, pad FROM t, LATERAL (SELECT pg_sleep(0.002 + 0 * id)) s ORDER BY id'

let primary: PostgresServer
let standby: PostgresServer
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-standby-'))
  primary = await startPostgres15()
  await primary.psql(
    `CREATE TABLE t (id int, pad text); INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, ${ROWS}) i`,
  )
  standby = await startStandby15(primary)
})
afterAll(async () => {
  await standby.stop()
  await primary.stop()
  rmSync(folder, { recursive: true })
})

async function replayed(): Promise<void> {
  const lsn = await primary.psql('SELECT pg_current_wal_lsn()')
  const there = `SELECT pg_last_wal_replay_lsn() >= '${lsn}'::pg_lsn`
  for (let tries = 0; tries < 200 && (await standby.psql(there)) !== 't'; tries += 1) await delay(50)
}

/** Every row anew, and the old ones removed: who reads those on the standby is in the way of its replay. */
const change = async (): Promise<void> => {
  await primary.psql(`UPDATE t SET pad = repeat('y', 100)`)
  await primary.psql('VACUUM t')
}

const unload = (name: string, options: CopyOptions) =>
  copy({
    source: standby.url,
    sink: join(folder, name),
    options: { query: SLOW, ...options },
    env: {},
    stateDir: join(folder, 'state'),
  })

const isReading = async (): Promise<boolean> =>
  (await standby.psql(
    `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%pg_sleep%' AND state = 'active'`,
  )) === '1'

describe('a standby whose replay ends the snapshot that is read', () => {
  it('is read anew, with a snapshot of then, and each row is there once', async () => {
    await replayed()
    const job = unload('once.csv', { retryFor: 20_000 })
    while (!(await isReading())) await delay(20)
    await change()
    const { warnings, ...result } = await job
    expect(result).toMatchObject({ status: 'done', runs: 1, rowsRead: ROWS, rowsWritten: ROWS })
    expect(result.retries).toBeGreaterThan(0)
    expect(warnings).toEqual([])
    expect(readdirSync(folder).toSorted()).toEqual(['once.csv', 'state'])
    const lines = readFileSync(join(folder, 'once.csv'), 'utf8').trimEnd().split('\n').slice(1)
    const rows = Array.from({ length: ROWS }, (_, i) => `${i + 1},${'y'.repeat(100)}`)
    expect(lines).toEqual(rows)
  })

  it('is told where that does not end, with what to do, and no file is there', async () => {
    await replayed()
    const job = unload('never.csv', { retryFor: 1_000 })
    let over = false
    void job.finally(() => (over = true))
    while (!over) {
      if (await isReading()) await change()
      await delay(20)
    }
    const { error, status, retries } = await job
    expect({ status, code: error?.code, message: error?.message }).toEqual({
      status: 'failed',
      code: 'SLUICE_SERVER_GONE',
      message: expect.stringContaining('snapshot is lost') as string,
    })
    expect(retries).toBeGreaterThan(0)
    expect(error?.hint).toContain('max_standby_streaming_delay')
    expect(readdirSync(folder)).not.toContain('never.csv')
  })
})
