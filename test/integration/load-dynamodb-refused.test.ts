import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { type DynamoPlace, idRows, openDynamoPlace } from '../support/dynamo-place.ts'
import { dynamoCall, type SeenBatch, scanAll } from '../support/dynamodb.ts'

let place: DynamoPlace
let tables = 0
let table = ''

beforeAll(async () => {
  place = await openDynamoPlace('refused')
})

afterAll(async () => {
  await place.close()
})

beforeEach(() => {
  table = `R-${(tables += 1)}`
  place.faults.decide = () => 'pass'
})

function load(text: string, options: CopyOptions = {}, name = 'in.csv'): Promise<JobResult> {
  const file = join(place.folder, `${tables}-${name}`)
  writeFileSync(file, text)
  return copy({
    source: file,
    sink: `dynamodb:///${table}`,
    options,
    env: place.faults.env,
    stateDir: join(place.folder, 'state'),
  })
}

const made: CopyOptions = { createTable: true, partitionKey: 'id' }

describe('keys of indexes', () => {
  beforeEach(async () => {
    const index = (IndexName: string, [hash, range]: readonly string[]): object => ({
      IndexName,
      KeySchema: [
        { AttributeName: hash, KeyType: 'HASH' },
        { AttributeName: range, KeyType: 'RANGE' },
      ],
      Projection: { ProjectionType: 'ALL' },
    })
    await dynamoCall(place.server, 'CreateTable', {
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [
        ...['id', 'year', 'label'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
        { AttributeName: 'rank', AttributeType: 'N' },
      ],
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
      GlobalSecondaryIndexes: [index('by-year', ['year', 'rank']), index('by-label', ['id', 'label'])],
    })
  })

  it('have the type of the index, whatever the column looks like', async () => {
    const result = await load('id,year,rank\na,1999,1\nb,2000,2\nc,,\n')
    expect(result).toMatchObject({ status: 'done', rowsWritten: 3 })
    expect(await scanAll(place.server, table)).toEqual(
      expect.arrayContaining([
        { id: { S: 'a' }, year: { S: '1999' }, rank: { N: '1' } },
        { id: { S: 'b' }, year: { S: '2000' }, rank: { N: '2' } },
        { id: { S: 'c' } },
      ]),
    )
  })

  it.each<[string, string, CopyOptions, string]>([
    ['of another type', 'id,rank\na,1\nb,x\n', {}, 'row 2 rank'],
    ['empty', 'id,year\na,1\nb,""\n', {}, 'row 2 year'],
    ['NULL', 'id,year\na,1\nb,\n', { empty: 'null' }, 'row 2 year'],
    ['too long', `id,label\na,${'ü'.repeat(513)}\n`, {}, 'row 1 label'],
    ['of another type in JSON', '{"id":"a","year":7}\n', {}, 'row 1 year'],
    ['a list in JSON', '{"id":"a","year":[7]}\n', {}, 'row 1 year'],
    ['empty in JSON', '{"id":"a"}\n{"id":"b","year":""}\n', {}, 'row 2 year'],
    ['null in JSON', '{"id":"a","year":null}\n', {}, 'row 1 year'],
  ])('%s: a bad row, by its place, before anything is sent', async (name, text, options, where) => {
    const result = await load(text, options, name.endsWith('JSON') ? 'in.jsonl' : 'in.csv')
    expect(result).toMatchObject({ status: 'failed', rowsWritten: 0, error: { code: 'SLUICE_VALUE' } })
    const [, row, column = ''] = where.split(' ')
    expect(result.error?.where).toMatch(new RegExp(`row ${row} .*column ${column}$`))
    expect(result.error?.message).toMatch(/index|is no number/)
  })

  it('--type cannot make another type of them', async () => {
    const result = await load('id,year\na,1999\n', { type: ['year=number'] })
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_USAGE', where: 'column year' } })
    expect(result.error?.message).toContain('by-year')
  })
})

describe('a request that is refused for one of its items', () => {
  const holds =
    (id: string) =>
    ({ items }: SeenBatch): boolean =>
      items.some((item) => item.id?.['S'] === id)

  it.each([
    ['ValidationException', 'SLUICE_VALUE'],
    ['ItemCollectionSizeLimitExceededException', 'SLUICE_CONSTRAINT'],
  ])('%s names the item by its key; others of the request are in', async (error, code) => {
    place.faults.decide = (batch) => (holds('23')(batch) ? { error } : 'pass')
    const result = await load(idRows(30), { ...made, workers: 0 })
    expect(result).toMatchObject({ status: 'failed', error: { code } })
    expect(result.error?.message).toContain('id = "23"')
    const ids = (await scanAll(place.server, table)).map((item) => Number(item.id?.['S']))
    expect(ids).toEqual(expect.arrayContaining(Array.from({ length: 22 }, (_, i) => i + 1)))
    expect(ids).not.toContain(23)
  })

  it('what is too much for a proxy in one request goes in one by one', async () => {
    place.faults.decide = ({ items }) => (items.length > 3 ? { error: '', status: 413 } : 'pass')
    expect(await load(idRows(60), made)).toMatchObject({ status: 'done', rowsWritten: 60 })
    expect(await scanAll(place.server, table)).toHaveLength(60)
  })
})
