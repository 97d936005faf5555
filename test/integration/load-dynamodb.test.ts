import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { copy, resume, type CopyOptions, type JobResult } from '../../src/index.ts'
import { type DynamoPlace, idRows, openDynamoPlace } from '../support/dynamo-place.ts'
import { type DynamoFaults, type DynamoServer, type Fate, scanAll, type WireItem } from '../support/dynamodb.ts'

let place: DynamoPlace
let server: DynamoServer
let faults: DynamoFaults
let folder: string
let tables = 0
let table = ''

beforeAll(async () => {
  place = await openDynamoPlace('dynamo')
  ;({ server, faults, folder } = place)
})

afterAll(async () => {
  await place.close()
})

beforeEach(() => {
  table = `T-${(tables += 1)}`
  faults.decide = () => 'pass'
})

async function load(text: string, options: CopyOptions = {}, name = 'in.csv'): Promise<JobResult> {
  const file = join(folder, `${tables}-${name}`)
  writeFileSync(file, text)
  return copy({
    source: file,
    sink: `dynamodb:///${table}`,
    options: { createTable: true, partitionKey: 'id', ...options },
    env: faults.env,
    stateDir: join(folder, 'state'),
  })
}

async function items(): Promise<WireItem[]> {
  const found = await scanAll(server, table)
  return found.toSorted((a, b) => Number(Object.values(a.id ?? {})[0]) - Number(Object.values(b.id ?? {})[0]))
}

const wanted = (count: number): WireItem[] =>
  Array.from({ length: count }, (_, i) => ({ id: { S: String(i + 1) }, v: { S: `v${i + 1}` } }))

describe('types', () => {
  it('makes numbers only of columns that are the same text when they are written back', async () => {
    const result = await load(
      '\uFEFFid,dialling,height,ratio,note,flag\n1,01569,12,1.10,"a, ""b""\\",true\n2,0207,-3.5,2.5,ü\t\u0001,false\n3,,,,,\n',
    )
    expect(result).toMatchObject({ status: 'done', rowsRead: 3, rowsWritten: 3 })
    expect(await items()).toEqual([
      {
        id: { S: '1' },
        dialling: { S: '01569' },
        height: { N: '12' },
        ratio: { S: '1.10' },
        note: { S: 'a, "b"\\' },
        flag: { BOOL: true },
      },
      {
        id: { S: '2' },
        dialling: { S: '0207' },
        height: { N: '-3.5' },
        ratio: { S: '2.5' },
        note: { S: 'ü\t\u0001' },
        flag: { BOOL: false },
      },
      { id: { S: '3' } },
    ])
  })

  it('makes text of a column with a number that DynamoDB does not hold', async () => {
    const long = '1234567890123456789012345678901234567890'
    const result = await load(`id,a,b\n1,7,${'1'.repeat(38)}\n2,${long},1.5\n`)
    expect(result).toMatchObject({ status: 'done', rowsWritten: 2 })
    expect(await items()).toEqual([
      { id: { S: '1' }, a: { S: '7' }, b: { N: '1'.repeat(38) } },
      { id: { S: '2' }, a: { S: long }, b: { N: '1.5' } },
    ])
    expect(await load(`id,a\n1,${long}\n`, { type: ['a=number'] })).toMatchObject({
      status: 'failed',
      error: { code: 'SLUICE_VALUE' },
    })
  })

  it('obeys --type in neutral names and letters, and --empty', async () => {
    const result = await load('id,n,s,l,m,ns,b,e\n1,1.10,5,"[1,""x"",null]","{""a"":[true]}","[1,20]",AAE=,\n', {
      type: ['n=number', 's=S', 'l=list', 'm=M', 'ns=number-set', 'b=B'],
      empty: 'null',
    })
    expect(result.status).toBe('done')
    expect(await items()).toEqual([
      {
        id: { S: '1' },
        n: { N: '1.1' },
        s: { S: '5' },
        l: { L: [{ N: '1' }, { S: 'x' }, { NULL: true }] },
        m: { M: { a: { L: [{ BOOL: true }] } } },
        ns: { NS: ['1', '20'] },
        b: { B: 'AAE=' },
        e: { NULL: true },
      },
    ])
  })

  it('takes JSON Lines by their own types, exactly', async () => {
    const exact = '12345678901234567890123456789012345678'
    const text = `{"id":1,"n":${exact},"t":"5","x":{"a":[1,{"b":null}]}}\n{"id":2,"late":false,"n":null}\n`
    expect(await load(text, { partitionKey: 'id:N' }, 'in.jsonl')).toMatchObject({ status: 'done', rowsWritten: 2 })
    expect(await items()).toEqual([
      {
        id: { N: '1' },
        n: { N: exact },
        t: { S: '5' },
        x: { M: { a: { L: [{ N: '1' }, { M: { b: { NULL: true } } }] } } },
      },
      { id: { N: '2' }, late: { BOOL: false }, n: { NULL: true } },
    ])
  })
})

