import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import type { SinkRequest } from '../../src/connectors/connector.ts'
import { fileConnector } from '../../src/connectors/file/connector.ts'
import { postgresConnector } from '../../src/connectors/postgres/connector.ts'
import type { Batch, BytesBatch, CsvBatch, RowsBatch } from '../../src/core/batch.ts'
import { START, type Partition } from '../../src/core/job.ts'
import type { CopyOptions } from '../../src/core/options.ts'
import type { SinkContext } from '../../src/core/ports.ts'
import {
  freshBucket,
  freshDatabase,
  psql,
  type PostgresAddress,
  type S3Address,
  s3Do,
  sharedServices,
} from '../support/services.ts'
import { describeLane } from './lane-suite.ts'
import { describeSink, type SinkUnderTest } from './sink-suite.ts'
import { digest, patterned } from './store-subject.ts'

const MIB = 1024 * 1024
const SCHEMA = { columns: [{ name: 'id' }, { name: 'name' }], named: true }

/** Data of a job by partition: `rows` texts `id,name`, in batches of 100 rows. */
type Rows = Pick<SinkUnderTest, 'form' | 'schema' | 'partitions' | 'batches' | 'contents' | 'extentBytes'>

function rowsData(form: 'csv' | 'rows', partitionRows: readonly number[]): Rows {
  const partitions: Partition[] = partitionRows.map((_, i) => ({
    id: `p${i}`,
    url: `test:p${i}`,
    bytes: null,
    state: null,
  }))
  const texts = new Map(
    partitions.map(({ id }, i) => [
      id,
      Array.from({ length: partitionRows[i] ?? 0 }, (_x, row) => `${i * 1_000_000 + row},name ${row}`),
    ]),
  )
  const batches = new Map(partitions.map(({ id }) => [id, batchesOf(texts.get(id) ?? [], form)]))
  return {
    form,
    schema: SCHEMA,
    partitions,
    batches,
    extentBytes: 4000,
    contents: (ids) => ids.flatMap((id) => texts.get(id) ?? []),
  }
}

function batchesOf(texts: readonly string[], form: 'csv' | 'rows'): Batch[] {
  const batches: Batch[] = []
  let byte = 0
  for (let row = 0; row < texts.length; row += 100) {
    const lines = texts.slice(row, row + 100)
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
    const columns = ['id', 'name']
    const place = {
      start: { byte, row, line: row },
      end: { byte: byte + bytes.byteLength, row: row + lines.length, line: row + lines.length },
      mayEnd: true,
    }
    byte += bytes.byteLength
    const csv: CsvBatch = {
      form: 'csv',
      bytes,
      rows: lines.length,
      columns,
      quoted: false,
      csv: { delimiter: ',', quote: '"', escape: '"' },
      ...place,
    }
    const places = lines.map((_, i) => ({ row: row + i + 1, line: row + i + 1, byte: place.start.byte }))
    const rows: RowsBatch = {
      form: 'rows',
      columns,
      rows: lines.map((line) => line.split(',')),
      places,
      sourceBytes: bytes.byteLength,
      filtered: 0,
      ...place,
    }
    batches.push(form === 'csv' ? csv : rows)
  }
  return batches
}

/** Objects of these sizes, in chunks of 64 KiB. */
function bytesData(sizes: readonly number[]): Rows {
  const partitions: Partition[] = sizes.map((bytes, i) => ({
    id: `p${i}.bin`,
    url: `test:p${i}.bin`,
    bytes,
    state: null,
  }))
  const whole = new Map(partitions.map(({ id }, i) => [id, patterned(sizes[i] ?? 0, i + 1)]))
  const batches = new Map(
    partitions.map(({ id }) => {
      const bytes = whole.get(id) ?? new Uint8Array()
      const list: BytesBatch[] = []
      for (let at = 0; at < bytes.byteLength; at += 65_536) {
        const end = Math.min(bytes.byteLength, at + 65_536)
        list.push({
          form: 'bytes',
          bytes: bytes.slice(at, end),
          start: { ...START, byte: at },
          end: { ...START, byte: end },
          mayEnd: true,
        })
      }
      return [id, list]
    }),
  )
  const contents = (ids: readonly string[]): string[] =>
    ids.map((id) => `${id} ${digest(whole.get(id) ?? new Uint8Array())}`)
  return { form: 'bytes', schema: { columns: [], named: false }, partitions, batches, extentBytes: null, contents }
}

