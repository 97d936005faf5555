import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { fileConnector } from '../../src/connectors/file/connector.ts'
import type { EndpointRequest } from '../../src/connectors/connector.ts'
import { compress } from '../../src/compression/compress.ts'
import type { BatchForm } from '../../src/core/batch.ts'
import type { CopyOptions, Environment } from '../../src/core/options.ts'
import type { Source } from '../../src/core/ports.ts'
import { startMisbehavingHttp } from '../support/misbehaving-http.ts'
import { freshBucket, type S3Address, s3Do, sharedServices } from '../support/services.ts'
import { buildZip } from '../unit/compression/build-zip.ts'
import { describeSource, rowText, type SourceUnderTest } from './source-suite.ts'
import { digest } from './store-subject.ts'

const COLUMNS = ['id', 'name', 'note']

/** Rows of many lengths, some quoted, some over two lines, some NULL, some empty. */
function makeRows(count: number, seed: number): (string | null)[][] {
  return Array.from({ length: count }, (_, i) => {
    const id = String(i * 7 + seed)
    const name = i % 11 === 0 ? null : i % 13 === 0 ? '' : `näme ${'x'.repeat(i % 40)}`
    return [id, name, i % 17 === 0 ? `two\nlines, "quoted" ${i}` : `note ${i}`]
  })
}

const csvField = (value: string | null): string =>
  value === null ? '' : /[",\n\t]|^$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value
const delimited = (rows: (string | null)[][], delimiter: string): string =>
  [COLUMNS, ...rows].map((row) => `${row.map(csvField).join(delimiter)}\n`).join('')
const jsonLines = (rows: (string | null)[][]): string =>
  rows.map((row) => `${JSON.stringify(Object.fromEntries(COLUMNS.map((name, i) => [name, row[i]])))}\n`).join('')

interface Kind {
  readonly name: string
  readonly form: BatchForm
  readonly options?: CopyOptions
  pack(rows: (string | null)[][]): Promise<Uint8Array> | Uint8Array
}

const csv = (rows: (string | null)[][]): Buffer => Buffer.from(delimited(rows, ','))

const KINDS = {
  csv: { name: 'a.csv', form: 'csv', pack: csv },
  csvRows: { name: 'a.csv', form: 'rows', pack: csv },
  tsv: { name: 'a.tsv', form: 'csv', pack: (rows) => Buffer.from(delimited(rows, '\t')) },
  jsonl: { name: 'a.jsonl', form: 'rows', pack: (rows) => Buffer.from(jsonLines(rows)) },
  gzip: { name: 'a.csv.gz', form: 'csv', pack: (rows) => gzipSync(csv(rows)) },
  zstd: { name: 'a.csv.zst', form: 'csv', pack: (rows) => zstd(csv(rows)) },
  zip: { name: 'a.zip', form: 'csv', pack: (rows) => buildZip([{ name: 'in/side.csv', data: csv(rows) }]) },
  utf16: { name: 'a.csv', form: 'csv', pack: (rows) => Buffer.from(`\uFEFF${delimited(rows, ',')}`, 'utf16le') },
  bytes: { name: 'a.csv.gz', form: 'bytes', pack: (rows) => gzipSync(csv(rows)) },
} as const satisfies Record<string, Kind>

type KindName = keyof typeof KINDS

async function zstd(bytes: Uint8Array): Promise<Uint8Array> {
  const compressor = await compress('zstd')
  return Buffer.concat([...(await compressor.write(bytes)), ...(await compressor.end())])
}

/** Where files are put, and the URL under which sluice reads them. */
interface Place {
  readonly url: (name: string) => string
  readonly put: (name: string, bytes: Uint8Array) => Promise<void>
  readonly options?: CopyOptions
  readonly env?: Environment
  readonly stdin?: () => AsyncIterable<Uint8Array>
  readonly inUse?: () => number
  readonly close: () => Promise<void>
}

async function subjectOf(kind: Kind, place: Place, prefix = false): Promise<SourceUnderTest> {
  const spoolDir = mkdtempSync(join(tmpdir(), 'sluice-spool-'))
  const lists = prefix ? [makeRows(6000, 1), makeRows(40, 2), makeRows(9000, 3)] : [makeRows(16_000, 1)]
  const packed = await Promise.all(lists.map(async (rows) => kind.pack(rows)))
  const nameOf = (i: number): string => (prefix ? `dir/${i}-${kind.name}` : kind.name)
  for (const [i, bytes] of packed.entries()) await place.put(nameOf(i), bytes)
  return {
    form: kind.form,
    columns: COLUMNS,
    expected: packed.map((bytes, i) => (kind.form === 'bytes' ? [digest(bytes)] : (lists[i] ?? []).map(rowText))),
    open: (): Promise<Source> =>
      openSource({
        url: place.url(prefix ? 'dir/' : kind.name),
        options: { ...kind.options, ...place.options },
        env: place.env ?? {},
        spoolDir,
        stdin: place.stdin?.(),
      }),
    change: async () => {
      for (const [i, bytes] of packed.entries()) {
        const other = Uint8Array.from(bytes)
        other[other.length - 2] = (other[other.length - 2] ?? 0) ^ 1
        await place.put(nameOf(i), other)
      }
    },
    ...(place.inUse === undefined ? {} : { inUse: place.inUse }),
    close: async () => {
      await place.close()
      rmSync(spoolDir, { recursive: true })
    },
  }
}

async function openSource(
  request: Pick<EndpointRequest, 'url' | 'options' | 'env' | 'spoolDir' | 'stdin'>,
): Promise<Source> {
  const source = await fileConnector.openSource?.({
    ...request,
    reporter: { warn: () => undefined, retried: () => undefined },
    signal: new AbortController().signal,
    retryForMs: 10_000,
  })
  if (source === undefined) throw new Error('no source')
  return source
}

async function local(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-source-'))
  const opened = (): number =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder)
      } catch {
        return false
      }
    }).length
  return {
    url: (name) => join(folder, '/') + name,
    put: (name, bytes) => {
      const path = join(folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(`${path}.new`, bytes)
      renameSync(`${path}.new`, path)
      return Promise.resolve()
    },
    inUse: opened,
    close: () => Promise.resolve(rmSync(folder, { recursive: true })),
  }
}

