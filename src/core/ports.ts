import type { Batch, BatchForm } from './batch.ts'
import type { SluiceError } from './errors.ts'
import type { Extent, Json, Output, Partition, Position, Receipt } from './job.ts'
import type { Column, Schema } from './schema.ts'

/** Every operation that may take long is stopped by its signal, and then rejects with the signal's reason. */
export interface Abortable {
  readonly signal: AbortSignal
}

/** Half-open: `[start, end)`, in bytes. `end` Infinity means to the end. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

// ---- stores: bytes by key and range -------------------------------------------------------------------------------

/** What a store knows of an object: enough to pin every later read to this very state of it. JSON. */
export interface ObjectInfo {
  /** Store-internal name: an absolute path, `bucket/key`, an http URL. */
  readonly key: string
  /** For people and errors; no secret (userinfo and signatures redacted). */
  readonly url: string
  /** Bytes; null where the server does not say. */
  readonly size: number | null
  /** What pins it: a strong ETag, or `mtime:…;size:…` for local files; null where the server offers none (not resumable). */
  readonly etag: string | null
  readonly modifiedMs: number | null
  /** Whether ranges can be asked for. */
  readonly ranged: boolean
  /** Whether it can be read a second time at all (false: standard input, HTTP without ETag or date). */
  readonly replayable: boolean
  readonly storageClass?: string | undefined
  readonly contentType?: string | undefined
}

export interface Listing extends Abortable {
  /** Told the key of what lies there and is no object: a link to nothing, a FIFO, a device, a socket. */
  readonly onLeftOut?: ((key: string) => void) | undefined
}

/** Reading. Methods may run in parallel. Errors are SluiceErrors with `where.url`. Retries of single requests happen inside, within `retryForMs`. */
export interface Store {
  /**
   * @throws SLUICE_NOT_FOUND, SLUICE_ACCESS_DENIED, SLUICE_CREDENTIALS, SLUICE_UNREACHABLE (told within 5 s)
   */
  head(key: string, o: Abortable): Promise<ObjectInfo>
  /**
   * Bytes of a range in order, as they arrive, never buffering more than a few chunks ahead of the consumer. Pinned to
   * `info.etag` on every request; a cut is taken up again at the byte where it broke. Chunks belong to the consumer.
   *
   * @throws SLUICE_SOURCE_CHANGED, SLUICE_SOURCE_SHORT, SLUICE_NETWORK
   */
  read(info: ObjectInfo, range: ByteRange, o: Abortable): AsyncIterable<Uint8Array>
  /** Objects whose key begins with the prefix, in key order, page by page. Absent where a store cannot list (http, stdin). */
  list?(prefix: string, o: Listing): AsyncIterable<ObjectInfo>
  close(): Promise<void>
}

export type IfExists = 'fail' | 'overwrite' | 'skip'

export interface WriteOptions {
  readonly ifExists: 'fail' | 'overwrite'
  /** Total bytes if known: decides single PUT or multipart, and the part size. */
  readonly size: number | null
  readonly contentType?: string | undefined
  /** What an earlier run's `ObjectWriter.token()` returned: take that unfinished object up again. */
  readonly resume?: Json | undefined
  /** Called with what must be durable before the first request that leaves something behind; awaited. */
  readonly record: (intent: Json) => Promise<void>
}

export interface WrittenPart {
  /** From 1, ascending by offset. */
  readonly number: number
  readonly offset: number
  readonly bytes: number
  readonly etag: string | null
}

