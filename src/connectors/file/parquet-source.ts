import type { Batch, BatchForm, RowPlace } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Json, Partition, Position } from '../../core/job.ts'
import type { Abortable, ByteRange, ObjectInfo, Source, SourceReadOptions, Store } from '../../core/ports.ts'
import type { Schema } from '../../core/schema.ts'
import { openParquetReader } from '../../formats/parquet/parquet-reader.ts'
import type { ParquetReader, ParquetRows } from '../../formats/parquet/parquet-reader.ts'
import { readParallel } from '../../stores/parallel-read.ts'
import type { EndpointRequest } from '../connector.ts'
import { endpointName } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { compressionByName } from './file-format.ts'
import type { Match } from './match.ts'

/** Bytes of a request, and how many are in flight for one row group: 16 MiB. */
const RANGE_BYTES = 4 * 1024 * 1024
const RANGES_IN_FLIGHT = 4
/** Footers that are kept, the latest: a footer may have some MiB. */
const OPEN_FILES = 16

/** An object and which of its row groups; null for an object that has none. */
interface GroupState {
  readonly name: string
  readonly info: ObjectInfo
  readonly group: number | null
}

/**
 * Parquet files and objects as a source of rows: each row group is a partition, read by ranges that are pinned to the state in which the object was
 * first seen. In memory is one row group a reader.
 *
 * @throws SLUICE_USAGE where an object is compressed as a whole or has no ranges
 */
export function createParquetSource(
  request: EndpointRequest,
  where: { store: Store; endpoint: Endpoint; matches: readonly Match[] },
): Source {
  for (const { info } of where.matches) checkReadable(request, info, where.endpoint)
  return new ParquetSource(request, where)
}

class ParquetSource implements Source {
  readonly forms: readonly BatchForm[] = ['rows']
  readonly replayable: boolean
  readonly #request: EndpointRequest
  readonly #store: Store
  readonly #endpoint: Endpoint
  readonly #matches: readonly Match[]
  readonly #open = new Map<string, Promise<ParquetReader>>()
  #bytesRead = 0
  #told = false

  constructor(request: EndpointRequest, where: { store: Store; endpoint: Endpoint; matches: readonly Match[] }) {
    this.#request = request
    this.#store = where.store
    this.#endpoint = where.endpoint
    this.#matches = where.matches
    this.replayable = where.matches.every(({ info }) => info.replayable)
  }

  async describe(o: Abortable): Promise<Schema> {
    const [first] = this.#matches
    if (first === undefined) throw new SluiceError('SLUICE_NOTHING_MATCHES', 'nothing matches')
    const { columns } = await this.#reader(first, o)
    this.#tellOfFolders(columns.map(({ name }) => name))
    return { columns, named: true, typed: true }
  }