async function http(): Promise<Place> {
  const server = await startMisbehavingHttp()
  return {
    url: (name) => `${server.origin}/${name}`,
    put: (name, bytes) => Promise.resolve(void server.file(`/${name}`, { bytes })),
    close: () => server.stop(),
  }
}

/** One bucket a service, a prefix in it for each test. */
const buckets = new Map<string, Promise<string>>()

async function s3(address: S3Address): Promise<Place> {
  const made = buckets.get(address.endpoint) ?? freshBucket(address)
  buckets.set(address.endpoint, made)
  const folder = `${await made}/t${randomBytes(6).toString('hex')}`
  return {
    url: (name) => `s3://${folder}/${name}`,
    put: async (name, body) => void (await s3Do(address, { method: 'PUT', path: `/${folder}/${name}`, body })),
    options: { s3Endpoint: address.endpoint },
    env: address.env,
    close: () => Promise.resolve(),
  }
}

async function stdin(): Promise<Place> {
  let bytes: Uint8Array = new Uint8Array()
  async function* input(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.byteLength; at += 65_536) yield bytes.subarray(at, at + 65_536)
  }
  return {
    url: () => '-',
    put: (_, content) => {
      bytes = content
      return Promise.resolve()
    },
    stdin: input,
    close: () => Promise.resolve(),
  }
}

const names = Object.keys(KINDS).filter((name): name is KindName => name in KINDS)
for (const name of names) describeSource(`${name}, local`, async () => subjectOf(KINDS[name], await local()))
for (const name of ['csv', 'jsonl', 'gzip', 'zip', 'bytes'] as const) {
  describeSource(`${name}, HTTP`, async () => subjectOf(KINDS[name], await http()))
  describeSource(`${name}, S3`, async () => subjectOf(KINDS[name], await s3(sharedServices().versitygw)))
}
for (const name of ['csv', 'gzip', 'bytes'] as const) {
  describeSource(`${name}, a folder`, async () => subjectOf(KINDS[name], await local(), true))
  describeSource(`${name}, a prefix on S3`, async () =>
    subjectOf(KINDS[name], await s3(sharedServices().versitygw), true),
  )
}
for (const name of ['csv', 'jsonl', 'gzip', 'zstd', 'utf16'] as const) {
  const kind: Kind = KINDS[name]
  const options: CopyOptions = { sourceFormat: name === 'jsonl' ? 'jsonl' : 'csv' }
  describeSource(`${name}, standard input`, async () => subjectOf({ ...kind, options }, await stdin()), { once: true })
}
