import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  copy,
  type CopyOptions,
  createTable,
  deleteTable,
  describeTable,
  type JobResult,
  plan,
  verify,
} from '../../src/index.ts'
import {
  dynamoCall,
  type DynamoServer,
  scanAll,
  startDynalite,
  startMinistack,
  type WireItem,
} from '../support/dynamodb.ts'

/** Two servers of different people, so that nothing holds only because one of them says so. */
const SERVERS = [
  ['dynalite', startDynalite],
  ['ministack', startMinistack],
] as const

/** Every type that an attribute can have, at its edges. */
const EDGES: Readonly<Record<string, unknown>> = {
  id: { S: 'a/ü€😀"\\\n' },
  empty: { S: '' },
  digits: { N: '12345678901234567890123456789012345678' },
  small: { N: '-0.00000000000000000000000000000000000001' },
  large: { N: '9900000000000000000000000000000000000000' },
  bytes: { B: Buffer.from([0, 1, 127, 128, 255]).toString('base64') },
  noBytes: { B: '' },
  yes: { BOOL: true },
  no: { BOOL: false },
  nothing: { NULL: true },
  texts: { SS: ['a', 'ü', '"'] },
  numbers: { NS: ['1', '-2.5', '12345678901234567890123456789012345678'] },
  binaries: { BS: ['AA==', '/w=='] },
  list: { L: [{ N: '1' }, { S: '' }, { L: [] }, { M: {} }, { NULL: true }] },
  map: { M: { 'a.b': { M: { c: { L: [{ BOOL: false }] } } } } },
}

