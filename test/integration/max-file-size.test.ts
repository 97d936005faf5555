import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, verify } from '../../src/index.ts'
import { makeLoadPlace, type LoadPlace } from '../support/load-place.ts'

const MOST = 100_000
let place: LoadPlace

beforeAll(async () => {
  place = await makeLoadPlace('postgres18', 'max_file_size')
  await place.sql(
    `CREATE TABLE long AS SELECT i AS "a column of a long name", md5(i::text) AS a, (i % 3)::smallint AS s FROM generate_series(1, 8000) i`,
  )
})
afterAll(() => place.close())

describe('--max-file-size', () => {
  it.each<[string, CopyOptions]>([
    ['csv', {}],
    ['csv', { sinkCompression: 'gzip' }],
    ['jsonl', {}],
    ['parquet', {}],
    ['parquet', { parquetCodec: 'none' }],
  ])('holds for each file, and all but the last come close to it: %s %o', async (sinkFormat, options) => {
    const folder = join(place.folder, 'out/')
    rmSync(folder, { recursive: true, force: true })
    const result = await copy({
      source: `${place.db.url}?table=long`,
      sink: folder,
      options: { ...options, sinkFormat: sinkFormat as 'csv' | 'jsonl' | 'parquet', maxFileSize: MOST },
      env: {},
      stateDir: join(place.folder, 'state'),
    })
    expect(result.error).toBeUndefined()
    expect(result.outputs.reduce((sum, { rows }) => sum + (rows ?? 0), 0)).toBe(8000)
    const sizes = readdirSync(folder)
      .toSorted()
      .map((name) => statSync(join(folder, name)).size)
    expect(sizes).toEqual(result.outputs.map(({ bytes }) => bytes))
    expect(result.bytesWritten).toBe(sizes.reduce((sum, bytes) => sum + bytes, 0))
    expect(sizes.length).toBeGreaterThan(1)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MOST)
    expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThan(MOST * 0.6)
    const same = await verify(`${place.db.url}?table=long`, folder, {
      options: {},
      env: {},
      stateDir: join(place.folder, 'state'),
    })
    expect(same).toMatchObject({ same: true, sink: { rows: 8000 } })
  })
})
