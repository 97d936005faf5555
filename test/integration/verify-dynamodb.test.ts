import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, verify, type VerifyResult } from '../../src/index.ts'
import { type DynamoPlace, openDynamoPlace } from '../support/dynamo-place.ts'

/** One attribute, of another type in each item. */
const MIXED = [
  { N: '1' },
  { S: '1' },
  { S: '007' },
  { N: '7' },
  { N: '1E+3' },
  { BOOL: true },
  { S: 'true' },
  { S: '[1]' },
  { L: [{ N: '1' }] },
  { SS: ['b', 'a'] },
  { M: { a: { N: '1.0' } } },
  { B: 'AAE=' },
  { NULL: true },
]
const table = 'dynamodb:///Mixed'

let place: DynamoPlace

beforeAll(async () => {
  place = await openDynamoPlace('verify')
  const file = join(place.folder, 'mixed.json')
  writeFileSync(file, MIXED.map((v, i) => `${JSON.stringify({ Item: { id: { S: `k${i}` }, v } })}\n`).join(''))
  const result = await run(file, table, { createTable: true, partitionKey: 'id:S' })
  if (result.rowsWritten !== MIXED.length) throw new Error(JSON.stringify(result))
})
afterAll(() => place.close())

const run = (source: string, sink: string, options: CopyOptions = {}): ReturnType<typeof copy> =>
  copy({ source, sink, options, env: place.server.env, stateDir: join(place.folder, 'state') })
const check = (source: string, sink: string): Promise<VerifyResult> =>
  verify(source, sink, { env: place.server.env, options: {}, stateDir: join(place.folder, 'state') })

describe.each(['csv', 'parquet', 'jsonl'])('attributes of several types as %s', (ending) => {
  it('are the same as what they came from, either way', async () => {
    const file = join(place.folder, `out.${ending}`)
    expect(await run(table, file)).toMatchObject({ status: 'done' })
    expect(await check(table, file)).toMatchObject({ same: true, differences: [] })
    expect(await check(file, table)).toMatchObject({ same: true, differences: [] })
  })
})

it('a text that lost its zeros, and a number that is another, are differences', async () => {
  const file = join(place.folder, 'changed.csv')
  await run(table, file)
  writeFileSync(file, readFileSync(file, 'utf8').replace('k2,007', 'k2,7').replace(/k3,7$/m, 'k3,8'))
  const { same, differences } = await check(file, table)
  expect(same).toBe(false)
  expect(differences.map(({ kind, text }) => `${kind} ${text}`).toSorted()).toEqual([
    'different id=k2',
    'different id=k3',
  ])
})
