import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { copy, type CopyOptions } from '../../src/index.ts'
import { type HttpFaultProxy, startHttpFaultProxy } from '../support/fault-proxy-http.ts'
import { freshBucket, freshDatabase, psql, s3Do, sharedServices } from '../support/services.ts'

const store = sharedServices().versitygw
/** Each of two partitions is an upload of two parts of 5 MiB. */
const PARTITION_ROWS = 60_000

let database: Awaited<ReturnType<typeof freshDatabase>>
let proxy: HttpFaultProxy
let folder: string
let bucket: string
beforeAll(async () => {
  database = await freshDatabase(sharedServices().postgres18, 'unload_faults')
  await psql(
    database,
    `CREATE TABLE t (id int, pad text) PARTITION BY RANGE (id);
     CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (${PARTITION_ROWS});
     CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (${PARTITION_ROWS}) TO (${2 * PARTITION_ROWS});
     INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(0, ${2 * PARTITION_ROWS - 1}) i`,
  )
})
afterAll(() => database.drop())
beforeEach(async () => {
  bucket = await freshBucket(store, 'faults')
  proxy = await startHttpFaultProxy(store)
  folder = mkdtempSync(join(tmpdir(), 'sluice-faults-'))
})
afterEach(async () => {
  await proxy.stop()
  rmSync(folder, { recursive: true })
})

const unload = (options: CopyOptions = {}, o: { newJob?: boolean } = {}) =>
  copy({
    ...o,
    source: `${database.url}?table=t`,
    sink: `s3://${bucket}/p/`,
    options: { sinkFormat: 'csv', partSize: 5 * 1024 * 1024, retryFor: 1_000, ...options },
    env: proxy.env,
    stateDir: join(folder, 'state'),
  })

async function contents(query: Record<string, string>, tag: string): Promise<string[]> {
  const { body } = await s3Do(store, { method: 'GET', path: `/${bucket}`, query })
  return [...body.toString().matchAll(new RegExp(`<${tag}>([^<]+)</${tag}>`, 'g'))].map((match) => match[1] ?? '')
}
const keys = (): Promise<string[]> => contents({ 'list-type': '2' }, 'Key')

async function expectNothing(): Promise<void> {
  expect([await keys(), await contents({ uploads: '' }, 'UploadId')]).toEqual([[], []])
  // A backend hears of its client's end in its own time.
  const sessions = `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sluice%'`
  await expect.poll(() => psql(database, sessions), { timeout: 10_000 }).toBe('0')
}

const refusal = (status: number, code: string) =>
  ({ status, body: `<Error><Code>${code}</Code><Message>no</Message></Error>` }) as const

describe('a bucket that does not take what is unloaded', () => {
  it('read-only: an error at once that says what is refused, and nothing is left', async () => {
    proxy.add({ method: 'POST', url: /uploads/, times: Infinity, answer: refusal(403, 'AccessDenied') })
    proxy.add({ method: 'PUT', times: Infinity, answer: refusal(403, 'AccessDenied') })
    const { status, error } = await unload()
    expect({ status, code: error?.code }).toEqual({ status: 'failed', code: 'SLUICE_ACCESS_DENIED' })
    expect(error?.where).toContain(`s3://${bucket}/p/`)
    await expectNothing()
  })

  it('full: stopped once --retry-for is over, with nothing left; the same once there is space is whole', async () => {
    const full = proxy.add({
      method: 'PUT',
      url: /partNumber/,
      nth: 3,
      times: Infinity,
      answer: refusal(507, 'InsufficientStorage'),
    })
    const { status, error, resumeCommand } = await unload()
    expect({ status, code: error?.code }).toEqual({ status: 'stopped', code: 'SLUICE_DISK_FULL' })
    expect(resumeCommand).toContain('sluice resume')
    await expectNothing()
    full()
    expect(await unload({}, { newJob: true })).toMatchObject({ status: 'done', rowsWritten: 2 * PARTITION_ROWS })
    expect(await keys()).toHaveLength(2)
  })
})

describe('files that cannot all be made visible', () => {
  const refuseSecond = () =>
    proxy.add({ method: 'POST', url: /uploadId=/, nth: 2, times: Infinity, answer: refusal(403, 'AccessDenied') })

  it('are taken back where they replaced nothing', async () => {
    refuseSecond()
    const { status, error, outputs } = await unload()
    expect({ status, code: error?.code, outputs }).toEqual({
      status: 'failed',
      code: 'SLUICE_ACCESS_DENIED',
      outputs: [],
    })
    await expectNothing()
  })

  it('are told where some replaced what was there, which the others still are', async () => {
    const names = ['p/t-00001.csv', 'p/t-00002.csv']
    for (const key of names) await s3Do(store, { method: 'PUT', path: `/${bucket}/${key}`, body: 'old' })
    refuseSecond()
    const { status, warnings } = await unload({ ifExists: 'overwrite' })
    expect(status).toBe('failed')
    expect(warnings.join()).toContain('1 of 2 files of the output were made visible before this ended')
    const bodies = await Promise.all(
      names.map(async (key) => (await s3Do(store, { method: 'GET', path: `/${bucket}/${key}` })).body.toString()),
    )
    expect(bodies.map((body) => body === 'old')).toEqual([false, true])
    expect(await contents({ uploads: '' }, 'UploadId')).toEqual([])
  })
})
