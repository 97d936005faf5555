import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCredentialSource } from '../../src/aws/credentials.ts'
import { PutCrew } from '../../src/connectors/dynamodb/put/put-crew.ts'
import { threadsData } from '../../src/connectors/dynamodb/put/put-threads.ts'
import { findDynamoTarget } from '../../src/connectors/dynamodb/url.ts'
import type { CsvBatch } from '../../src/core/batch.ts'
import { SluiceError } from '../../src/core/errors.ts'
import { copy, resume, type CopyOptions, type JobResult } from '../../src/index.ts'
import { type DynamoPlace, idRows, openDynamoPlace } from '../support/dynamo-place.ts'
import {
  dynamoCall,
  type DynamoFaults,
  type DynamoServer,
  type Fate,
  scanAll,
  startDynamoFaults,
} from '../support/dynamodb.ts'

let place: DynamoPlace
let server: DynamoServer
let faults: DynamoFaults
let folder: string
let tables = 0
let table = ''

beforeAll(async () => {
  place = await openDynamoPlace('dynamo-workers')
  ;({ server, faults, folder } = place)
})

afterAll(async () => {
  await place.close()
})

beforeEach(() => {
  table = `W-${(tables += 1)}`
  faults.decide = () => 'pass'
})

async function load(
  text: string,
  options: CopyOptions = {},
  o: { name?: string; signal?: AbortSignal; env?: DynamoServer['env'] } = {},
) {
  const file = join(folder, `${tables}-${o.name ?? 'in.csv'}`)
  writeFileSync(file, text)
  return copy({
    source: file,
    sink: `dynamodb:///${table}`,
    options: { createTable: true, partitionKey: 'id', types: 'string', workers: 2, ...options },
    env: o.env ?? faults.env,
    stateDir: join(folder, `state-${tables}`),
    ...(o.signal === undefined ? {} : { signal: o.signal }),
  })
}

async function found(): Promise<ReadonlyMap<string, string>> {
  const items = await scanAll(server, table)
  return new Map(items.map((item) => [String(item.id?.S ?? item.id?.N), String(item.v?.S)]))
}

const wanted = (count: number): ReadonlyMap<string, string> =>
  new Map(Array.from({ length: count }, (_, i) => [String(i + 1), `v${i + 1}`]))

/** Rows of 3 KB: some 80 a block, and three extents, of few items, since dynalite takes some thousand a second. */
const LONG = 'x'.repeat(3000)
const long = (count: number, row: (i: number) => string): string =>
  `id,v\n${Array.from({ length: count }, (_, i) => `${row(i)}\n`).join('')}`

describe('equal keys', () => {
  const key = (i: number): number => (i * 7) % 113
  // Numbers that are the same key in other digits: these have to come to the same thread.
  const spelt = (i: number): string => [`${key(i)}`, `${key(i)}.0`, `0${key(i)}`, `"${key(i)}e0"`][i % 4] ?? ''
  const ways: readonly [string, (i: number) => string, CopyOptions][] = [
    ['text', (i) => (i % 2 === 0 ? `${key(i)}` : `"${key(i)}"`), {}],
    ['numbers', spelt, { partitionKey: 'id:N' }],
  ]

  it.each(ways)('%s: the last row wins, across blocks and extents, however requests fare', async (_, id, options) => {
    const fates: readonly Fate[] = ['pass', { delayMs: 15 }, { unprocessed: (_item, i) => i % 3 === 0 }, 'cut-after']
    faults.decide = ({ number }) => fates[number % fates.length] ?? 'pass'
    const count = 2000
    const result = await load(
      long(count, (i) => `${id(i)},${i} ${LONG}`),
      options,
    )
    expect(result).toMatchObject({ status: 'done', rowsRead: count })
    expect(result.rowsWritten + result.skipped.superseded).toBe(count)
    expect(result.skipped.superseded).toBeGreaterThan(0)
    const last = new Map(Array.from({ length: count }, (_row, i) => [String(key(i)), `${i} ${LONG}`]))
    expect(await found()).toEqual(last)
  })

  it('--dedupe error names the same row as one thread does', async () => {
    const text = long(600, (i) => `${i === 431 ? 7 : i === 433 ? 2 : i},${LONG}`)
    const errors = []
    for (const workers of [0, 3]) errors.push((await load(text, { workers, dedupe: 'error' })).error)
    expect(errors[0]).toMatchObject({
      code: 'SLUICE_DUPLICATE_KEY',
      where: expect.stringContaining('row 432') as unknown,
    })
    expect(errors[1]).toEqual(errors[0])
  })
})

