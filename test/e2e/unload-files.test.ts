import { gunzipSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshBucket, freshDatabase, psql, s3Do, sharedServices } from '../support/services.ts'
import { makePlace, type Place } from './bytes-place.ts'

const ROWS = 20_000

describe('a table to files on S3', () => {
  const address = sharedServices().versitygw
  let place: Place
  let database: Awaited<ReturnType<typeof freshDatabase>>
  let bucket: string
  let source: string
  beforeAll(async () => {
    place = makePlace(address)
    bucket = await freshBucket(address)
    database = await freshDatabase(sharedServices().postgres18, 'unload')
    await psql(
      database,
      `CREATE TABLE people (id int, name text) PARTITION BY RANGE (id);
       CREATE TABLE people_a PARTITION OF people FOR VALUES FROM (0) TO (5000);
       CREATE TABLE people_b PARTITION OF people FOR VALUES FROM (5000) TO (${ROWS});
       INSERT INTO people SELECT i, 'name ' || i FROM generate_series(0, ${ROWS - 1}) i`,
    )
    source = `${database.url}?table=people`
  })
  afterAll(async () => {
    place.remove()
    await database.drop()
  })
  const get = async (url: string): Promise<Buffer> =>
    Buffer.from((await s3Do(address, { method: 'GET', path: url.replace('s3:/', '') })).body)

  it('Parquet, one object a partition, and a manifest that counts them', async () => {
    const manifest = `s3://${bucket}/list.json`
    const flags = ['--sink-format', 'parquet', '--manifest', manifest, '--row-group-rows', '3000']
    const { code, result, stderr } = await place.copy(source, `s3://${bucket}/p/`, ...flags)
    expect([code, stderr.includes('error')]).toEqual([0, false])
    expect(result.outputs.map(({ url, rows }) => [url, rows])).toEqual([
      [`s3://${bucket}/p/people-00001.parquet`, 5000],
      [`s3://${bucket}/p/people-00002.parquet`, ROWS - 5000],
    ])
    const ids = new Set<unknown>()
    for (const { url } of result.outputs)
      for (const row of await parquetReadObjects({ file: Uint8Array.from(await get(url)).buffer })) ids.add(row['id'])
    expect(ids.size).toBe(ROWS)
    const list: unknown = JSON.parse((await get(manifest)).toString())
    expect(list).toMatchObject({ jobId: result.jobId, entries: result.outputs.map(({ url, etag }) => ({ url, etag })) })
  })

  it('one gzip of CSV with CRLF, by name', async () => {
    const url = `s3://${bucket}/people.csv.gz`
    const { code, result } = await place.copy(source, url, '--line-end', 'crlf')
    expect([code, result.rowsWritten]).toEqual([0, ROWS])
    const lines = gunzipSync(await get(url))
      .toString()
      .split('\r\n')
    expect([lines[0], lines.at(-1), new Set(lines).size]).toEqual(['id,name', '', ROWS + 2])
  })
})
