import { setTimeout as delay } from 'node:timers/promises'
import { parquetReadObjects } from 'hyparquet'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startHttpFaultProxy, type HttpFaultProxy, type HttpFaultRule } from '../support/fault-proxy-http.ts'
import { freshBucket, freshDatabase, psql, sharedServices } from '../support/services.ts'
import {
  hash,
  isThere,
  jobIds,
  keysIn,
  killAt,
  makePlace,
  objectOf,
  type Place,
  putObject,
  uploadsIn,
} from './bytes-place.ts'
import { ended } from './cli-process.ts'

const store = sharedServices().versitygw
/** Three partitions, each a little more than a part of 5 MiB in every format, so that each file is an upload of two parts. */
const PARTITION_ROWS = 42_000
const ROWS = 3 * PARTITION_ROWS
const FORMATS = ['csv', 'jsonl', 'parquet'] as const
type Format = (typeof FORMATS)[number]

let database: Awaited<ReturnType<typeof freshDatabase>>
let proxy: HttpFaultProxy
let place: Place
let bucket: string
beforeAll(async () => {
  database = await freshDatabase(sharedServices().postgres18, 'killunload')
  const parts = [0, 1, 2].map(
    (k) =>
      `CREATE TABLE people_${k} PARTITION OF people FOR VALUES FROM (${k * PARTITION_ROWS}) TO (${(k + 1) * PARTITION_ROWS});`,
  )
  await psql(
    database,
    `CREATE TABLE people (id int, name text) PARTITION BY RANGE (id); ${parts.join(' ')}
     INSERT INTO people SELECT i, md5(i::text) || md5('a' || i) || md5('b' || i) || md5('c' || i) FROM generate_series(0, ${ROWS - 1}) i`,
  )
})
afterAll(() => database.drop())
beforeEach(async () => {
  bucket = await freshBucket(store, 'killunload')
  proxy = await startHttpFaultProxy(store)
  place = makePlace({ env: { ...proxy.env, PGPASSWORD: database.password } })
})
afterEach(async () => {
  await proxy.stop()
  place.remove()
})

const source = (): string => `${database.url}?table=people`
const FLAGS = ['--part-size', '5MiB', '--parallelism', '1']
const groupsOf = (format: Format): string[] => (format === 'parquet' ? ['--row-group-rows', '10000'] : [])
const MANIFEST = 'list.json'
const manifest = (): string[] => ['--manifest', `s3://${bucket}/${MANIFEST}`]
const oneFile = (format: Format): string[] => [
  ...[source(), `s3://${bucket}/out.${format}`, '--single-file'],
  ...FLAGS,
  ...groupsOf(format),
]
const files = (format: Format): string[] => [
  ...[source(), `s3://${bucket}/p/`, '--sink-format', format],
  ...manifest(),
  ...FLAGS,
  ...groupsOf(format),
]
const fileKey = (format: Format, n: number): string => `p/people-0000${n}.${format}`

async function idsOf(key: string): Promise<number[]> {
  const bytes = await objectOf(store, `/${bucket}/${key}`)
  if (key.endsWith('.parquet')) {
    const rows = await parquetReadObjects({ file: Uint8Array.from(bytes).buffer, columns: ['id'] })
    return rows.map((row) => Number(row['id']))
  }
  const lines = bytes.toString().split('\n').slice(0, -1)
  if (key.endsWith('.csv')) return lines.slice(1).map((line) => Number(line.slice(0, line.indexOf(','))))
  return lines.map((line) => (JSON.parse(line) as { id: number }).id)
}

/** Every row once in these objects, and no upload left. */
async function expectOnce(keys: readonly string[]): Promise<void> {
  const ids = (await Promise.all(keys.map(idsOf))).flat()
  expect({ rows: ids.length, different: new Set(ids).size }).toEqual({ rows: ROWS, different: ROWS })
  expect(await uploadsIn(store, bucket)).toEqual([])
}

/** Every row once; what is there is what the manifest names, as it names it. */
async function expectSet(result: { outputs: readonly { url: string; etag: string | null }[] }): Promise<void> {
  const list = JSON.parse((await objectOf(store, `/${bucket}/${MANIFEST}`)).toString()) as {
    entries: { url: string; etag: string; meta: { content_length: number; record_count: number } }[]
  }
  expect(list.entries.map(({ url, etag }) => ({ url, etag }))).toEqual(
    result.outputs.map(({ url, etag }) => ({ url, etag })),
  )
  expect(list.entries.map(({ meta }) => meta.record_count)).toEqual(Array(3).fill(PARTITION_ROWS))
  const keys = list.entries.map(({ url }) => url.replace(`s3://${bucket}/`, ''))
  const there = (await keysIn(store, bucket)).filter((key) => key !== MANIFEST)
  expect(there).toEqual(keys.toSorted())
  for (const [index, key] of keys.entries())
    expect((await objectOf(store, `/${bucket}/${key}`)).byteLength).toBe(list.entries[index]?.meta.content_length)
  await expectOnce(keys)
}

async function resumed(id: string) {
  const { code, result, stderr } = await place.resume(id)
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  expect(result).toMatchObject({ status: 'done', rowsRead: ROWS, rowsWritten: ROWS, runs: 2 })
  return result
}

const CREATE = /[?&]uploads/
const PART = /partNumber=/
const COMPLETE = /[?&]uploadId=/
const create = { method: 'POST', url: CREATE, answer: 'stall' } as const
const part = { method: 'PUT', url: PART, answer: 'stall' } as const
const complete = { method: 'POST', url: COMPLETE, answer: 'stall' } as const
const list = { method: 'PUT', url: /list\.json/, answer: 'stall' } as const
type Rule = HttpFaultRule & { url: RegExp }

