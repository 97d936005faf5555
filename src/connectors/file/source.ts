import type { Batch, BatchForm, BytesBatch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import { START } from '../../core/job.ts'
import type { Partition, Position } from '../../core/job.ts'
import type {
  Abortable,
  CompressionName,
  FormatHead,
  FormatName,
  FormatReader,
  ObjectInfo,
  ReadPlace,
  Source,
  SourceReadOptions,
  Store,
} from '../../core/ports.ts'
import type { Schema } from '../../core/schema.ts'
import { readParallel } from '../../stores/parallel-read.ts'
import type { EndpointRequest } from '../connector.ts'
import { withoutLists } from './beside-data.ts'
import { Rewindable, countBytes, firstBytes, sliceChunks } from './chunks.ts'
import { endpointName, openStore, parseEndpoint } from './endpoint.ts'
import { SOURCE_FORMATS_HINT, compressionByName, formatOfName, openReader } from './file-format.ts'
import { jsonKind } from './json-kind.ts'
import { FOREIGN_BYTES, refuseForeign } from './foreign-content.ts'
import { matchObjects } from './match.ts'
import type { Match } from './match.ts'
import { parquetMatches } from './parquet-matches.ts'
import { infoToJson, stateOf } from './partition-state.ts'
import { Spool } from './spool.ts'
import { holdsArchive, openEntry, readsByRanges } from './zip-entry.ts'

/**
 * Bytes of a range that is fetched by one request, and how many are in flight for one object where `--parallelism` does not say: 16 MiB.
 * Objects that are read at once share twice as many, with one each at least.
 */
const RANGE_BYTES = 4 * 1024 * 1024
const RANGES_IN_FLIGHT = 4
/** What is fetched to learn format and header; more follows only if a header is longer. */
const HEAD_BYTES = 256 * 1024
/** Enough for magic bytes and for a look at the first characters. */
const MAGIC_BYTES = 512

/** A stream of decompressed bytes with what was found out about it. */
interface OpenFile {
  readonly stream: Rewindable
  readonly reader: FormatReader
  readonly head: FormatHead
  readonly compression: CompressionName
}

/**
 * Files and objects as a source: store × compression × format. Every later read is pinned to the state in which an object was first seen.
 *
 * @throws SLUICE_USAGE
 */
export async function createFileSource(request: EndpointRequest): Promise<Source> {
  const endpoint = parseEndpoint(request.url)
  const store = await openStore(endpoint, request)
  try {
    const matches = request.raw === true ? null : await parquetMatches(request, { store, endpoint })
    if (matches === null) return new FileSource(request, { store, endpoint })
    const { createParquetSource } = await import('./parquet-source.ts')
    return createParquetSource(request, { store, endpoint, matches })
  } catch (error) {
    await store.close()
    throw error
  }
}

/** All bytes that a URL names, decompressed, one object after the other. */
export async function* readDecompressed(request: EndpointRequest): AsyncGenerator<Uint8Array> {
  const endpoint = parseEndpoint(request.url)
  const source = new FileSource(request, { store: await openStore(endpoint, request), endpoint })
  try {
    for (const partition of await source.plan(request)) yield* source.decompressed(partition, request)
  } finally {
    await source.close()
  }
}

class FileSource implements Source {
  readonly #request: EndpointRequest
  readonly #store: Store
  readonly #endpoint: ReturnType<typeof parseEndpoint>
  /** Heads of partitions: as many as there are partitions. */
  readonly #heads = new Map<string, { head: FormatHead; format: FormatName; compression: CompressionName }>()
  readonly #spool: Spool
  #matches: readonly Match[] | null = null
  /** Standard input, whose head was read and whose rest is still to come. */
  #open: OpenFile | null = null
  #bytesRead = 0
  /** Partitions that are being read now. */
  #reading = 0
  #replayable: boolean

  constructor(request: EndpointRequest, where: { store: Store; endpoint: ReturnType<typeof parseEndpoint> }) {
    this.#request = request
    this.#store = where.store
    this.#endpoint = where.endpoint
    this.#spool = new Spool(request.spoolDir)
    this.#replayable = where.endpoint.scheme !== 'stdio'
  }

  /** Of JSON no CSV comes: where the first file is one, rows of all are parsed. */
  get forms(): readonly BatchForm[] {
    const { format = 'csv' } = [...this.#heads.values()][0] ?? {}
    return format === 'csv' || format === 'tsv' ? ['bytes', 'csv', 'rows'] : ['bytes', 'rows']
  }

  get replayable(): boolean {
    return this.#replayable
  }

  async describe(o: Abortable): Promise<Schema> {
    const [first] = await this.plan(o)
    if (first === undefined)
      throw new SluiceError('SLUICE_NOTHING_MATCHES', 'nothing matches', { where: { url: this.#endpoint.url } })
    const file = await this.#openFile(first, o)
    if (this.#replayable) await file.stream.close()
    else this.#open = file
    const format = this.#heads.get(first.id)?.format
    const typed = format === 'jsonl' || format === 'dynamodb-json'
    return { columns: file.head.columns, named: file.head.named, typed }
  }

  async plan(o: Abortable): Promise<readonly Partition[]> {
    this.#matches ??= await this.#match(o)
    this.#replayable = this.#matches.every((match) => match.info.replayable)
    return this.#matches.map(({ name, info }) => ({
      id: name,
      url: info.url,
      bytes: info.size,
      state: { info: infoToJson(this.#endpoint.scheme === 'http' ? { ...info, key: '' } : info) },
    }))
  }

  /** As bytes, all is copied; of rows, what holds some is read. */
  async #match({ signal }: Abortable): Promise<readonly Match[]> {
    const { options, raw, reporter } = this.#request
    const how = { signal, store: this.#store, warn: (message: string) => reporter.warn(message) }
    const found = await matchObjects(this.#store, this.#endpoint, {
      ...how,
      glob: options.glob !== false,
      asBytes: raw,
    })
    return raw === true ? found : withoutLists(found, how)
  }

  async *read(partition: Partition, o: SourceReadOptions): AsyncGenerator<Batch> {
    o.signal.throwIfAborted()
    for await (const batch of o.form === 'bytes' ? this.#readBytes(partition, o) : this.#readRows(partition, o)) {
      yield batch
      // What is in memory already must not be given to one who wants no more of it.
      o.signal.throwIfAborted()
    }
  }

  async *decompressed(partition: Partition, o: Abortable): AsyncGenerator<Uint8Array> {
    yield* (await this.#decompressed(partition, o)).stream.rest()
  }

  /** The pinned object. The address of an HTTP source may hold a password or a signature, which no state keeps: it is taken from the request. */
  #infoOf(partition: Partition): ObjectInfo {
    const { info } = stateOf(partition)
    return this.#endpoint.scheme === 'http' ? { ...info, key: this.#endpoint.key } : info
  }

  bytesRead(): number {
    return this.#bytesRead
  }

  async close(): Promise<void> {
    await this.#open?.stream.close()
    await this.#spool.close()
    await this.#store.close()
  }

  async *#readBytes(partition: Partition, o: SourceReadOptions): AsyncGenerator<BytesBatch> {
    const info = this.#infoOf(partition)
    let at = o.from?.byte ?? 0
    for await (const bytes of this.#raw(info, { start: at, end: o.until?.byte ?? Number.POSITIVE_INFINITY }, o)) {
      const start = { ...START, byte: at }
      at += bytes.byteLength
      yield { form: 'bytes', bytes, start, end: { ...START, byte: at }, mayEnd: true }
    }
  }

  async *#readRows(partition: Partition, o: SourceReadOptions): AsyncGenerator<Batch> {
    const file = await this.#fileForReading(partition, o)
    const from = o.from ?? file.head.first
    if (o.until !== undefined && from.byte >= o.until.byte && from.row >= o.until.row) return await file.stream.close()
    const seekable = isSeekable(file.head)
    const place = this.#place(partition, o)
    const chunks = seekable ? await this.#chunksFrom(partition, file, { ...o, from }) : file.stream.rest()
    // Which form a file can be read in is known once it is open: under one prefix may lie CSV and JSON Lines.
    const form = (!seekable && o.until !== undefined) || !file.reader.forms.includes(o.form) ? 'rows' : o.form
    for await (const batch of file.reader.read(chunks, file.head, { ...place, form, from })) {
      const cut = seekable || o.until === undefined ? batch : cutAtRow(batch, o.until)
      if (cut !== null) yield cut
      if (o.until !== undefined && batch.end.row >= o.until.row && !seekable) return
    }
  }

  /** A file whose head is known; standard input goes on where `describe` stopped. */
  async #fileForReading(partition: Partition, o: SourceReadOptions): Promise<OpenFile> {
    if (this.#open !== null) {
      const file = this.#open
      this.#open = null
      return file
    }
    if (!this.#replayable && this.#heads.has(partition.id))
      throw new SluiceError('SLUICE_NOT_REPLAYABLE', 'the source can be read only once', {
        where: { url: partition.url },
      })
    return this.#openFile(partition, o)
  }

  /** Decompressed bytes from a position on, where positions are offsets in them. */
  async #chunksFrom(
    partition: Partition,
    file: OpenFile,
    o: SourceReadOptions & { from: Position },
  ): Promise<AsyncIterable<Uint8Array>> {
    const end = o.until?.byte ?? Number.POSITIVE_INFINITY
    if (this.#spool.has(partition.id)) {
      await file.stream.close()
      return this.#spool.read(partition.id, { start: o.from.byte, end })
    }
    // The head is in memory: who begins right behind it, and wants all, goes on with the same requests.
    const goesOn = o.from.byte <= HEAD_BYTES && o.until === undefined
    if (file.compression !== 'none' || !this.#replayable || goesOn)
      return sliceChunks(file.stream.rest(), o.from.byte, end)
    await file.stream.close()
    return this.#raw(this.#infoOf(partition), { start: o.from.byte, end }, o)
  }

  async #openFile(partition: Partition, o: Abortable & Pick<SourceReadOptions, 'readAgain'>): Promise<OpenFile> {
    const info = this.#infoOf(partition)
    const known = this.#heads.get(partition.id)
    if (known !== undefined && this.#spool.has(partition.id)) {
      const stream = new Rewindable(this.#spool.read(partition.id, { start: 0, end: Number.POSITIVE_INFINITY }))
      return { ...known, stream, reader: await openReader(known.format, this.#request.options, info.url) }
    }
    const opened = await this.#decompressed(partition, o)
    const { compression } = opened
    const costly = compression !== 'none' || this.#endpoint.scheme !== 'file'
    // What is compressed is as large as that at least.
    const keep = (chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> =>
      this.#spool.keep(partition.id, chunks, { leastBytes: info.size ?? 0 })
    const stream = o.readAgain === true && costly ? opened.stream.through(keep) : opened.stream
    try {
      if (known === undefined && compression !== 'none') await refuseTwice(stream, { compression, url: info.url })
      if (known === undefined)
        refuseForeign(await firstBytes(stream, FOREIGN_BYTES), { url: info.url, options: this.#request.options })
      const format = known?.format ?? (await this.#format(opened.name, stream, info.url))
      const reader = await openReader(format, this.#request.options, info.url)
      const head = known?.head ?? (await reader.head(stream.look(), this.#place(partition, o)))
      this.#heads.set(partition.id, { head, format, compression })
      return { stream, reader, head, compression }
    } catch (error) {
      await stream.close()
      throw error
    }
  }

  /** The stream below its compression, which the magic bytes tell, then the flag, then the name. */
  async #decompressed(
    partition: Partition,
    o: Abortable,
  ): Promise<{ stream: Rewindable; compression: CompressionName; name: string }> {
    const info = this.#infoOf(partition)
    const { entry: wantedEntry, sourceCompression: wanted } = this.#request.options
    const name = endpointName({ ...this.#endpoint, key: info.key })
    const raw = new Rewindable(this.#raw(info, { start: 0, end: Number.POSITIVE_INFINITY }, o))
    try {
      const { detectCompression } = await import('../../compression/detect.ts')
      const told = detectCompression(await firstBytes(raw, MAGIC_BYTES))
      const promised = wanted ?? compressionByName(name)
      const within = told === 'none' && promised === 'zip' && (await holdsArchive(this.#store, info, o))
      const compression = wanted === 'none' ? 'none' : within ? 'zip' : told
      if (promised !== compression && wanted !== 'none')
        this.#request.reporter.warn(
          `${info.url} is read as ${inWords(compression)}, as its first bytes say; its name or --source-compression promises ${inWords(promised)}`,
        )
      if (compression === 'none') return { stream: raw, compression, name }
      if (compression === 'zip') {
        if (readsByRanges(info)) await raw.close()
        const entry = await openEntry(this.#store, info, {
          ...o,
          entry: wantedEntry,
          spoolDir: this.#request.spoolDir,
          count: (bytes) => (this.#bytesRead += bytes),
          bytes: () => raw.rest(),
        })
        return { stream: new Rewindable(entry.chunks, entry.close), compression, name: entry.name }
      }
      const { decompress } = await import('../../compression/decompress.ts')
      const plain = decompress(compression, raw.rest(), {
        url: info.url,
        signal: o.signal,
        warn: (message) => this.#request.reporter.warn(message),
      })
      return { stream: new Rewindable(plain, () => raw.close()), compression, name }
    } catch (error) {
      await raw.close()
      throw error
    }
  }

  async #format(name: string, stream: Rewindable, url: string): Promise<FormatName> {
    const { sourceFormat } = this.#request.options
    if (sourceFormat !== undefined) return sourceFormat
    const byName = formatOfName(name)
    if (byName !== null && byName !== 'jsonl') return byName
    const head = Buffer.from(await firstBytes(stream, MAGIC_BYTES))
      .toString('latin1')
      .trimStart()
    const kind = jsonKind(head, url)
    if (byName !== null || kind !== 'jsonl') return kind
    const hint = head.startsWith('PAR1')
      ? 'it looks like Parquet: --source-format parquet'
      : head.startsWith('{')
        ? 'it looks like JSON Lines: --source-format jsonl'
        : SOURCE_FORMATS_HINT
    throw new SluiceError('SLUICE_UNKNOWN_FORMAT', 'neither the name nor the first bytes tell the format', {
      where: { url: this.#endpoint.url },
      hint,
    })
  }

  /** Bytes of the store, counted, by parallel ranges where they are long enough. The first range is small: a header needs no more. */
  #raw(info: ObjectInfo, range: { start: number; end: number }, o: Abortable): AsyncIterable<Uint8Array> {
    const { parallelism } = this.#request.options
    const wanted = parallelism === undefined || parallelism === 'auto' ? RANGES_IN_FLIGHT : Math.max(1, parallelism)
    const inFlight = (): number => Math.max(1, Math.min(wanted, Math.floor((2 * wanted) / Math.max(1, this.#reading))))
    const read = (part: { start: number; end: number }): AsyncIterable<Uint8Array> =>
      readParallel(this.#store, info, part, { rangeBytes: RANGE_BYTES, inFlight, signal: o.signal })
    return countBytes(headFirst(info, range, read), (bytes) => (this.#bytesRead += bytes))
  }

  #place(partition: Partition, o: Abortable): ReadPlace {
    return { signal: o.signal, url: partition.url, warn: (message) => this.#request.reporter.warn(message) }
  }
}

/** @throws SLUICE_COMPRESSION where what was decompressed is compressed once more: no text begins like that */
async function refuseTwice(stream: Rewindable, o: { compression: CompressionName; url: string }): Promise<void> {
  const { detectCompression } = await import('../../compression/detect.ts')
  const inner = detectCompression(await firstBytes(stream, MAGIC_BYTES))
  if (inner === 'none') return
  throw new SluiceError('SLUICE_COMPRESSION', `what the ${o.compression} holds is ${inner} again: compressed twice`, {
    where: { url: o.url },
    hint: 'decompress it once before',
  })
}

function inWords(compression: CompressionName): string {
  return compression === 'none' ? 'not compressed' : compression
}

async function* headFirst(
  info: ObjectInfo,
  range: { start: number; end: number },
  read: (part: { start: number; end: number }) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const split = info.ranged && range.start === 0 && range.end > HEAD_BYTES && (info.size ?? 0) > HEAD_BYTES
  if (split) yield* read({ start: 0, end: HEAD_BYTES })
  yield* read(split ? { start: HEAD_BYTES, end: range.end } : range)
}

/** Rows before a position only, where a batch reaches past it: for files in other encodings, whose positions are no offsets. */
function cutAtRow(batch: Batch, until: Position): Batch | null {
  if (batch.form !== 'rows' || batch.end.row <= until.row) return batch
  const keep = batch.places.findIndex((place) => place.row > until.row)
  const [rows, places] = [batch.rows.slice(0, keep), batch.places.slice(0, keep)]
  return keep <= 0 ? null : { ...batch, rows, places, end: until }
}

function isSeekable({ state }: FormatHead): boolean {
  return !(typeof state === 'object' && state !== null && 'seekable' in state && state['seekable'] === false)
}