const FATES: readonly [string, (number: number) => Fate][] = [
  ...['ProvisionedThroughputExceededException', 'ThrottlingException', 'RequestLimitExceeded'].map(
    (error): [string, (number: number) => Fate] => [error, (n) => (n % 3 === 0 ? { error } : 'pass')],
  ),
  ['InternalServerError', (n) => (n % 3 === 0 ? { error: 'InternalServerError', status: 500 } : 'pass')],
  ['all of a request unprocessed', (n) => (n % 3 === 0 ? { unprocessed: () => true } : 'pass')],
  ['some of each request unprocessed', () => ({ unprocessed: (_, i) => i % 4 === 0 && i > 0 })],
  ['requests cut', (n) => (n % 5 === 0 ? 'cut' : 'pass')],
  ['answers cut', (n) => (n % 5 === 0 ? 'cut-after' : 'pass')],
]

describe('bad days', () => {
  it.each(FATES)('%s: every item is in, and counted once', async (_, fate) => {
    const first = faults.batches.length
    faults.decide = (batch) => fate(batch.number - first)
    expect(await load(idRows(300))).toMatchObject({ status: 'done', rowsRead: 300, rowsWritten: 300, rowsSkipped: 0 })
    expect(await items()).toEqual(wanted(300))
    for (const batch of faults.batches) {
      expect(batch.items.length).toBeGreaterThan(0)
      expect(batch.items.length).toBeLessThanOrEqual(25)
    }
  })

  it('stops, resumable, where one item is refused for ever; the others are in', async () => {
    faults.decide = () => ({ unprocessed: (item) => item.id?.S === '77' })
    const result = await load(idRows(200), { retryFor: 800 })
    expect(result).toMatchObject({ status: 'stopped', rowsWritten: 0, error: { code: 'SLUICE_THROTTLED' } })
    expect(await scanAll(server, table)).toHaveLength(199)
    faults.decide = () => 'pass'
    const again = await resume({ stateDir: join(folder, 'state'), jobId: result.jobId, env: faults.env })
    expect(again).toMatchObject({ status: 'done', runs: 2, rowsRead: 200, rowsWritten: 200 })
    expect(await items()).toEqual(wanted(200))
  })

  it('stops, resumable, where credentials expire', async () => {
    let sent = 0
    faults.decide = () => ((sent += 1) < 3 ? 'pass' : { error: 'ExpiredTokenException' })
    expect(await load(idRows(200), { concurrency: 1 })).toMatchObject({
      status: 'stopped',
      error: { code: 'SLUICE_CREDENTIALS_EXPIRED' },
    })
  })

  it('ends at once where it may not write', async () => {
    faults.decide = () => ({ error: 'AccessDeniedException' })
    expect(await load(idRows(30))).toMatchObject({ status: 'failed', error: { code: 'SLUICE_ACCESS_DENIED' } })
  })
})

it.each([0, 2])('keeps to --write-units as the server counts them, with %d threads', async (workers) => {
  const [writeUnits, count] = [600, 700]
  const before = faults.consumed.length
  // Of more than 2 KB: three units each, where one was expected at first.
  const rows = Array.from({ length: count }, (_, i) => `${i + 1},${'x'.repeat(2500)}\n`)
  const result = await load(`id,v\n${rows.join('')}`, { writeUnits, workers, types: 'string' })
  expect(result).toMatchObject({ status: 'done', rowsWritten: count })
  const seen = faults.consumed.slice(before)
  const units = seen.reduce((sum, one) => sum + one.units, 0)
  expect(units).toBe(3 * count)
  const asked = seen.map(({ askedMs }) => askedMs)
  const seconds = (Math.max(...asked) - Math.min(...asked)) / 1000
  // What the last request costs is not waited for; a second's units may have been saved before the first.
  const last = seen.at(-1)?.units ?? 0
  expect(units - last).toBeLessThanOrEqual(writeUnits * (seconds + 1) * 1.05)
  // The server could take several thousand a second.
  expect(units).toBeGreaterThan(writeUnits * seconds * 0.5)
})