/** One object in the making; invisible under its final name until `complete`. */
export interface ObjectWriter {
  /** JSON by which a later process finds the unfinished object (upload id, temporary name); durable via `record` before the first part. */
  token(): Json
  /** Parts that are there already, when it was taken up again (ListParts, the temporary file's checked length). */
  readonly present: readonly WrittenPart[]
  /** May run in parallel; resolves when the part is stored and its memory free. Same number again replaces it. */
  writePart(part: { number: number; offset: number; bytes: readonly Uint8Array[] }, o: Abortable): Promise<WrittenPart>
  /**
   * Makes the object visible, whole, once. Idempotent.
   *
   * @throws SLUICE_EXISTS where `ifExists` is fail and the store refuses
   */
  complete(parts: readonly WrittenPart[], o: Abortable): Promise<ObjectInfo>
  /** Leaves nothing behind; never throws. */
  abort(): Promise<void>
}

/** Writing. */
export interface WritableStore extends Store {
  /** Bytes of a part for an object of this size (null: unknown), given the user's wish (null: none), and how many will be in flight, where that is known. */
  partBytes(size: number | null, wanted: number | null, inFlight?: number): number
  /**
   * Tells, before anything is read, that nothing can be put there: no such folder, no such bucket. Leaves nothing behind, and passes over what it can't tell.
   *
   * @throws SLUICE_NOT_FOUND, SLUICE_ACCESS_DENIED, SLUICE_CREDENTIALS, SLUICE_UNREACHABLE
   */
  checkPlace(key: string, o: Abortable): Promise<void>
  openWriter(key: string, options: WriteOptions, o: Abortable): Promise<ObjectWriter>
  /** Aborts or removes what an intent recorded by an earlier run may have left; never touches anything else. */
  discard(intent: Json, o: Abortable): Promise<void>
  delete(key: string, o: Abortable): Promise<void>
}

// ---- compression: bytes to bytes ----------------------------------------------------------------------------------

export const COMPRESSIONS = ['none', 'gzip', 'zstd', 'bzip2', 'zip'] as const
export type CompressionName = (typeof COMPRESSIONS)[number]

// ---- formats: bytes to rows and back ------------------------------------------------------------------------------

export const FORMATS = ['csv', 'tsv', 'jsonl', 'parquet', 'dynamodb-json', 'raw'] as const
export type FormatName = (typeof FORMATS)[number]

/** What the beginning of a file tells. JSON, so that it can lie in a partition's state. */
export interface FormatHead {
  readonly columns: readonly Column[]
  /** Whether the names come from the file or `--columns`, or were made up. */
  readonly named: boolean
  /** Where the first data row begins. */
  readonly first: Position
  /** What the reader found out besides (delimiter, line end, encoding …). */
  readonly state: Json
}

/** Reads one format. `chunks` are decompressed bytes from the beginning, or from `from.byte` on where `from` is given. */
export interface FormatReader {
  readonly forms: readonly BatchForm[]
  /** Reads no more of `chunks` than it needs. Bytes, rows and lines before the first data row are counted into `first`. */
  head(chunks: AsyncIterable<Uint8Array>, o: ReadPlace): Promise<FormatHead>
  /**
   * Batches in order, pull-driven, none longer than a few hundred KiB unless one row is. Every batch's `mayEnd` is true.
   * `from` is `head.first` or the `end` of a batch of an earlier, identical read; chunks begin at that byte.
   * Where the format was transcoded (head says so by `seekable: false`), chunks always begin at byte 0 and the reader skips to `from`.
   */
  read(chunks: AsyncIterable<Uint8Array>, head: FormatHead, o: ReadOptions): AsyncIterable<Batch>
}

export interface ReadPlace extends Abortable {
  /** For errors. */
  readonly url: string
  readonly warn: (message: string) => void
}

export interface ReadOptions extends ReadPlace {
  readonly form: BatchForm
  readonly from: Position
}

/** Writes one format. One encoder makes one file; calls are sequential. */
export interface FormatEncoder {
  /** Bytes of the batch's rows; the header goes before the first. */
  encode(batch: Batch): Uint8Array
  /** What closes the file; the header, too, if no row came. */
  end(): Uint8Array
  /** How many values were written whose type the format does not have, by that type (`SS`, `NS`, `BS`, `B`): sets as arrays, binary as text. */
  lost?(): ReadonlyMap<string, number>
}