  /** Once: `year=2020/` stands for a column that writers leave out of the files (Hive, Spark, Athena), and that no row has here. */
  #tellOfFolders(columns: readonly string[]): void {
    if (this.#told) return
    this.#told = true
    const folders = this.#matches.flatMap(({ name }) => name.split('/').slice(0, -1))
    const keys = new Set(folders.map((folder) => /^([^=]+)=/.exec(folder)?.[1] ?? '').filter((key) => key !== ''))
    const missing = [...keys].filter((key) => !columns.includes(key))
    if (missing.length === 0) return
    const [first = ''] = missing
    this.#request.reporter.warn(
      `no row has what the folders' names tell (${missing.map((key) => `${key}=…`).join(', ')}): read a folder at a time, with --set ${first}=VALUE`,
    )
  }

  async plan(o: Abortable): Promise<readonly Partition[]> {
    const all: Partition[] = []
    for (const match of this.#matches) {
      const { groups } = await this.#reader(match, o)
      const { url } = match.info
      if (groups.length === 0) all.push({ id: match.name, url, bytes: 0, rows: 0, state: this.#state(match, null) })
      for (const [i, { rows, start, end }] of groups.entries())
        all.push({ id: `${match.name}#${i}`, url, bytes: end - start, rows, state: this.#state(match, i) })
    }
    return all
  }

  async *read(partition: Partition, o: SourceReadOptions): AsyncGenerator<Batch> {
    o.signal.throwIfAborted()
    const { name, info, group } = this.#stateOf(partition)
    if (group === null) return
    const reader = await this.#reader({ name, info }, o)
    const known = reader.groups[group]
    if (known === undefined)
      throw new SluiceError('SLUICE_SOURCE_CHANGED', 'the file has fewer row groups than were planned', {
        where: { url: partition.url },
      })
    const bytes = known.end - known.start
    const positionOf = (row: number): Position => {
      return { byte: row >= known.rows ? bytes : Math.floor((bytes / known.rows) * row), row, line: 0 }
    }
    let row = 0
    try {
      for await (const batch of reader.rowsOf(group, o.signal)) {
        const begin = Math.max(0, (o.from?.row ?? 0) - row)
        const end = Math.min(batch.rows.length, (o.until?.row ?? Number.POSITIVE_INFINITY) - row)
        if (end > begin) {
          const range = { first: row + begin, end: row + end, before: known.firstRow, positionOf }
          yield rowsBatch({ columns: batch.columns, rows: batch.rows.slice(begin, end) }, range)
          o.signal.throwIfAborted()
        }
        row += batch.rows.length
        if (o.until !== undefined && row >= o.until.row) return
      }
    } catch (error) {
      throw error instanceof SluiceError ? error.at({ url: partition.url }) : error
    }
  }

  bytesRead(): number {
    return this.#bytesRead
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  #reader({ name, info }: Match, o: Abortable): Promise<ParquetReader> {
    const known = this.#open.get(name)
    if (known !== undefined) return known
    const opened = openParquetReader((range) => this.#bytes(info, range, o), info.size ?? 0).catch((error: unknown) => {
      this.#open.delete(name)
      throw error instanceof SluiceError ? error.at({ url: info.url }) : error
    })
    this.#open.set(name, opened)
    const [oldest] = this.#open.keys()
    if (this.#open.size > OPEN_FILES && oldest !== undefined) this.#open.delete(oldest)
    return opened
  }

  async #bytes(info: ObjectInfo, range: ByteRange, { signal }: Abortable): Promise<Uint8Array> {
    const { parallelism } = this.#request.options
    const inFlight = typeof parallelism === 'number' ? Math.max(1, parallelism) : RANGES_IN_FLIGHT
    const bytes = new Uint8Array(range.end - range.start)
    let at = 0
    for await (const chunk of readParallel(this.#store, info, range, {
      rangeBytes: RANGE_BYTES,
      inFlight: () => inFlight,
      signal,
    })) {
      bytes.set(chunk.subarray(0, bytes.byteLength - at), at)
      at += chunk.byteLength
    }
    this.#bytesRead += at
    return at < bytes.byteLength ? bytes.subarray(0, at) : bytes
  }

  /** The address of an HTTP source may hold a password or a signature, which no state keeps: it is taken from the request. */
  #state({ name, info }: Match, group: number | null): Json {
    const key = this.#endpoint.scheme === 'http' ? '' : info.key
    const { storageClass = null, contentType = null } = info
    return { name, info: { ...info, key, storageClass, contentType }, group }
  }

  #stateOf(partition: Partition): GroupState {
    const state: unknown = partition.state
    if (!isGroupState(state))
      throw new SluiceError('SLUICE_STATE', `the recorded state of partition ${partition.id} makes no sense`)
    return this.#endpoint.scheme === 'http' ? { ...state, info: { ...state.info, key: this.#endpoint.key } } : state
  }
}

function rowsBatch(
  batch: ParquetRows,
  range: { first: number; end: number; before: number; positionOf: (row: number) => Position },
): Batch {
  const start = range.positionOf(range.first)
  const end = range.positionOf(range.end)
  const places = batch.rows.map((_, i): RowPlace => {
    const row = range.before + range.first + i + 1
    return { row, line: row, byte: start.byte }
  })
  const { columns, rows } = batch
  return {
    form: 'rows',
    columns,
    rows,
    places,
    start,
    end,
    mayEnd: true,
    filtered: 0,
    sourceBytes: end.byte - start.byte,
  }
}

function checkReadable(request: EndpointRequest, info: ObjectInfo, endpoint: Endpoint): void {
  const where = { url: info.url }
  const named = compressionByName(
    endpointName({ ...endpoint, key: endpoint.scheme === 'http' ? endpoint.key : info.key }),
  )
  const compression = request.options.sourceCompression ?? named
  if (compression !== 'none')
    throw new SluiceError(
      'SLUICE_USAGE',
      `Parquet inside ${compression} cannot be read: its parts are found by ranges`,
      {
        where,
        hint: 'decompress it first: sluice copy FILE.parquet.gz FILE.parquet --sink-compression none',
      },
    )
  if (!info.ranged || info.size === null)
    throw new SluiceError('SLUICE_USAGE', 'Parquet is read by ranges, which this source does not have', {
      where,
      hint: 'copy it to a file first',
    })
}

function isGroupState(value: unknown): value is GroupState {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    typeof value.name === 'string' &&
    'group' in value &&
    (value.group === null || typeof value.group === 'number') &&
    'info' in value &&
    typeof value.info === 'object' &&
    value.info !== null &&
    'key' in value.info
  )
}
