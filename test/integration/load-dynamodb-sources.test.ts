import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compress } from '../../src/compression/compress.ts'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { type DynamoPlace, openDynamoPlace } from '../support/dynamo-place.ts'
import { type DynamoServer, scanAll, type WireItem } from '../support/dynamodb.ts'
import { freshBucket, s3Do, sharedServices } from '../support/services.ts'
import { buildZip } from '../unit/compression/build-zip.ts'

const COUNT = 300
const CODES = Array.from({ length: COUNT }, (_, i) => `0${i}`)
/** What each source holds: a key, a number, a text that looks like one, something left out. */
const ITEMS: readonly WireItem[] = CODES.map((code, i) => ({
  id: { S: `k${i}` },
  n: { N: String(i - 7) },
  code: { S: code },
  ...(i % 5 === 0 ? {} : { note: { S: `a, "${i}"\tü` } }),
}))

const noteOf = (i: number): string => (i % 5 === 0 ? '' : `"a, ""${i}""\tü"`)
const lines = (delimiter: string): string =>
  CODES.map((code, i) => [`k${i}`, i - 7, code, noteOf(i)].join(delimiter)).join('\n')
const CSV = Buffer.from(`id,n,code,note\n${lines(',')}\n`)
const TSV = Buffer.from(`id\tn\tcode\tnote\n${lines('\t')}\n`)
const objects = CODES.map((code, i) => ({
  id: `k${i}`,
  n: i - 7,
  code,
  ...(i % 5 === 0 ? {} : { note: `a, "${i}"\tü` }),
}))
const JSONL = Buffer.from(objects.map((one) => `${JSON.stringify(one)}\n`).join(''))
const DDB = Buffer.from(ITEMS.map((Item) => `${JSON.stringify({ Item })}\n`).join(''))

let place: DynamoPlace
let server: DynamoServer
let folder = ''
let bucket = ''
let tables = 0
const s3 = () => sharedServices().versitygw

beforeAll(async () => {
  place = await openDynamoPlace('sources')
  ;({ server, folder } = place)
  bucket = await freshBucket(s3(), 'ddbsources')
})
afterAll(() => place.close())

async function zstd(bytes: Uint8Array): Promise<Uint8Array> {
  const compressor = await compress('zstd')
  return Buffer.concat([...(await compressor.write(bytes)), ...(await compressor.end())])
}

interface Loading {
  readonly options?: CopyOptions
  readonly stdin?: AsyncIterable<Uint8Array>
}

/** Loads a source into a table of its own, and has exactly the items there. */
async function expectAll(source: string, { options = {}, stdin }: Loading = {}): Promise<JobResult> {
  const table = `Sources-${(tables += 1)}`
  const result = await copy({
    source,
    sink: `dynamodb:///${table}`,
    options: { createTable: true, partitionKey: 'id', s3Endpoint: s3().endpoint, ...options },
    // DynamoDB's server takes any key.
    env: { ...server.env, ...s3().env },
    stateDir: join(folder, 'state'),
    stdin,
  })
  expect(result).toMatchObject({ status: 'done', rowsRead: COUNT, rowsWritten: COUNT })
  const byId = (items: readonly WireItem[]): Map<unknown, WireItem> =>
    new Map(items.map((item) => [item['id']?.['S'], item]))
  expect(byId(await scanAll(server, table))).toEqual(byId(ITEMS))
  return result
}

const KINDS: readonly [name: string, bytes: () => Uint8Array | Promise<Uint8Array>, options?: CopyOptions][] = [
  ['a.csv', () => CSV],
  ['a.tsv', () => TSV],
  ['a.jsonl', () => JSONL],
  ['a.json', () => DDB, { sourceFormat: 'dynamodb-json' }],
  ['a.csv.gz', () => gzipSync(CSV)],
  ['a.tsv.zst', () => zstd(TSV)],
  ['a.jsonl.gz', () => gzipSync(JSONL)],
  ['a.json.gz', () => gzipSync(DDB), { sourceFormat: 'dynamodb-json' }],
  ['a.zip', () => buildZip([{ name: 'in/side.jsonl', data: JSONL }])],
]

describe.each(KINDS)('%s', (name, bytes, options = {}) => {
  it('from a file', async () => {
    const path = join(folder, name)
    writeFileSync(path, await bytes())
    await expectAll(path, { options })
  })

  it('from S3', async () => {
    await s3Do(s3(), { method: 'PUT', path: `/${bucket}/${name}`, body: await bytes() })
    await expectAll(`s3://${bucket}/${name}`, { options })
  })

  it('from standard input, which can be read once', async () => {
    const input = await bytes()
    async function* stdin(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < input.byteLength; at += 1000) yield await Promise.resolve(input.subarray(at, at + 1000))
    }
    const said = name.includes('tsv') ? 'tsv' : name.includes('csv') ? 'csv' : 'jsonl'
    const result = await expectAll('-', { options: { sourceFormat: said, ...options }, stdin: stdin() })
    expect(result.warnings.join()).toContain('cannot be resumed')
  })
})

it('several objects under a prefix, of several kinds', async () => {
  const half = CSV.toString('utf8').split('\n')
  const put = (name: string, body: Uint8Array | string) =>
    s3Do(s3(), { method: 'PUT', path: `/${bucket}/many/${name}`, body })
  await put('1.csv', `${half.slice(0, 101).join('\n')}\n`)
  await put('2.csv.gz', gzipSync(`${half[0] ?? ''}\n${half.slice(101, 251).join('\n')}\n`))
  await put('3.csv', `${half[0] ?? ''}\n${half.slice(251).join('\n')}`)
  await expectAll(`s3://${bucket}/many/`)
})