describe('equal keys', () => {
  const text = `id,v\n${Array.from({ length: 3000 }, (_, i) => `${(i * 7) % 113},${i}\n`).join('')}`
  const last = (): Map<string, string> =>
    new Map(
      text
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => [line.split(',')[0] ?? '', line.split(',')[1] ?? '']),
    )
  const found = async (): Promise<Map<string, string>> =>
    new Map((await items()).map((item) => [String(item.id?.S), String(item.v?.N ?? item.v?.S)]))

  it('the last row wins, however requests fare', async () => {
    const fates: readonly Fate[] = ['pass', { delayMs: 15 }, { unprocessed: (_, i) => i % 3 === 0 }, 'cut-after']
    faults.decide = ({ number }) => fates[number % fates.length] ?? 'pass'
    const result = await load(text)
    expect(result).toMatchObject({ status: 'done', rowsRead: 3000 })
    expect(result.rowsWritten + result.skipped.superseded).toBe(3000)
    expect(result.skipped.superseded).toBeGreaterThan(0)
    expect(await found()).toEqual(last())
  })

  it('--dedupe none only keeps them out of one request', async () => {
    const first = faults.batches.length
    expect(await load(text, { dedupe: 'none' })).toMatchObject({ status: 'done', rowsWritten: 3000 })
    for (const { items: sent } of faults.batches.slice(first))
      expect(new Set(sent.map((item) => item.id?.S)).size).toBe(sent.length)
    expect([...(await found()).keys()].toSorted()).toEqual([...last().keys()].toSorted())
  })

  it('--dedupe error names the second row', async () => {
    expect(await load('id,v\n1,a\n2,b\n1,c\n', { dedupe: 'error' })).toMatchObject({
      status: 'failed',
      error: { code: 'SLUICE_DUPLICATE_KEY', where: expect.stringContaining('row 3') as unknown },
    })
  })
})

describe('bad rows', () => {
  it.each<[string, string, CopyOptions, string, string]>([
    ['an empty key', 'id,v\n1,a\n,b\n', {}, 'SLUICE_VALUE', 'row 2'],
    ['a key of "" ', 'id,v\n1,a\n"",b\n', {}, 'SLUICE_VALUE', 'row 2'],
    ['no number', 'id,v\n1,5\n2,NaN\n', { type: ['v=N'] }, 'SLUICE_VALUE', 'row 2'],
    ['39 digits', `id,v\n1,${'1'.repeat(39)}\n`, { type: ['v=number'] }, 'SLUICE_VALUE', 'row 1'],
    ['an exponent too far', 'id,v\n1,1e126\n', { type: ['v=number'] }, 'SLUICE_VALUE', 'column v'],
    ['an empty set', 'id,v\n1,[]\n', { type: ['v=SS'] }, 'SLUICE_VALUE', 'row 1'],
    ['a set with equals', 'id,v\n1,"[1,1.0]"\n', { type: ['v=NS'] }, 'SLUICE_VALUE', 'row 1'],
    ['33 levels', `id,v\n1,${'['.repeat(33)}${']'.repeat(33)}\n`, { type: ['v=L'] }, 'SLUICE_VALUE', 'row 1'],
    ['an item of 400 KB', `id,v\n1,a\n2,${'x'.repeat(410_000)}\n`, {}, 'SLUICE_VALUE', 'row 2'],
    ['a field too few', 'id,v,w\n1,a,b\n2,c\n', {}, 'SLUICE_CSV_FIELD_COUNT', 'row 2'],
  ])('%s ends the job with its place', async (_, text, options, code, where) => {
    const result = await load(text, options)
    expect(result).toMatchObject({
      status: 'failed',
      error: { code, where: expect.stringContaining(where) as unknown },
    })
  })

  it('an item of just 400 KB is taken', async () => {
    const text = 'x'.repeat(400 * 1024 - 'id1v'.length)
    expect(await load(`id,v\n1,${text}\n`)).toMatchObject({ status: 'done', rowsWritten: 1 })
  })

  it('a source without the key is refused before any row is read', async () => {
    expect(await load('a,b\n1,2\n')).toMatchObject({ status: 'failed', error: { code: 'SLUICE_COLUMN_MISSING' } })
  })
})