// ---- sources and sinks --------------------------------------------------------------------------------------------

/** What the engine gives every source and sink: where to tell things. */
export interface Reporter {
  warn(message: string): void
  /** A request or an operation is being tried again. */
  retried(reason: { readonly throttled: boolean }): void
}

/**
 * Where rows come from. Call order: describe, plan, then read (several partitions may be read at once), close last, always.
 */
export interface Source {
  /** Forms that `read` can give, cheapest first. */
  readonly forms: readonly BatchForm[]
  /** False where a second read is impossible (standard input): nothing can be dealt again, no resume. */
  readonly replayable: boolean
  /** Whether the order of its rows means nothing (a table): then several partitions may flow into one output side by side. Default: it matters. */
  readonly unordered?: boolean | undefined
  /**
   * Whether each run sees its own state of the source (a snapshot that is gone with the run): a resume plans anew and begins from nothing.
   * Default: partitions stay as they were planned.
   */
  readonly restarts?: boolean | undefined
  /** Of one that `restarts`: whether an error says that the state which is read is gone, and that another one may last (a standby had to replay changes). */
  mayRestart?(error: SluiceError): boolean
  /** Partitions that are best read at once where nobody says; default: as many as there are lanes. */
  readonly readers?: number | undefined
  /** Looks at as little as possible. @throws usage errors: what is wrong before any row was read */
  describe(o: DescribeOptions): Promise<Schema>
  /** Disjoint, together everything, in a stable order. JSON, kept in the state folder and pinned (ETag, size and time). */
  plan(o: Abortable): Promise<readonly Partition[]>
  /**
   * In order, pull-driven: the source runs ahead by no more than its own bounded window. `from` defaults to the beginning.
   * With `until`, ends there exactly (it is the end of an extent of an earlier read).
   */
  read(partition: Partition, o: SourceReadOptions): AsyncIterable<Batch>
  /** Bytes taken from the store so far (compressed, if it is), for progress and the summary. */
  bytesRead(): number
  /** How much of the bytes that partitions say they have is done, where those are not the ones that are read (a table's pages). For progress. */
  bytesDone?(): number
  close(): Promise<void>
}

export interface DescribeOptions extends Abortable {
  /** Every column has to be named, since the sink can take no other later: a source whose rows have names of their own reads all of them first. */
  readonly everyColumn?: boolean | undefined
}

export interface SourceReadOptions extends Abortable {
  readonly form: BatchForm
  readonly from?: Position | undefined
  readonly until?: Position | undefined
  /** The same will be read once more in this run: what costs most to read (fetching, decompressing) may be kept until then, but not in memory. */
  readonly readAgain?: boolean | undefined
}

/** What a sink is told before anything else. */
export interface SinkContext extends Reporter {
  readonly jobId: string
  /** Source, sink and options of the job in one hash. */
  readonly fingerprint: string
  /** Whether the job ran before. */
  readonly resumed: boolean
  /** Whether an unfinished job of the same fingerprint that the sink itself knows of is no obstacle (`--new-job`). */
  readonly newJob: boolean
  /** Entries that earlier runs of this job recorded, oldest first. */
  readonly recorded: readonly Json[]
  /** Makes an entry durable (fsync) before it resolves: intents, transaction ids. Never holds a secret. */
  record(entry: Json): Promise<void>
}

export interface SinkPlan {
  /** The source's columns after mapping, in order. */
  readonly schema: Schema
  readonly partitions: readonly Partition[]
  /** The form in which batches will come. */
  readonly form: BatchForm
  /** False: nothing can be dealt again after a lane broke. */
  readonly replayable: boolean
  /** As the source says of itself. */
  readonly unordered: boolean
  readonly restarts: boolean
}