const FATES: readonly [string, (number: number) => Fate][] = [
  ['ThrottlingException', (n) => (n % 3 === 0 ? { error: 'ThrottlingException' } : 'pass')],
  ['InternalServerError', (n) => (n % 3 === 0 ? { error: 'InternalServerError', status: 500 } : 'pass')],
  ['all of a request unprocessed', (n) => (n % 3 === 0 ? { unprocessed: () => true } : 'pass')],
  ['some of each request unprocessed', () => ({ unprocessed: (_, i) => i % 4 === 0 && i > 0 })],
  ['requests cut', (n) => (n % 5 === 0 ? 'cut' : 'pass')],
  ['answers cut', (n) => (n % 5 === 0 ? 'cut-after' : 'pass')],
]

describe('what a load that failed leaves', () => {
  const empty = (): string =>
    `the table dynamodb:///${table}, which this job made, stays and is empty: sluice table delete dynamodb:///${table}`

  it('is an empty table where the first row is bad', async () => {
    const result = await load('id,v\n1,x\n', { type: ['v=N'] })
    expect(result).toMatchObject({ status: 'failed', warnings: [empty()] })
  })

  it('is an empty table where the server took nothing', async () => {
    faults.decide = () => ({ error: 'AccessDeniedException' })
    expect(await load(idRows(1))).toMatchObject({ status: 'failed', warnings: [empty()] })
  })

  it('is what was put so far where something was, or may have been', async () => {
    faults.decide = ({ number }) => (number === 0 ? 'cut-after' : { error: 'AccessDeniedException' })
    expect(await load(idRows(100))).toMatchObject({
      status: 'failed',
      warnings: [expect.stringContaining('stays with what was put so far')],
    })
  })
})

describe('bad days', () => {
  it.each(FATES)('%s: every item is in, and counted once', async (name, fate) => {
    const first = faults.batches.length
    faults.decide = (batch) => fate(batch.number - first)
    const result = await load(idRows(300))
    expect(result).toMatchObject({ status: 'done', rowsRead: 300, rowsWritten: 300, rowsSkipped: 0 })
    expect(await found()).toEqual(wanted(300))
    expect(result.retries).toBeGreaterThan(0)
    if (name.includes('unprocessed') || name.includes('Throttling')) expect(result.throttles).toBe(result.retries)
    for (const batch of faults.batches) expect(batch.items.length).toBeLessThanOrEqual(25)
  })

  it('stops, resumable, where one item is refused for ever; the others are in', async () => {
    faults.decide = () => ({ unprocessed: (item) => item.id?.S === '77' })
    const result = await load(idRows(200), { retryFor: 800 })
    expect(result).toMatchObject({ status: 'stopped', rowsWritten: 0, error: { code: 'SLUICE_THROTTLED' } })
    expect(await scanAll(server, table)).toHaveLength(199)
    faults.decide = () => 'pass'
    const again = await resume({ stateDir: join(folder, `state-${tables}`), jobId: result.jobId, env: faults.env })
    expect(again).toMatchObject({ status: 'done', runs: 2, rowsRead: 200, rowsWritten: 200 })
    expect(await found()).toEqual(wanted(200))
  })

  it('ends at once where it may not write, and where credentials cannot be renewed', async () => {
    faults.decide = () => ({ error: 'AccessDeniedException' })
    expect(await load(idRows(30))).toMatchObject({ status: 'failed', error: { code: 'SLUICE_ACCESS_DENIED' } })
    faults.decide = () => ({ error: 'ExpiredTokenException' })
    const expired = await load(idRows(30), {}, { name: 'expired.csv' })
    expect(expired).toMatchObject({ status: 'stopped', error: { code: 'SLUICE_CREDENTIALS_EXPIRED' } })
    expect(JSON.stringify(expired)).not.toContain('secret-of-the-test')
  })

  it('keeps to --concurrency with all threads together', async () => {
    const slow = await startDynamoFaults(server)
    slow.decide = () => ({ delayMs: 20 })
    const result = await load(idRows(500), { concurrency: 3 }, { env: slow.env })
    await slow.stop()
    expect(result).toMatchObject({ status: 'done', rowsWritten: 500 })
    expect(slow.mostInFlight).toBe(3)
  })
})