interface Place {
  readonly url: string
  readonly options?: CopyOptions
  readonly env?: SinkRequest['env']
  /** Outputs that are there, whole, by name. */
  outputs(): Promise<ReadonlyMap<string, Uint8Array>>
  leftovers(): Promise<readonly string[]>
  close(): Promise<void>
}

function fileSubject(
  data: Rows,
  place: Place,
  read: (bytes: Uint8Array, name: string) => readonly string[],
): SinkUnderTest {
  return {
    ...data,
    open: (context) =>
      openSink(context, {
        url: place.url,
        options: place.options ?? {},
        env: place.env ?? {},
        raw: data.form === 'bytes',
      }),
    visible: async () => [...(await place.outputs())].flatMap(([name, bytes]) => read(bytes, name)),
    leftovers: () => place.leftovers(),
    close: () => place.close(),
  }
}

async function openSink(
  context: SinkContext,
  o: Pick<SinkRequest, 'url' | 'options' | 'env' | 'raw'> & { stdout?: NodeJS.WritableStream },
) {
  const connector = o.url.startsWith('postgres') ? postgresConnector : fileConnector
  const sink = await connector.openSink?.({
    ...o,
    context,
    reporter: context,
    signal: new AbortController().signal,
    retryForMs: 10_000,
    spoolDir: tmpdir(),
    sourceUrl: 'source.csv',
    tellSql: () => undefined,
  })
  if (sink === undefined) throw new Error('no sink')
  return sink
}

async function local(name: string, options?: CopyOptions): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-sink-'))
  const files = (): string[] => (existsSync(folder) ? readdirSync(folder) : [])
  return {
    url: join(folder, '/') + name,
    ...(options === undefined ? {} : { options }),
    outputs: () =>
      Promise.resolve(
        new Map(
          files()
            .filter((file) => !file.includes('.sluice-'))
            .map((file) => [file, readFileSync(join(folder, file))]),
        ),
      ),
    leftovers: () => Promise.resolve(files().filter((file) => file.includes('.sluice-'))),
    close: () => Promise.resolve(rmSync(folder, { recursive: true })),
  }
}

/** One bucket a service, a prefix in it for each test. */
const buckets = new Map<string, Promise<string>>()

async function s3(address: S3Address, name: string, options: CopyOptions = {}): Promise<Place> {
  const made = buckets.get(address.endpoint) ?? freshBucket(address)
  buckets.set(address.endpoint, made)
  const bucket = await made
  const prefix = `t${randomBytes(6).toString('hex')}/`
  const keys = async (query: Record<string, string>): Promise<string[]> => {
    const { body } = await s3Do(address, { method: 'GET', path: `/${bucket}`, query })
    return [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)]
      .map((match) => match[1] ?? '')
      .filter((key) => key.startsWith(prefix))
  }
  return {
    url: `s3://${bucket}/${prefix}${name}`,
    options: { s3Endpoint: address.endpoint, ...options },
    env: address.env,
    outputs: async () => {
      const found = new Map<string, Uint8Array>()
      for (const key of await keys({ 'list-type': '2', prefix }))
        found.set(key.slice(prefix.length), (await s3Do(address, { method: 'GET', path: `/${bucket}/${key}` })).body)
      return found
    },
    leftovers: () => keys({ uploads: '' }),
    close: () => Promise.resolve(),
  }
}

const asBytes = (bytes: Uint8Array, name: string): string[] => [`${name} ${digest(bytes)}`]
const asCsv = (bytes: Uint8Array): string[] => Buffer.from(bytes).toString().split('\n').slice(1, -1)
const asJsonLines = (bytes: Uint8Array): string[] =>
  Buffer.from(bytes)
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => Object.values<unknown>(JSON.parse(line)).join(','))

const gateway = (): S3Address => sharedServices().versitygw
const ROWS = [900, 1, 700]
const SIZES = [300_000, 1, 200_000]
const S3_SIZES = [11 * MIB, 70_000]