/** Sets have no order; the order of attributes and of a map's keys is nothing either; numbers as their value. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, plainMember(name, inner)]),
  )
}

function plainMember(name: string, inner: unknown): unknown {
  if (name === 'N') return digitsOf(String(inner))
  if (Array.isArray(inner) && ['SS', 'NS', 'BS'].includes(name))
    return inner.map((one) => (name === 'NS' ? digitsOf(String(one)) : String(one))).toSorted()
  return plain(inner)
}

/** Digits and exponent of a number, however it is spelled. */
function digitsOf(text: string): string {
  const [, sign = '', whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const all = (whole + part).replace(/^0+/, '')
  const digits = all.replace(/0+$/, '')
  return `${sign}${digits}e${Number(exponent) - part.length + all.length - digits.length}`
}

describe.each(SERVERS)('%s', (_, start) => {
  let server: DynamoServer
  let folder = ''
  beforeAll(async () => {
    server = await start()
    folder = mkdtempSync(join(tmpdir(), 'sluice-servers-'))
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true })
  })

  const path = (name: string): string => join(folder, name)
  const around = () => ({ env: server.env, stateDir: path('state') })
  const run = (source: string, sink: string, options: CopyOptions = {}): Promise<JobResult> =>
    copy({ ...around(), source, sink, options })
  async function load(table: string, text: string, options: CopyOptions = {}): Promise<JobResult> {
    writeFileSync(path(`${table}.csv`), text)
    return run(path(`${table}.csv`), `dynamodb:///${table}`, { createTable: true, partitionKey: 'id', ...options })
  }
  const itemsOf = (name: string): unknown[] =>
    readFileSync(path(name), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => plain((JSON.parse(line) as { Item: unknown }).Item))

  it('makes, describes and deletes tables', async () => {
    const url = 'dynamodb:///Readings'
    const request = { env: server.env, options: { partitionKey: 'sensor:S', sortKey: 'time:N' } }
    const keys = { partitionKey: { name: 'sensor', type: 'S' }, sortKey: { name: 'time', type: 'N' } }
    expect(await createTable(url, request)).toMatchObject({
      url,
      table: { status: 'ACTIVE', billing: 'on-demand', ...keys },
    })
    await expect(createTable(url, request)).rejects.toMatchObject({ code: 'SLUICE_EXISTS' })
    expect((await describeTable(url, request)).table).toMatchObject(keys)
    await deleteTable(url, { ...request, options: { yes: true } })
    await expect(describeTable(url, request)).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND' })
    const provisioned = await createTable(url, {
      ...request,
      options: { ...request.options, readUnits: 7, writeUnits: 9 },
    })
    expect(provisioned.table).toMatchObject({ billing: 'provisioned', provisioned: { readUnits: 7, writeUnits: 9 } })
  })

  it('takes a load, typed, and has it all', async () => {
    const rows = Array.from({ length: 1030 }, (_, i) => `k${i},0${i},${i}.5,${i % 2 === 0},\n`)
    expect(await load('Typed', `id,code,height,flag,none\n${rows.join('')}`)).toMatchObject({
      status: 'done',
      rowsRead: 1030,
      rowsWritten: 1030,
      retries: 0,
    })
    const items = await scanAll(server, 'Typed')
    expect(items).toHaveLength(1030)
    expect(items).toContainEqual({ id: { S: 'k7' }, code: { S: '07' }, height: { N: '7.5' }, flag: { BOOL: false } })
    expect(await verify(path('Typed.csv'), 'dynamodb:///Typed', { ...around(), options: {} })).toMatchObject({
      same: true,
      source: { rows: 1030 },
      sink: { rows: 1030 },
    })
  })

  it('keeps what each type holds at its edges, through DynamoDB JSON and back', async () => {
    writeFileSync(path('edges.json'), `${JSON.stringify({ Item: EDGES })}\n`)
    const options: CopyOptions = { sourceFormat: 'dynamodb-json', createTable: true, partitionKey: 'id' }
    expect(await run(path('edges.json'), 'dynamodb:///Edges', options)).toMatchObject({ status: 'done' })
    const [held] = await scanAll(server, 'Edges')
    expect(plain(held)).toEqual(plain(EDGES))
    expect(await run('dynamodb:///Edges', path('back.json'), { sinkFormat: 'dynamodb-json' })).toMatchObject({
      status: 'done',
      rowsWritten: 1,
    })
    expect(itemsOf('back.json')).toEqual([plain(EDGES)])
  })

  it.each([
    ['N', ['3', '-1', '12345678901234567890123456789012345678', '0.1']],
    ['B', ['AA==', '/w==', 'AAA=']],
    ['S', ['a', 'A', ' a', 'ü']],
  ] as const)('keys of type %s are one item each', async (type, keys) => {
    const table = `Keys-${type}`
    const text = `id,v\n${keys.map((key, i) => `${key},${i}\n`).join('')}`
    expect(await load(table, text, { partitionKey: `id:${type}` })).toMatchObject({
      status: 'done',
      rowsWritten: keys.length,
    })
    const held = (await scanAll(server, table)).map((item: WireItem) => plain(item['id']))
    const byText = (all: readonly unknown[]): string[] => all.map((one) => JSON.stringify(one)).toSorted()
    expect(byText(held)).toEqual(byText(keys.map((key) => plain({ [type]: key }))))
  })

  it('a later row wins, and a key of two attributes tells items apart', async () => {
    const rows = Array.from({ length: 400 }, (_, i) => `${i % 40},${i % 2},${i}\n`)
    const result = await load('Pairs', `id,part,v\n${rows.join('')}`, { sortKey: 'part:N', type: ['v=number'] })
    expect(result).toMatchObject({ status: 'done', rowsRead: 400 })
    expect(result.rowsWritten + result.skipped.superseded).toBe(400)
    const items = await scanAll(server, 'Pairs')
    expect(items.map((item) => Number(item['v']?.['N'])).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 40 }, (_, i) => 360 + i),
    )
  })

  it('--mode upsert is what a put is: items of the same key are replaced, others stay', async () => {
    await load('Upserted', 'id,v\n1,old\n2,old\n')
    expect(await load('Upserted', 'id,w\n2,new\n3,new\n', { mode: 'upsert' })).toMatchObject({ status: 'done' })
    const items = await scanAll(server, 'Upserted')
    expect(items.toSorted((a, b) => (String(a['id']?.['S']) < String(b['id']?.['S']) ? -1 : 1))).toEqual([
      { id: { S: '1' }, v: { S: 'old' } },
      { id: { S: '2' }, w: { S: 'new' } },
      { id: { S: '3' }, w: { S: 'new' } },
    ])
  })

  it('would refuse what sluice refuses before it sends', async () => {
    await load('Strict', 'id,v\n1,a\n')
    const put = (...items: object[]): Promise<unknown> =>
      dynamoCall(server, 'BatchWriteItem', {
        RequestItems: { Strict: items.map((Item) => ({ PutRequest: { Item } })) },
      })
    const id = { S: 'x' }
    const wrong: [string, object[]][] = [
      ['no request at all', []],
      ['26 puts', Array.from({ length: 26 }, (_, i) => ({ id: { S: `${i}` } }))],
      ['one key twice', [{ id }, { id }]],
      ['an empty key', [{ id: { S: '' } }]],
      ['a key of another type', [{ id: { N: '1' } }]],
      ['no key', [{ v: id }]],
      ['39 digits', [{ id, n: { N: '1'.repeat(39) } }]],
      ['no number', [{ id, n: { N: 'NaN' } }]],
      ['an empty set', [{ id, s: { SS: [] } }]],
      ['an item of more than 400 KB', [{ id, v: { S: 'x'.repeat(410_000) } }]],
    ]
    for (const [what, items] of wrong) await expect(put(...items), what).rejects.toMatchObject({ code: 'SLUICE_VALUE' })
  })

  it('comes out by segments, each item once, as JSON Lines and as CSV', async () => {
    const count = 3000
    await load('Segments', `id,v\n${Array.from({ length: count }, (_, i) => `k${i},${i}\n`).join('')}`)
    for (const name of ['out.jsonl', 'out.csv']) {
      const result = await run('dynamodb:///Segments', path(name), { columns: ['id', 'v'] })
      expect(result).toMatchObject({ status: 'done', rowsRead: count, rowsWritten: count })
      expect(result.partitions).toBeGreaterThan(1)
      const ids = readFileSync(path(name), 'utf8').match(/\bk\d+\b/g) ?? []
      expect(ids).toHaveLength(count)
      expect(new Set(ids).size).toBe(count)
    }
  })

  it('plans a load without making anything, and finds what the load would find', async () => {
    writeFileSync(path('plan.csv'), 'id,code,n\n1,01,5\n2,02,6\n')
    const ask = (options: CopyOptions, table = 'Planned') =>
      plan({ ...around(), source: path('plan.csv'), sink: `dynamodb:///${table}`, options })
    const made = await ask({ createTable: true, partitionKey: 'id', warmWrites: 9000 })
    expect(made.steps[0]).toBe('CreateTable Planned, key id:S, on demand, warm for 9000 writes a second')
    expect(made.columns.map(({ sink, type }) => [sink, type])).toEqual([
      ['id', 'string'],
      ['code', 'string'],
      ['n', 'integer'],
    ])
    await expect(ask({})).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND' })
    await expect(describeTable('dynamodb:///Planned', { env: server.env, options: {} })).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
    })
    await expect(ask({ createTable: true, partitionKey: 'other' })).rejects.toMatchObject({
      code: 'SLUICE_COLUMN_MISSING',
    })
    await load('There', 'id\n1\n')
    expect((await ask({ writeUnits: 500 }, 'There')).steps).toEqual([
      expect.stringMatching(/^table There, key id:S, on demand.*items with the keys of rows are replaced$/),
      expect.stringContaining('500 write units a second'),
    ])
    await expect(ask({ partitionKey: 'code' }, 'There')).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
  })

  it('says what a load that failed leaves: the table that it made, or what was put', async () => {
    const bad = `id,v\n${Array.from({ length: 60 }, (_, i) => `${i},1\n`).join('')}x,x\n`
    const failed = await load('Left', bad, { type: ['v=N'] })
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'SLUICE_VALUE' } })
    expect(failed.warnings).toEqual([
      'the table dynamodb:///Left, which this job made, stays with what was put so far: sluice table delete dynamodb:///Left',
    ])
    expect((await load('Left', bad, { type: ['v=N'] })).warnings).toEqual([
      'what was put so far stays in dynamodb:///Left: the same rows, loaded again, replace it',
    ])
    expect((await load('Left', 'id,v\n1,x\n', { type: ['v=N'] })).warnings).toEqual([])
    expect((await load('Bare', 'id,v\n1,x\n', { type: ['v=N'] })).warnings).toEqual([
      'the table dynamodb:///Bare, which this job made, stays and is empty: sluice table delete dynamodb:///Bare',
    ])
  })

  it('makes no table for rows that lack its key', async () => {
    expect(await load('Never', 'a,b\n1,2\n')).toMatchObject({
      status: 'failed',
      error: { code: 'SLUICE_COLUMN_MISSING' },
    })
    await expect(describeTable('dynamodb:///Never', { env: server.env, options: {} })).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
    })
  })
})
