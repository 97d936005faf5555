import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { makeLoadPlace, type LoadPlace } from '../support/load-place.ts'
import { freshBucket, sharedServices } from '../support/services.ts'
import { s3Request } from '../support/s3-request.ts'

let place: LoadPlace
let folder: string
let bucket: string
let env: Record<string, string>

beforeAll(async () => {
  place = await makeLoadPlace('postgres15', 'dynamodb_export')
  folder = place.folder
  const store = sharedServices().versitygw
  bucket = await freshBucket(store, 'export')
  env = { ...store.env }
})
afterAll(() => place.close())

const move = (source: string, sink: string, options: CopyOptions = {}): Promise<JobResult> =>
  copy({ source, sink, options, env, stateDir: join(folder, 'state'), newJob: true })
const lines = (...items: readonly object[]): string => items.map((item) => `${JSON.stringify(item)}\n`).join('')

describe("DynamoDB's own export", () => {
  const ITEMS = [
    { Item: { id: { S: 'a' }, n: { N: '1' }, tags: { SS: ['x', 'y'] } } },
    { Item: { id: { S: 'b' }, n: { N: '2.50' } } },
  ]
  // As the developer guide lays it out ("DynamoDB table export output format").
  const FILES: Readonly<Record<string, string | Buffer>> = {
    'manifest-summary.json':
      '{"version":"2020-06-30","exportArn":"arn:x","manifestFilesS3Key":"AWSDynamoDB/01/manifest-files.json","itemCount":2}\n',
    'manifest-summary.md5': 'abc=',
    'manifest-files.json':
      '{"itemCount":1,"md5Checksum":"x","etag":"y","dataFileS3Key":"AWSDynamoDB/01/data/p.json.gz"}\n',
    'manifest-files.md5': 'abc=',
    'data/p.json.gz': gzipSync(lines(ITEMS[0] ?? {})),
    'data/q.json.gz': gzipSync(lines(ITEMS[1] ?? {})),
  }

  it.each(['folder', 'bucket'])('is read from a %s as items, without its manifests', async (where) => {
    for (const [name, body] of Object.entries(FILES)) {
      mkdirSync(join(folder, 'AWSDynamoDB/01/data'), { recursive: true })
      writeFileSync(join(folder, 'AWSDynamoDB/01', name), body)
      const path = `/${bucket}/AWSDynamoDB/01/${name}`
      await s3Request(sharedServices().versitygw, { method: 'PUT', path, body })
    }
    const source = where === 'folder' ? join(folder, 'AWSDynamoDB/01/') : `s3://${bucket}/AWSDynamoDB/01/`
    await place.table('id text, n numeric, tags jsonb')
    const { result, rows } = await place.run(source, { env })
    expect({ error: result.error, rows: result.rowsRead }).toEqual({ error: undefined, rows: 2 })
    expect(rows).toBe('a|1|["x", "y"]\nb|2.50|~')
    expect(result.warnings).toEqual([
      expect.stringMatching(
        /passed over.*manifest-files\.json, manifest-files\.md5, manifest-summary\.json, manifest-summary\.md5$/,
      ),
    ])
    const one = await move(`${source}data/p.json.gz`, join(folder, `${where}.jsonl`))
    expect(one.warnings).toEqual([expect.stringContaining('1 string sets became arrays')])
    expect(readFileSync(join(folder, `${where}.jsonl`), 'utf8')).toBe('{"id":"a","n":1,"tags":["x","y"]}\n')
  })

  it('is as a whole no rows where it is incremental, and lines of JSON where somebody says so', async () => {
    const change = {
      Metadata: { WriteTimestampMicros: { N: '1' } },
      Keys: { id: { S: 'a' } },
      NewImage: { id: { S: 'a' } },
    }
    writeFileSync(join(folder, 'change.json'), lines(change))
    const result = await move(join(folder, 'change.json'), join(folder, 'change.csv'))
    expect(result).toMatchObject({
      rowsRead: 0,
      error: { code: 'SLUICE_UNKNOWN_FORMAT', hint: expect.stringContaining('jsonl') as string },
    })
    const said = await move(join(folder, 'change.json'), join(folder, 'change.csv'), { sourceFormat: 'jsonl' })
    expect(said.error).toBeUndefined()
  })

  it('what aws dynamodb scan prints is its items, by its looks', async () => {
    const items = ITEMS.map(({ Item }) => Item)
    writeFileSync(join(folder, 'scan.json'), JSON.stringify({ Items: items, Count: 2, ScannedCount: 2 }, null, 4))
    await place.table('id text, n numeric, tags jsonb')
    const { result, rows } = await place.run(join(folder, 'scan.json'))
    expect({ error: result.error, rows: result.rowsRead }).toEqual({ error: undefined, rows: 2 })
    expect(rows).toBe('a|1|["x", "y"]\nb|2.50|~')
  })

  it('a row whose key is called Item stays a row', async () => {
    const rows = [{ Item: { name: 'x', S: { a: 1 } } }, { Item: { S: 'y' } }]
    writeFileSync(join(folder, 'rows.json'), lines(...rows))
    await move(join(folder, 'rows.json'), join(folder, 'same.json'), { sinkFormat: 'jsonl' })
    expect(readFileSync(join(folder, 'same.json'), 'utf8')).toBe(lines(...rows))
  })
})

describe('the manifest of an output', () => {
  beforeEach(() => {
    rmSync(join(folder, 'out'), { recursive: true, force: true })
    writeFileSync(join(folder, 'in.csv'), 'id\n1\n2\n')
  })

  it.each(['jsonl', 'parquet', 'csv'] as const)(
    'is passed over when it lies beside its files: %s',
    async (sinkFormat) => {
      const manifest = join(folder, 'out/manifest.json')
      const options = { sinkFormat, manifest, select: ['id'] } as const
      expect((await move(join(folder, 'in.csv'), join(folder, 'out/'), options)).error).toBeUndefined()
      await place.table('id int')
      const { result, rows } = await place.run(join(folder, 'out/'))
      expect({ error: result.error, rows }).toEqual({ error: undefined, rows: '1\n2' })
      expect(result.warnings).toEqual([expect.stringContaining('manifest.json')])
    },
  )

  it('by another name is told for what it is', async () => {
    const options = { sinkFormat: 'jsonl', manifest: join(folder, 'out/list.json') } as const
    await move(join(folder, 'in.csv'), join(folder, 'out/'), options)
    await place.table('id int')
    const { result } = await place.run(join(folder, 'out/'))
    expect(result.error).toMatchObject({
      code: 'SLUICE_UNKNOWN_FORMAT',
      message: expect.stringContaining('lists the files') as string,
    })
  })

  it('is copied as all else where files are copied as bytes', async () => {
    const options = { sinkFormat: 'jsonl', manifest: join(folder, 'out/manifest.json') } as const
    await move(join(folder, 'in.csv'), join(folder, 'out/'), options)
    const result = await move(join(folder, 'out/'), join(folder, 'copied/'))
    expect(result.outputs).toHaveLength(2)
  })
})
