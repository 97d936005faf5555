import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  copy,
  type CopyOptions,
  createTable,
  deleteTable,
  describeTable,
  inspect,
  type JobResult,
  verify,
  type VerifyResult,
} from '../../src/index.ts'
import type { EndpointRequest } from '../../src/connectors/connector.ts'
import { createDynamoSource } from '../../src/connectors/dynamodb/source.ts'
import type { Value } from '../../src/core/batch.ts'
import type { Partition, Position } from '../../src/core/job.ts'
import type { Source } from '../../src/core/ports.ts'
import { type DynamoPlace, openDynamoPlace } from '../support/dynamo-place.ts'
import { dynamoCall, type DynamoServer } from '../support/dynamodb.ts'

const ITEMS = 1200
let place: DynamoPlace
let server: DynamoServer
let folder = ''

beforeAll(async () => {
  place = await openDynamoPlace('unload')
  ;({ server, folder } = place)
})
afterAll(() => place.close())

const path = (name: string): string => join(folder, name)
const base = () => ({ env: server.env, stateDir: path('state') })

async function run(source: string, sink: string, options: CopyOptions = {}): Promise<JobResult> {
  return copy({ ...base(), source, sink, options })
}

async function done(source: string, sink: string, options: CopyOptions = {}): Promise<JobResult> {
  const result = await run(source, sink, options)
  expect(result).toMatchObject({ status: 'done', rowsRead: ITEMS, rowsWritten: ITEMS })
  return result
}

const check = (source: string, sink: string, options: CopyOptions = {}): Promise<VerifyResult> =>
  verify(source, sink, { ...base(), options })

/** Items of many kinds: an attribute that comes up late, all types, numbers past what JavaScript has. */
function item(i: number): object {
  return {
    id: { S: `k${i}` },
    n: { N: i % 2 === 0 ? `12345678901234567890.${i}1` : `-${i}` },
    text: { S: `ü "${i}"\n` },
    flag: { BOOL: i % 2 === 0 },
    ...(i % 3 === 0
      ? {}
      : { bin: { B: Buffer.from([i % 256, 255]).toString('base64') }, tags: { SS: ['b', `a${i}`] } }),
    ...(i % 10 === 0 ? { nothing: { NULL: true } } : {}),
    ...(i === ITEMS - 1 ? { late: { M: { list: { L: [{ N: '1.5' }, { S: 'x' }] }, set: { NS: ['3', '2'] } } } } : {}),
  }
}