describe('bad rows', () => {
  const rows: readonly [string, string, string, CopyOptions][] = [
    ['a key without a value', ',b', ',c', {}],
    ['too few fields', '300', '301,a,b', {}],
    ['no number, and no key', '300,NaN', ',5', { type: ['v=number'] }],
  ]
  it.each(rows)('%s: the first of the input ends the job, with its place', async (_, first, second, options) => {
    const value = options.type === undefined ? LONG : '5'
    const text = long(900, (i) => (i === 700 ? first : i === 701 || i === 820 ? second : `${i},${value}`))
    const errors: JobResult['error'][] = []
    for (const workers of [0, 2, 3]) {
      const result = await load(text, { ...options, workers }, { name: 'bad.csv' })
      expect(result.status).toBe('failed')
      errors.push(result.error)
    }
    expect(errors[0]?.where).toContain('row 701')
    expect(errors.slice(1)).toEqual([errors[0], errors[0]])
  })
})

describe('parsed rows', () => {
  const json = (count: number, row: (i: number) => object): string =>
    Array.from({ length: count }, (_, i) => `${JSON.stringify(row(i))}\n`).join('')

  it('of JSON Lines: the last row of a key wins', async () => {
    faults.decide = ({ number }) => (number % 3 === 0 ? { delayMs: 10 } : 'pass')
    const text = json(1500, (i) => ({
      id: String((i * 7) % 113),
      v: `${i} ${LONG.slice(0, 500)}`,
      [`only-${i % 3}`]: i,
    }))
    const result = await load(text, {}, { name: 'in.jsonl' })
    expect(result).toMatchObject({ status: 'done', rowsRead: 1500 })
    expect(result.rowsWritten + result.skipped.superseded).toBe(1500)
    const last = new Map(Array.from({ length: 1500 }, (_, i) => [String((i * 7) % 113), `${i} ${LONG.slice(0, 500)}`]))
    expect(await found()).toEqual(last)
  })

  it('the first bad one of the input ends the job, whoever finds it', async () => {
    const big = 'x'.repeat(410_000)
    const texts = [
      json(400, (i) => (i === 300 ? { v: 'no key' } : i === 302 ? { id: '302', v: big } : { id: String(i), v: LONG })),
      json(400, (i) => (i === 302 ? { v: 'no key' } : i === 300 ? { id: '300', v: big } : { id: String(i), v: LONG })),
    ]
    for (const text of texts) {
      const errors: JobResult['error'][] = []
      for (const workers of [0, 3]) errors.push((await load(text, { workers }, { name: 'bad.jsonl' })).error)
      expect(errors[0]?.where).toContain('row 301')
      expect(errors[1]).toEqual(errors[0])
    }
  })

  it('beside CSV in one job', async () => {
    for (const [name, text] of [
      ['a.csv', 'id,v\n1,first\n2,v2\n'],
      ['b.jsonl', '{"id":"1","v":"v1"}\n'],
    ] as const) {
      mkdirSync(join(folder, table), { recursive: true })
      writeFileSync(join(folder, table, name), text)
    }
    const result = await copy({
      source: `${join(folder, table)}/`,
      sink: `dynamodb:///${table}`,
      options: { createTable: true, partitionKey: 'id', workers: 2 },
      env: faults.env,
      stateDir: join(folder, `state-${tables}`),
    })
    expect(result.error).toBeUndefined()
    expect(await found()).toEqual(wanted(2))
  })
})

