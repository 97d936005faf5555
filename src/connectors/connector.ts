import type { FormatEncoder, FormatName, ObjectInfo, Reporter, Sink, SinkContext, Source } from '../core/ports.ts'
import type { CopyOptions, Environment, Mode } from '../core/options.ts'
import type { Json } from '../core/job.ts'
import type { Schema } from '../core/schema.ts'
import type { Batch } from '../core/batch.ts'

/** What every endpoint is opened with. */
export interface EndpointRequest {
  /** As the user wrote it; may hold a secret. */
  readonly url: string
  readonly options: CopyOptions
  readonly env: Environment
  readonly reporter: Reporter
  readonly signal: AbortSignal
  readonly retryForMs: number
  readonly stdin?: AsyncIterable<Uint8Array> | undefined
  readonly stdout?: NodeJS.WritableStream | undefined
  /** Folder for what must be spooled to disk (a zip from a server without ranges). */
  readonly spoolDir: string
  /** Whether a later run may go on where this one ended: what that needs is kept in `spoolDir`. */
  readonly resumable?: boolean | undefined
  /** Whether bytes are copied as they are. Default: no. */
  readonly raw?: boolean | undefined
}

export interface SinkRequest extends EndpointRequest {
  readonly context: SinkContext
  /** The source's URL, for the name of an output whose own is a prefix. */
  readonly sourceUrl: string
  /** Whether bytes are copied as they are. */
  readonly raw: boolean
  /** Tells of SQL before it is run. */
  readonly tellSql: (statement: string) => void
}

/** A comparison's result for one side. */
export interface SideDigest {
  readonly rows: number
  readonly hash: string
}

export interface Comparison {
  readonly source: SideDigest
  readonly sink: SideDigest
  readonly differences: readonly { readonly kind: 'missing' | 'extra' | 'different'; readonly text: string }[]
}

/** What of an endpoint decides whether bytes can be copied as they are: null where it holds rows and no file. */
export interface FileKind {
  readonly format: string
  readonly compression: string
}

/** A table's name as it is, without quotes; no schema where the sink's default is meant. */
export interface TableName {
  readonly schema?: string | undefined
  readonly name: string
}

export interface TableReport {
  readonly schema: Schema
  readonly name: TableName
  readonly rows: number | null
  readonly bytes: number | null
  readonly table: Json
}

/** Rows to be compared, and the file that they are of. */
export interface ComparedBatch {
  readonly url: string
  readonly batch: Batch
}

/** One kind of endpoint. Optional members are optional powers. */
export interface Connector {
  /** For messages: `PostgreSQL`, `file`. */
  readonly name: string
  fileKind?(request: EndpointRequest): FileKind
  /** What its sink can do with rows that are there, the default first; absent where it has no sink of rows that stay. */
  readonly modes?: readonly Mode[]
  /** Whether what passes there is gone once it is read or written (standard input and output, a FIFO): a job that was cut short can't be gone on with. */
  isStream?(url: string): Promise<boolean>
  /** One sentence each on how rows are read and written: why a route is as it is. */
  readsBy?(options: CopyOptions): string
  writesBy?(options: CopyOptions): string
  openSource?(request: EndpointRequest): Promise<Source>
  openSink?(request: SinkRequest): Promise<Sink>
  /** Looks at a load's target as the sink's `meet` does, and makes nothing, for `plan`: the schema with the types that the target decides, and what would be done, a line each. */
  planMeet?(
    request: SinkRequest,
    schema: Schema,
  ): Promise<{ readonly schema: Schema; readonly steps: readonly string[] }>
  /** Statements that a load would run, for `plan`. The sink is prepared and nothing written. */
  planSql?(request: SinkRequest, schema: Schema): Promise<readonly string[]>
  /** All bytes of a source, decompressed. */
  readDecompressed?(request: EndpointRequest): AsyncIterable<Uint8Array>
  openEncoder?(format: FormatName, columns: readonly string[]): Promise<FormatEncoder>
  list?(request: EndpointRequest): AsyncIterable<ObjectInfo>
  describeTable?(request: EndpointRequest): Promise<TableReport>
  /** Set where `compareRows` takes parsed rows only. */
  readonly comparedForm?: 'rows'
  /** Compares rows with what a table holds, on its side. `unloaded`: they came out of it, and are not to be loaded into it. */
  compareRows?(
    request: SinkRequest,
    rows: { schema: Schema; batches: AsyncIterable<ComparedBatch>; limit: number; unloaded?: boolean | undefined },
  ): Promise<Comparison>
  /** The CREATE TABLE for a schema. */
  ddl?(schema: Schema, table: TableName): string
}