describe('a table of items of all types', () => {
  const table = 'dynamodb:///Items'
  beforeAll(async () => {
    writeFileSync(
      path('items.json'),
      Array.from({ length: ITEMS }, (_, i) => `${JSON.stringify({ Item: item(i) })}\n`).join(''),
    )
    const options = { sourceFormat: 'dynamodb-json', createTable: true, partitionKey: 'id:S' } as const
    await done(path('items.json'), table, options)
  })

  it('holds what was loaded', async () => {
    expect(await check(path('items.json'), table, { sourceFormat: 'dynamodb-json' })).toMatchObject({
      same: true,
      source: { rows: ITEMS },
      sink: { rows: ITEMS },
      differences: [],
    })
  })

  it('goes to DynamoDB JSON and back into another table, equal to the last type', async () => {
    const result = await done(table, path('out.ddb.json'), { sinkFormat: 'dynamodb-json' })
    expect(result.warnings).toEqual([])
    expect(result.partitions).toBeGreaterThanOrEqual(10)
    expect(await check(table, path('out.ddb.json'), { sinkFormat: 'dynamodb-json' })).toMatchObject({ same: true })
    const sorted = (name: string): string[] =>
      readFileSync(path(name), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.stringify(sortedItem(line)))
        .sort()
    expect(sorted('out.ddb.json')).toEqual(sorted('items.json'))
    const options = { sourceFormat: 'dynamodb-json', createTable: true, partitionKey: 'id' } as const
    await done(path('out.ddb.json'), 'dynamodb:///Again', options)
    await done('dynamodb:///Again', path('again.ddb.json'), { sinkFormat: 'dynamodb-json' })
    expect(sorted('again.ddb.json')).toEqual(sorted('items.json'))
  })

  it('goes to JSON Lines, with numbers exact and one warning of lost types, and back', async () => {
    const result = await done(table, path('out.jsonl.gz'))
    expect(result.warnings).toEqual([
      expect.stringMatching(/800 binary values became base64, 800 string sets became arrays, 1 number sets/) as string,
    ])
    expect(await check(table, path('out.jsonl.gz'))).toMatchObject({ same: true, differences: [] })
    await done(path('out.jsonl.gz'), 'dynamodb:///FromJson', { createTable: true, partitionKey: 'id:S' })
    expect(await check(path('out.jsonl.gz'), 'dynamodb:///FromJson')).toMatchObject({ same: true })
  })

  it('goes to CSV with every attribute as a column, by a first pass, and back', async () => {
    const result = await done(table, path('out.csv'))
    expect(result.warnings.join()).toContain('is read twice')
    const header = readFileSync(path('out.csv'), 'utf8').split('\n')[0] ?? ''
    expect(header.split(',').sort()).toEqual(['bin', 'flag', 'id', 'late', 'n', 'nothing', 'tags', 'text'])
    expect(await check(table, path('out.csv'))).toMatchObject({ same: true, differences: [] })
  })

  it('drops no attribute silently: --columns must name all, or --select some', async () => {
    const failed = await run(table, path('few.csv'), { columns: ['id', 'n'] })
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'SLUICE_COLUMN_MISSING' } })
    const chosen = await done(table, path('chosen.csv'), { columns: ['id', 'n'], select: ['id', 'n'] })
    expect(chosen.warnings).toEqual([])
    expect(readFileSync(path('chosen.csv'), 'utf8').split('\n')[0]).toBe('id,n')
  })

  it('tells each kind of difference by its key', async () => {
    const lines = readFileSync(path('items.json'), 'utf8').trimEnd().split('\n')
    const changed = [...lines.slice(1, -1), '{"id":{"S":"new"}}'].map((line) =>
      line.replace('{"S":"k7"}', '{"S":"k7"},"x":{"N":"1"}'),
    )
    writeFileSync(path('changed.json'), `${changed.join('\n')}\n`)
    const result = await check(path('changed.json'), table, { sourceFormat: 'dynamodb-json' })
    expect(result.same).toBe(false)
    expect([...result.differences].sort((a, b) => (a.text < b.text ? -1 : 1))).toEqual([
      { kind: 'extra', text: 'id=k0' },
      { kind: 'extra', text: `id=k${ITEMS - 1}` },
      { kind: 'different', text: 'id=k7' },
      { kind: 'missing', text: 'id=new' },
    ])
  })

  it('keeps to --read-units, as the server counts them', async () => {
    let [units, most] = [0, 0]
    for (let segment = 0; segment < 16; segment += 1) {
      const body = { TableName: 'Items', ConsistentRead: true, Segment: segment, TotalSegments: 16 }
      const answer = await dynamoCall(server, 'Scan', { ...body, ReturnConsumedCapacity: 'TOTAL' })
      const { CapacityUnits } = (answer as { ConsumedCapacity: { CapacityUnits: number } }).ConsumedCapacity
      units += CapacityUnits
      most = Math.max(most, CapacityUnits)
    }
    const readUnits = Math.ceil(units / 1.5)
    const began = performance.now()
    await done(table, path('slow.jsonl'), { readUnits, select: ['id'] })
    // What the last page costs is not waited for.
    expect((units - most) / ((performance.now() - began) / 1000)).toBeLessThanOrEqual(readUnits)
  })

  it('is described and sampled by inspect', async () => {
    const result = await inspect(table, { env: server.env, options: {}, rows: 3 })
    expect(result).toMatchObject({
      format: 'DynamoDB',
      table: { name: 'Items', billing: 'on-demand', partitionKey: { name: 'id', type: 'S' } },
    })
    expect(result.sample).toHaveLength(3)
    expect(result.columns).toContainEqual({ name: 'id', type: 'string', nativeType: 'S', nullable: false })
    // Every attribute of the sample has its column.
    const names = result.columns.map((column) => column.name)
    for (const row of result.sample) expect(row).toHaveLength(names.length)
    expect(names).toContain('text')
    expect(result.sample.map((row) => row[names.indexOf('id')])).not.toContain(null)
  })

  it('is written as a CREATE TABLE of all its attributes', async () => {
    const { ddl } = await inspect(table, { env: server.env, options: {}, rows: 0, ddl: 'postgres' })
    expect(ddl).toMatch(/^CREATE TABLE "public"\."items" \(/)
    for (const name of ['bin', 'flag', 'id', 'late', 'n', 'nothing', 'tags', 'text']) expect(ddl).toContain(`"${name}"`)
  })
})

