import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { JobResult } from '../../src/core/job.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { type PostgresServer, startPostgres15 } from '../support/services.ts'
import { until } from './bytes-place.ts'
import { cli, ended, startCli } from './cli-process.ts'

/** About 42 MB: ten extents and more, so that three lanes have work. */
const ROWS = 1_200_000
/** Of id and name; the same on both sides. */
const SUMS = `SELECT count(*), count(DISTINCT id), sum(hashtext(id || name)::bigint) FROM t`

let server: PostgresServer
let proxy: FaultProxy
let folder = ''
let expected = ''
let place = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-kill-'))
  const rows = Array.from({ length: ROWS }, (_, i) => `${i},name of the row ${(i * 7919) % ROWS}\n`)
  writeFileSync(join(folder, 'in.csv'), `id,name\n${rows.join('')}`)
  server = await startPostgres15()
  proxy = await startFaultProxy(server)
  await server.psql('CREATE TABLE t (id int, name text)')
  await server.psql(
    `INSERT INTO t SELECT i, 'name of the row ' || (i::bigint * 7919) % ${ROWS} FROM generate_series(0, ${ROWS - 1}) i`,
  )
  expected = await server.psql(SUMS)
})
afterAll(async () => {
  await proxy.stop()
  await server.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(async () => {
  place = mkdtempSync(join(folder, 'place-'))
  await server.psql('TRUNCATE t')
  await server.psql('DROP SCHEMA IF EXISTS sluice CASCADE')
})
afterEach(() => proxy.clear())

const options = () => ({ cwd: place, env: { XDG_STATE_HOME: join(place, 'state'), PGPASSWORD: server.password } })
const sink = () => `postgres://${server.user}@127.0.0.1:${proxy.port}/postgres?sslmode=disable&table=t`
const load = (...more: string[]) => ['copy', join(folder, 'in.csv'), sink(), '--concurrency', '3', '--json', ...more]
const lastJson = (text: string): JobResult => JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as JobResult

async function run(words: readonly string[]): Promise<{ code: number | null; result: JobResult; stderr: string }> {
  const { code, stdout, stderr } = await cli(words, options())
  return { code, result: lastJson(stdout), stderr }
}

/** Id of the one job of the state folder. */
async function onlyJob(): Promise<string> {
  const { stdout } = await cli(['jobs', '--json'], options())
  return (JSON.parse(stdout) as { jobs: { jobId: string }[] }).jobs[0]?.jobId ?? ''
}

async function killWhen(words: readonly string[], ready: () => Promise<unknown>): Promise<void> {
  const child = startCli(words, options())
  const end = ended(child)
  await ready()
  child.kill('SIGKILL')
  await end
  proxy.cutAll()
  proxy.clear()
}

/** No backend of ours is left: what it did is decided. */
async function settled(): Promise<void> {
  const ours = `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sluice %'`
  await until(async () => (await server.psql(ours)) === '0')
}

async function expectOnce(): Promise<void> {
  expect(await server.psql(SUMS)).toBe(expected)
}

async function expectNothingOfOurs(): Promise<void> {
  await settled()
  expect(
    await server.psql(
      `SELECT count(*) FROM pg_class WHERE relname NOT LIKE 'pg\\_%' AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)`,
    ),
  ).toBe('1')
}

async function resumeIsWhole(id: string): Promise<JobResult> {
  const { code, result, stderr } = await run(['resume', id, '--json'])
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  await expectOnce()
  expect(result).toMatchObject({ status: 'done', rowsRead: ROWS, rowsWritten: ROWS, runs: 2 })
  return result
}

describe('--commit job, killed and resumed', () => {
  it.each([1, 2, 3])('at COMMIT %d of 3, which never arrives', async (k) => {
    const seen = proxy.counters.connections
    // The main connection is the first of a run. Which lane is committed when is not said: the first COMMIT is that of any.
    const rule = { from: 'client', at: 'COMMIT\0', when: 'before', action: 'stall' } as const
    proxy.add(k === 1 ? rule : { ...rule, connection: seen + 1 + k })
    const faults = proxy.counters.faults
    await killWhen(load(), () => proxy.until((c) => c.faults > faults))
    await settled()
    const before = Number(await server.psql('SELECT count(*) FROM t'))
    expect(k === 1 ? before === 0 : before < ROWS).toBe(true)
    await resumeIsWhole(await onlyJob())
    await expectNothingOfOurs()
  })

  it.each([1, 2, 3])('at COMMIT %d of 3, whose answer never arrives', async (k) => {
    const seen = proxy.counters.connections
    proxy.add({ from: 'client', at: 'COMMIT\0', when: 'after', action: 'stall', connection: seen + 1 + k })
    const faults = proxy.counters.faults
    await killWhen(load(), () => proxy.until((c) => c.faults > faults))
    await resumeIsWhole(await onlyJob())
    await expectNothingOfOurs()
  })

  it('at ten moments', async () => {
    for (let round = 0; round < 10; round += 1) {
      rmSync(join(place, 'state'), { recursive: true, force: true })
      await server.psql('TRUNCATE t')
      await killWhen(load(), () => delay(150 + round * 110))
      const id = await onlyJob()
      if (id === '') continue
      const { code, stderr } = await run(['resume', id, '--json'])
      expect({ round, code, stderr: code === 0 ? '' : stderr }).toEqual({ round, code: 0, stderr: '' })
      await expectOnce()
    }
  })
})

describe('--commit job, a COMMIT whose answer is lost', () => {
  it.each(['before', 'after'] as const)('%s it arrived: the job asks, and goes on', async (when) => {
    const seen = proxy.counters.connections
    proxy.add({
      from: 'client',
      at: 'COMMIT\0',
      when,
      action: when === 'after' ? 'lose-answer' : 'cut',
      connection: seen + 3,
    })
    const { code, stderr } = await run(load())
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    await expectOnce()
    await expectNothingOfOurs()
  })
})

describe('--commit partition, killed and resumed', () => {
  const ledger = () => load('--commit', 'partition')

  it('at ten moments; what is committed is not written again', async () => {
    for (let round = 0; round < 10; round += 1) {
      rmSync(join(place, 'state'), { recursive: true, force: true })
      await server.psql('TRUNCATE t')
      await server.psql('DROP SCHEMA IF EXISTS sluice CASCADE')
      await killWhen(ledger(), () => delay(150 + round * 110))
      await settled()
      const id = await onlyJob()
      if (id === '') continue
      await server.psql(`CREATE TABLE was AS SELECT xmin::text AS xid, count(*) FROM t GROUP BY 1`)
      const { code, stderr } = await run(['resume', id, '--json'])
      expect({ round, code, stderr: code === 0 ? '' : stderr }).toEqual({ round, code: 0, stderr: '' })
      await expectOnce()
      const again = `SELECT count(*) FROM was WHERE count <> (SELECT count(*) FROM t WHERE xmin::text = was.xid)`
      expect(await server.psql(again)).toBe('0')
      await server.psql('DROP TABLE was')
    }
  })

  it('after the last COMMIT, before the result is written', async () => {
    // The server's answer to what ends the job in the ledger.
    proxy.add({ from: 'server', at: 'UPDATE 1\0', when: 'before', action: 'stall' })
    const faults = proxy.counters.faults
    await killWhen(ledger(), async () => {
      await proxy.until((c) => c.faults > faults)
      await until(async () => (await server.psql(`SELECT state FROM sluice.jobs`)) === 'done')
    })
    expect((await resumeIsWhole(await onlyJob())).bytesWritten).toBeGreaterThan(0)
  })

  it('from another machine, which has no state folder', async () => {
    proxy.setRate(12_000_000)
    await killWhen(ledger(), () =>
      until(async () => (await server.psql('SELECT count(*) FROM t').catch(() => '0')) !== '0'),
    )
    const id = await onlyJob()
    const state = join(place, 'elsewhere')
    const refused = await run([...ledger(), '--state-dir', state])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('[SLUICE_JOB_EXISTS]')
    expect(refused.stderr).toContain(id)
    const { code, stderr } = await run([...ledger(), '--state-dir', state, '--job-id', id, '--resume'])
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    await expectOnce()
    // Done is done, from wherever it is asked.
    const again = await run([...ledger(), '--state-dir', join(place, 'third'), '--job-id', id, '--resume'])
    expect(again.code).toBe(0)
    await expectOnce()
  })
})

describe('a server that goes away in mid-load', () => {
  const started = (n: number) => () => proxy.counters.bytesFromClient > n

  it('and comes back: retried, each row once', async () => {
    proxy.setRate(20_000_000)
    const seen = proxy.counters.bytesFromClient
    const job = run(load('--retry-for', '1m'))
    await until(started(seen + 8_000_000))
    await server.kill()
    await delay(2000)
    await server.restart()
    proxy.setRate(null)
    const { code, stderr, result } = await job
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    expect(result.retries).toBeGreaterThan(0)
    await expectOnce()
  })

  it('and stays away: 4 with the command to resume', async () => {
    proxy.setRate(20_000_000)
    const seen = proxy.counters.bytesFromClient
    const job = run(load('--retry-for', '5s'))
    await until(started(seen + 8_000_000))
    await server.kill()
    const { code, result } = await job
    await server.restart()
    expect({ code, status: result.status }).toEqual({ code: 4, status: 'stopped' })
    expect(result.resumeCommand).toBe(`sluice resume ${result.jobId}`)
    expect(await server.psql('SELECT count(*) FROM t')).toBe('0')
    proxy.setRate(null)
    await resumeIsWhole(result.jobId)
  })

  it('for one lane only: retried, each row once', async () => {
    proxy.setRate(20_000_000)
    const seen = proxy.counters.bytesFromClient
    const job = run(load())
    await until(started(seen + 8_000_000))
    await server.psql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'sluice %' AND query LIKE 'COPY%' LIMIT 1`,
    )
    proxy.setRate(null)
    const { code, stderr } = await job
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    await expectOnce()
  })
})