async function pipe(): Promise<SinkUnderTest> {
  const data = rowsData('csv', ROWS)
  const chunks: Buffer[] = []
  const stdout = new Writable({
    highWaterMark: 1024,
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(Buffer.from(chunk))
      setImmediate(done)
    },
  })
  return {
    ...data,
    open: (context) => openSink(context, { url: '-', options: { sinkFormat: 'csv' }, env: {}, raw: false, stdout }),
    visible: () => Promise.resolve(asCsv(Buffer.concat(chunks))),
    leftovers: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  }
}

/** A table of a fresh database. */
async function table(server: PostgresAddress, form: 'csv' | 'rows', options: CopyOptions): Promise<SinkUnderTest> {
  const data = rowsData(form, ROWS)
  const database = await freshDatabase(server, 'sinks')
  await psql(database, 'CREATE TABLE t (id int PRIMARY KEY, name text)')
  return {
    ...data,
    open: (context) => openSink(context, { url: `${database.url}?table=t`, options, env: {}, raw: false }),
    visible: async () =>
      (await psql(database, "SELECT id || ',' || name FROM t")).split('\n').filter((line) => line !== ''),
    kill: async () => {
      await psql(
        database,
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
      )
    },
    leftovers: async () => {
      const prepared = await psql(
        database,
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
      )
      return prepared.split('\n').filter((line) => line !== '')
    },
    close: () => database.drop(),
  }
}

const bytesLocal = async (): Promise<SinkUnderTest> =>
  fileSubject(bytesData(SIZES), await local('', { partSize: 65_000 }), asBytes)
const bytesS3 = async (): Promise<SinkUnderTest> =>
  fileSubject(bytesData(S3_SIZES), await s3(gateway(), '', { partSize: 5 * MIB }), asBytes)
const commitJob = async (): Promise<SinkUnderTest> => table(sharedServices().postgres15, 'csv', {})
const commitPartition = async (): Promise<SinkUnderTest> =>
  table(sharedServices().postgres15, 'csv', { commit: 'partition' })
const commitJobRows = async (): Promise<SinkUnderTest> => table(sharedServices().postgres18, 'rows', {})

describeSink('bytes to local files', bytesLocal, { visibleAt: 'partition' })
describeSink('bytes to S3', bytesS3, { visibleAt: 'partition' })
describeSink(
  'CSV to a local file',
  async () => fileSubject(rowsData('csv', ROWS), await local('out.csv', { partSize: 5000 }), asCsv),
  { visibleAt: 'finish' },
)
describeSink(
  'rows to local JSON Lines',
  async () => fileSubject(rowsData('rows', ROWS), await local('out.jsonl', { partSize: 5000 }), asJsonLines),
  { visibleAt: 'finish' },
)
describeSink(
  'CSV to a local gzip',
  async () => fileSubject(rowsData('csv', ROWS), await local('out.csv.gz'), (bytes) => asCsv(gunzipSync(bytes))),
  { visibleAt: 'finish' },
)
describeSink('rows to S3', async () => fileSubject(rowsData('rows', ROWS), await s3(gateway(), 'out.csv'), asCsv), {
  visibleAt: 'finish',
})
describeSink(
  'CSV under a prefix of S3, one object a partition',
  async () => fileSubject(rowsData('csv', ROWS), await s3(gateway(), '', { sinkFormat: 'csv' }), asCsv),
  { visibleAt: 'finish' },
)
describeSink(
  'rows under a local folder, one file a partition',
  async () => fileSubject(rowsData('rows', ROWS), await local('', { sinkFormat: 'jsonl' }), asJsonLines),
  { visibleAt: 'finish' },
)
describeSink('standard output', pipe, { visibleAt: 'write' })
describeSink('PostgreSQL, commit job', commitJob, { visibleAt: 'finish' })
describeSink('PostgreSQL 18, commit job, parsed rows', commitJobRows, { visibleAt: 'finish' })
describeSink('PostgreSQL, commit partition', commitPartition, { visibleAt: 'seal' })

describeLane('bytes to local files', bytesLocal)
describeLane('bytes to S3', bytesS3)
describeLane('PostgreSQL, commit job', commitJob)
describeLane('PostgreSQL, commit partition', commitPartition)