describe('a table whose segments have several pages', () => {
  const LARGE = 40
  const request = (): EndpointRequest => ({
    url: 'dynamodb:///Large',
    options: {},
    env: server.env,
    reporter: { warn: () => undefined, retried: () => undefined },
    signal: new AbortController().signal,
    retryForMs: 5_000,
    spoolDir: path('spool'),
    resumable: true,
  })

  async function ids(source: Source, partition: Partition, o: { from?: Position; until?: Position }): Promise<Value[]> {
    const found: Value[] = []
    const { signal } = request()
    for await (const batch of source.read(partition, { form: 'rows', signal, ...o }))
      if (batch.form === 'rows') found.push(...batch.rows.map((row) => row[batch.columns.indexOf('id')]))
    return found
  }

  it('is read on behind any page by another process', async () => {
    const line = (i: number): string => JSON.stringify({ id: `k${i}`, text: `${i}`.padEnd(120_000, 'x') })
    writeFileSync(path('large.jsonl'), Array.from({ length: LARGE }, (_, i) => `${line(i)}\n`).join(''))
    const loaded = await run(path('large.jsonl'), 'dynamodb:///Large', { createTable: true, partitionKey: 'id:S' })
    expect(loaded).toMatchObject({ status: 'done', rowsWritten: LARGE })
    const [first, second] = [await createDynamoSource(request()), await createDynamoSource(request())]
    const seen: Value[] = []
    let cuts = 0
    try {
      const { signal } = request()
      const [planned] = await first.plan({ signal })
      if (planned === undefined) throw new Error('no partition')
      // Two segments in place of sixteen: the pages are DynamoDB's, of 1 MB.
      const state = planned.state as { readonly scan: string }
      for (const segment of [0, 1]) {
        const partition = { ...planned, state: { ...state, segment, segments: 2 } }
        const whole: Value[] = []
        const ends: Position[] = []
        for await (const batch of first.read(partition, { form: 'rows', signal })) {
          if (batch.form === 'rows') whole.push(...batch.rows.map((row) => row[batch.columns.indexOf('id')]))
          ends.push(batch.end)
        }
        seen.push(...whole)
        for (const end of ends.slice(0, -1)) {
          cuts += 1
          expect(await ids(second, partition, { from: end })).toEqual(whole.slice(end.row))
          expect(await ids(second, partition, { until: end })).toEqual(whole.slice(0, end.row))
        }
      }
    } finally {
      await first.close()
      await second.close()
    }
    expect(new Set(seen).size).toBe(LARGE)
    expect(seen).toHaveLength(LARGE)
    expect(cuts).toBeGreaterThan(0)
  })
})

function sortedItem(line: string): object {
  const { Item } = JSON.parse(line) as { Item: Record<string, { SS?: string[]; NS?: string[] }> }
  return Object.entries(Item)
    .map(([name, value]) => [name, value.SS === undefined ? value : { SS: value.SS.toSorted() }] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => [name, name === 'late' ? JSON.stringify(value).replace('"2","3"', '"3","2"') : value])
}

describe('sluice table', () => {
  it('creates, describes and deletes', async () => {
    const url = 'dynamodb://eu-west-1/Readings'
    const request = { env: server.env, options: { partitionKey: 'sensor:S', sortKey: 'time:N' } }
    const created = await createTable(url, request)
    expect(created).toMatchObject({
      url,
      table: { status: 'ACTIVE', partitionKey: { name: 'sensor', type: 'S' }, sortKey: { name: 'time', type: 'N' } },
    })
    await expect(createTable(url, request)).rejects.toMatchObject({ code: 'SLUICE_EXISTS' })
    expect((await describeTable(url, request)).table).toEqual(created.table)
    await expect(deleteTable(url, request)).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
    await deleteTable(url, { ...request, options: { yes: true } })
    await expect(describeTable(url, request)).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND' })
  })

  it('wants a key, and a DynamoDB URL', async () => {
    const request = { env: server.env, options: {} }
    await expect(createTable('dynamodb:///Readings', request)).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
    await expect(describeTable('s3://bucket/Readings', request)).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
  })
})