export interface FinishResult {
  readonly outputs: readonly Output[]
  /** Extents whose receipts turned out void (a lane's transaction is lost): they are dealt again, then finish is called again. */
  readonly lost: readonly Extent[]
}

/**
 * Where rows go. Call order: prepare; recover where the job ran before; openLane, write and seal; endPartition for
 * each partition whose extents are all sealed; finish, until nothing is lost; close last, always. abort instead of finish
 * where the job failed: it leaves the sink as the guarantees say.
 */
export interface Sink {
  /** Forms that lanes take, cheapest first. */
  readonly forms: readonly BatchForm[]
  /**
   * Most lanes that make sense, and how many to begin with where nobody says (2; more come while they bring more). `ordered`: extents come in
   * source order, one after the other; `begin` is called in that order, and where there are several lanes, all of them are used. `final`: what a lane throws ends the job, nothing is dealt again (a store has retried by itself).
   * `alternating`: nothing is read while an extent is written (`--parallelism 0`). Read after `prepare`.
   */
  readonly lanes: {
    readonly max: number
    readonly ordered: boolean
    readonly first?: number | undefined
    readonly final?: boolean | undefined
    readonly alternating?: boolean | undefined
  }
  /**
   * Bytes of an extent that suit the sink; exact (save the last) where `exact`: a part. `rows`: no extent has more rows than that (a row group).
   * Read after `prepare`.
   */
  readonly extentBytes: { readonly target: number; readonly exact: boolean; readonly rows?: number | undefined }
  /** Whether it wants a type of every column whose values carry none: those that have none are inferred before `prepare`. */
  readonly wantsTypes?: boolean | undefined
  /** Whether rows may bring columns that the source's schema does not name: JSON, items. Default: an error, nothing is dropped silently. */
  readonly anyColumns?: boolean | undefined
  /** Whether what is written is in the target at once, and stays there whatever becomes of the job: a put. */
  readonly inPlace?: boolean | undefined
  /** Looks at the target before any row is read: the schema with the types that the target itself decides (its key's). */
  meet?(schema: Schema, o: Abortable): Promise<Schema>
  /** Checks and makes ready; nothing visible is changed that abort could not undo. */
  prepare(plan: SinkPlan, o: Abortable): Promise<void>
  /** What earlier runs left that counts: receipts of extents that need not be written again. */
  recover?(o: Abortable): Promise<readonly Receipt[]>
  openLane(o: Abortable): Promise<Lane>
  /** All extents of a partition are sealed: its output may become visible now (one object a partition). Idempotent. */
  endPartition?(partition: Partition, receipts: readonly Receipt[], o: Abortable): Promise<void>
  /** Makes what is sealed durable and visible, once: commits, Complete, rename. Idempotent. */
  finish(receipts: readonly Receipt[], o: Abortable): Promise<FinishResult>
  /** The job failed or stops. `resumable`: keep what a resume can use. `began`: extents were handed to lanes in this run. Never throws. */
  abort(reason: unknown, o: { readonly resumable: boolean; readonly began?: boolean }): Promise<void>
  close(): Promise<void>
}

/** One writer of a sink. Calls are sequential within a lane (begin, write …, seal, begin, …); lanes run in parallel. */
export interface Lane {
  /** An extent comes: its batches follow, then its seal. */
  begin(extent: Extent): Promise<void>
  /**
   * Accepts a batch of the extent in hand; resolves when there is room for the next: that is the back-pressure. The batch's bytes are the lane's
   * from then on and nobody alters them; the engine keeps them, too, until the extent is sealed.
   */
  write(batch: Batch): Promise<void>
  /** The extent is complete in this lane. The batches written since the last seal are exactly the extent. */
  seal(extent: Extent): Promise<Receipt>
  /** Leaves nothing of unsealed work behind, never throws. Sealed extents that were not durable are void. */
  abort(reason: unknown): Promise<void>
  /** Ends an idle lane without harm to what it sealed. */
  close(): Promise<void>
}