it('an abort leaves no thread, and a resume goes on', async () => {
  const stop = new AbortController()
  const before = active()
  let during: readonly string[] = []
  faults.decide = ({ number }) => {
    during = active()
    if (number > first + 10) stop.abort(new SluiceError('SLUICE_INTERRUPTED', 'enough'))
    return { delayMs: 30 }
  }
  const first = faults.batches.length
  const result = await load(idRows(2000), { concurrency: 4 }, { signal: stop.signal })
  expect(result).toMatchObject({ status: 'stopped', error: { code: 'SLUICE_INTERRUPTED' } })
  expect(faults.batches.length - first).toBeLessThan(60)
  expect(during).not.toEqual(before)
  expect(active()).toEqual(before)
  faults.decide = () => 'pass'
  const again = await resume({ stateDir: join(folder, `state-${tables}`), jobId: result.jobId, env: faults.env })
  expect(again).toMatchObject({ status: 'done', runs: 2, rowsRead: 2000, rowsWritten: 2000 })
  expect(await found()).toEqual(wanted(2000))
})

/** What keeps a process alive, but for the servers of this file, whose sockets close when their other ends do. */
function active(): readonly string[] {
  return process
    .getActiveResourcesInfo()
    .filter((name) => name === 'MessagePort' || name === 'Worker')
    .toSorted()
}

describe('the threads themselves', () => {
  const options = async (more: { endpoint?: URL } = {}) => ({
    target: { ...(await findDynamoTarget(`dynamodb:///${table}`, { options: {}, env: faults.env })), ...more },
    table,
    keys: [{ name: 'id', type: 'S' as const }],
    dedupe: 'last' as const,
    nulls: 'omit' as const,
    retryForMs: 5000,
    writeUnits: null,
    signRequest: undefined,
    concurrency: 4,
  })
  const reporter = { warn: () => undefined, retried: () => undefined }
  const attributesFor = (columns: readonly string[]) =>
    columns.map((name) => ({
      name,
      kind: 'S' as const,
      key: name === 'id' ? ('partition' as const) : null,
      converts: true,
    }))
  const batchOf = (text: string): CsvBatch => ({
    form: 'csv',
    bytes: Buffer.from(text),
    rows: text.trim().split('\n').length,
    columns: ['id', 'v'],
    csv: { delimiter: ',', quote: '"', escape: '"' },
    quoted: false,
    start: { byte: 0, row: 0, line: 0 },
    end: { byte: text.length, row: 0, line: 0 },
    mayEnd: true,
  })

  it('have credentials renewed once for all of them', async () => {
    await dynamoCall(server, 'CreateTable', {
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    })
    let loads = 0
    const credentials = createCredentialSource({
      env: {},
      load: () => Promise.resolve({ accessKeyId: 'A', secretAccessKey: 'S', sessionToken: `token-${(loads += 1)}` }),
    })
    faults.decide = () => (loads < 2 ? { error: 'ExpiredTokenException' } : 'pass')
    const { signal } = new AbortController()
    const crew = new PutCrew({
      threads: threadsData(await options(), 2),
      credentials,
      reporter,
      signal,
      attributesFor,
    })
    try {
      const extent = crew.begin()
      await extent.write(batchOf(idRows(200).slice('id,v\n'.length)))
      extent.written()
      expect(await extent.settled()).toMatchObject({ accepted: 200, superseded: 0 })
    } finally {
      await crew.close()
    }
    expect(loads).toBe(2)
    expect(await found()).toEqual(wanted(200))
  })

  it('that die are told', async () => {
    const [data] = threadsData(await options(), 1)
    if (data === undefined) throw new Error('no thread')
    const crew = new PutCrew({
      threads: [{ ...data, endpoint: 'no address' }],
      credentials: createCredentialSource({ env: {}, signRequest: false }),
      reporter,
      signal: new AbortController().signal,
      attributesFor,
    })
    await expect(crew.ready).rejects.toMatchObject({
      code: 'SLUICE_THREADS',
      hint: expect.stringContaining('--workers 0') as unknown,
    })
    await expect(crew.begin().settled()).rejects.toMatchObject({ code: 'SLUICE_THREADS' })
    await crew.close()
  })
})