const hasUpload = async (): Promise<boolean> => (await uploadsIn(store, bucket)).length > 0
const isWritten = (key: string) => () => isThere(store, `/${bucket}/${key}`)

const ONE: readonly (readonly [string, Format, Rule, () => Promise<boolean>])[] = [
  ['the upload is begun, and its answer unseen', 'csv', { ...create, forward: true }, hasUpload],
  ['between parts', 'jsonl', { ...part, nth: 3 }, hasUpload],
  ['between parts', 'parquet', { ...part, nth: 3 }, hasUpload],
  ['before Complete', 'parquet', complete, hasUpload],
  ['after Complete, its answer unseen', 'csv', { ...complete, forward: true }, isWritten('out.csv')],
]

describe('a table to one object, killed and resumed', () => {
  it.each(ONE)('%s: %s', async (_, format, rule, settled) => {
    const id = await killAt({ place, proxy }, oneFile(format), { rule, settled })
    if (rule.forward !== true) expect(await keysIn(store, bucket)).toEqual([])
    const { outputs } = await resumed(id)
    expect(outputs.map(({ url, rows }) => ({ url, rows }))).toEqual([
      { url: `s3://${bucket}/out.${format}`, rows: ROWS },
    ])
    expect(await keysIn(store, bucket)).toEqual([`out.${format}`])
    await expectOnce([`out.${format}`])
  })
})

const SET: readonly (readonly [string, Format, Rule, () => Promise<boolean>, number])[] = [
  ['before the first is visible', 'jsonl', complete, hasUpload, 0],
  ['before the second of three is visible', 'csv', { ...complete, nth: 2 }, hasUpload, 1],
  [
    'after the second of three is visible, unseen',
    'parquet',
    { ...complete, nth: 2, forward: true },
    isWritten(fileKey('parquet', 2)),
    2,
  ],
  ['before the manifest', 'jsonl', list, isWritten(fileKey('jsonl', 3)), 3],
  ['after the manifest, its answer unseen', 'csv', { ...list, forward: true }, isWritten(MANIFEST), 3],
]

describe('a table to an object a partition with a manifest, killed and resumed', () => {
  it.each(SET)('%s: %s', async (_, format, rule, settled, visible) => {
    const id = await killAt({ place, proxy }, files(format), { rule, settled })
    expect((await keysIn(store, bucket)).filter((key) => key.startsWith('p/'))).toHaveLength(visible)
    await expectSet(await resumed(id))
  })

  it('replaces what was there only when it has all, and with --if-exists overwrite', async () => {
    const old = [fileKey('csv', 1), fileKey('csv', 3), MANIFEST]
    for (const key of old) await putObject(store, `/${bucket}/${key}`, `old ${key}`)
    const refused = await place.copy(...files('csv'))
    expect([refused.code, refused.result.error?.code]).toEqual([2, 'SLUICE_EXISTS'])
    const words = [...files('csv'), '--if-exists', 'overwrite']
    const id = await killAt({ place, proxy }, words, { rule: { ...complete, nth: 3 }, settled: hasUpload })
    for (const key of old.slice(1)) expect((await objectOf(store, `/${bucket}/${key}`)).toString()).toBe(`old ${key}`)
    await expectSet(await resumed(id))
  })

  it("another's object that came in between is left, and ours are taken back", async () => {
    const id = await killAt({ place, proxy }, files('csv'), { rule: { ...complete, nth: 2 }, settled: hasUpload })
    await putObject(store, `/${bucket}/${fileKey('csv', 2)}`, 'theirs')
    const { code, result } = await place.resume(id)
    expect([code, result.error?.code]).toEqual([2, 'SLUICE_EXISTS'])
    expect(await keysIn(store, bucket)).toEqual([fileKey('csv', 2)])
    expect((await objectOf(store, `/${bucket}/${fileKey('csv', 2)}`)).toString()).toBe('theirs')
    expect(await uploadsIn(store, bucket)).toEqual([])
  })
})

describe('at ten random moments', () => {
  it('each row once, and no upload left', async () => {
    let killed = 0
    for (let round = 0; round < 10; round += 1) {
      const format = FORMATS[round % 3] ?? 'csv'
      const words = round % 2 === 0 ? oneFile(format) : files(format)
      const id = `round${round}`
      const child = place.start(['copy', ...words, '--if-exists', 'overwrite', '--job-id', id])
      const end = ended(child)
      await delay(150 + Math.random() * 1200)
      child.kill('SIGKILL')
      const { code } = await end
      const before = hash(Buffer.from((await keysIn(store, bucket)).join()))
      if (code === 0 || !jobIds(place).includes(id)) continue
      killed += 1
      const { code: after, result, stderr } = await place.resume(id)
      // The job's folder is made before its header is: a kill in between leaves no job, and nothing else.
      if (result.error?.code === 'SLUICE_JOB_UNKNOWN') {
        expect(hash(Buffer.from((await keysIn(store, bucket)).join()))).toBe(before)
        continue
      }
      expect({ round, code: after, stderr: after === 0 ? '' : stderr }).toEqual({ round, code: 0, stderr: '' })
      expect(await uploadsIn(store, bucket)).toEqual([])
      if (round % 2 === 0) await expectOnce([`out.${format}`])
      else await expectOnce([1, 2, 3].map((n) => fileKey(format, n)))
    }
    expect(killed).toBeGreaterThan(0)
  })
})
