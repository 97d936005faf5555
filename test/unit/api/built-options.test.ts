import { describe, expect, it } from 'vitest'
import { cat } from '../../../src/api/cat.ts'
import { copy } from '../../../src/api/copy.ts'
import { inspect } from '../../../src/api/inspect.ts'
import { plan } from '../../../src/api/plan.ts'
import { verify } from '../../../src/api/verify.ts'
import type { CopyOptions } from '../../../src/core/options.ts'
import { layoutOf } from '../../../src/formats/parquet/rows-to-columns.ts'

const PG = 'postgres://u:p@127.0.0.1:1/db?table=t'
const DYNAMO = 'dynamodb:///T'
const none = { env: {}, stateDir: '/nowhere/state' }
const usage = (message: RegExp) =>
  expect.objectContaining({ code: 'SLUICE_USAGE', message: expect.stringMatching(message) as string }) as Error

describe('an option that nothing heeds is refused before anything is opened', () => {
  it.each<[string, string, CopyOptions, RegExp]>([
    ['in.csv', PG, { query: 'SELECT 1' }, /^--query is about a table of PostgreSQL, and the source is file$/],
    [DYNAMO, 'out.csv', { query: 'SELECT 1' }, /^--query .* the source is DynamoDB$/],
    ['in.csv', 'out.csv', { commit: 'partition' }, /^--commit .* the sink is file$/],
    ['in.csv', PG, { partitionKey: 'id:S' }, /^--partition-key is about a table of DynamoDB.* the sink is PostgreSQL$/],
    ['in.csv', 'out.csv', { sortKey: 'id:S' }, /^--sort-key/],
    ['in.csv', PG, { warmWrites: 9 }, /^--warm-writes/],
    [DYNAMO, 'out.csv', { writeUnits: 9 }, /^--write-units/],
    ['in.csv', PG, { dedupe: 'none' }, /^--dedupe/],
    ['in.csv', DYNAMO, { readUnits: 9 }, /^--read-units .* the source is file$/],
    [
      'in.csv',
      PG,
      { parquetCodec: 'zstd' },
      /^--parquet-codec is about Parquet that is written, and the sink is Postg/,
    ],
    [PG, 'out.csv', { rowGroupRows: 9 }, /^--row-group-rows/],
    [PG, 'out.csv', { delimiter: ';' }, /^--delimiter is about CSV that is read, and the source is PostgreSQL$/],
    [PG, 'out.csv', { header: false }, /^--no-header is about CSV that is read/],
    [PG, 'out.csv', { null: ['NULL'] }, /^--null is about CSV that is read/],
    [
      DYNAMO,
      'out.csv',
      { encoding: 'latin1' },
      /^--encoding is about files that are read, and the source is DynamoDB$/,
    ],
    ['in.jsonl', PG, { null: ['NA'] }, /^--null is about CSV that is read, and the source is JSON Lines$/],
    ['in.parquet', PG, { skipLines: 1 }, /^--skip-lines .* the source is Parquet$/],
    ['in', PG, { sourceFormat: 'jsonl', quote: 'none' }, /^--quote .* the source is JSON Lines$/],
    [
      'in.csv',
      PG,
      { ifExists: 'overwrite' },
      /^--if-exists is about files that are written, and the sink is PostgreSQL$/,
    ],
    ['in.csv', DYNAMO, { maxFileSize: 9 }, /^--max-file-size is about files that are written/],
    ['in.jsonl', 'out.jsonl', { lineEnd: 'crlf' }, /^--line-end is about CSV that is written/],
    [PG, 'out/', { sinkFormat: 'jsonl', rowGroupBytes: 9 }, /^--row-group-bytes/],
    ['in.parquet', 'out.parquet', { parquetCodec: 'zstd' }, /^--parquet-codec/],
    ['in.csv', 'out.jsonl', { type: ['a=number', 'id=BLOB'] }, /^--type id=BLOB: a file has no such type$/],
    ['in.csv', 'out.parquet', { type: ['id=numeric(99,2)'] }, /^--type id=numeric\(99,2\)/],
  ])('%s → %s %j', async (source, sink, options, message) => {
    await expect(plan({ source, sink, options, ...none })).rejects.toThrow(usage(message))
    await expect(copy({ source, sink, options, ...none })).rejects.toThrow(usage(message))
  })

  it('by the commands that read, too', async () => {
    const options: CopyOptions = { query: 'SELECT 1' }
    await expect(inspect('in.csv', { options, env: {} })).rejects.toThrow(usage(/^--query/))
    await expect(cat('in.csv', { options, env: {}, stdout: process.stdout })).rejects.toThrow(usage(/^--query/))
    await expect(verify('in.csv', 'out.csv', { options, ...none })).rejects.toThrow(usage(/^--query/))
    await expect(verify('in.csv', PG, { options, ...none })).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND' })
  })
})

it('an option that is heeded, or stands for any job, goes on to what is opened', async () => {
  const missing = { code: 'SLUICE_NOT_FOUND' }
  for (const [sink, options] of [
    ['out.parquet', { parquetCodec: 'zstd', rowGroupRows: 5, type: ['id=numeric(10,2)', 'b=binary:hex'] }],
    ['out/', { sinkFormat: 'parquet', rowGroupBytes: 5 }],
    ['out/', { ifExists: 'skip', delimiter: ';', header: false, lineEnd: 'lf' }],
    ['out', { lineEnd: 'crlf', null: ['NA'] }],
  ] as const)
    await expect(plan({ source: '/nowhere/in.csv', sink, options, ...none })).rejects.toMatchObject(missing)
  const options: CopyOptions = { parquetCodec: 'zstd', readUnits: 5 }
  const request = { source: '/nowhere/in.csv', sink: 'out.jsonl', options, ...none }
  await expect(plan({ ...request, defaults: ['parquetCodec', 'readUnits'] })).rejects.toMatchObject(missing)
  await expect(plan({ ...request, defaults: ['parquetCodec'] })).rejects.toThrow(usage(/^--read-units/))
})

it('a decimal that is asked for is one in Parquet, whatever the source says', () => {
  expect(layoutOf({ name: 'n', nativeType: 'numeric(10,2)' })).toEqual({ kind: 'decimal', precision: 10, scale: 2 })
  expect(layoutOf({ name: 'n', nativeType: 'N|S' })).toEqual({ kind: 'utf8' })
})
