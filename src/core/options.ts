import type { CompressionName, FormatName, IfExists } from './ports.ts'

export const MODES = ['append', 'truncate', 'replace', 'upsert', 'skip-existing', 'sync'] as const
export type Mode = (typeof MODES)[number]

/**
 * What can be said about a copy, by the names of the flags in camelCase; the same in a job file and in the library. JSON,
 * without secrets: it is kept in the state folder. Sizes are bytes, durations milliseconds. Absent means the default.
 */
export interface CopyOptions {
  readonly sourceFormat?: FormatName
  readonly sinkFormat?: FormatName
  readonly sourceCompression?: CompressionName
  readonly sinkCompression?: CompressionName
  readonly entry?: string
  // CSV
  readonly delimiter?: string
  /** One byte, or `none`. */
  readonly quote?: string
  readonly escape?: string
  readonly header?: boolean
  readonly columns?: readonly string[]
  readonly skipLines?: number
  readonly null?: readonly string[]
  readonly empty?: 'null' | 'string' | 'omit'
  readonly ragged?: 'reject' | 'fill' | 'trim'
  readonly encoding?: string
  readonly onInvalidUtf8?: 'error' | 'reject' | 'replace'
  readonly onNul?: 'error' | 'reject' | 'strip'
  /** Of output. */
  readonly lineEnd?: 'auto' | 'lf' | 'crlf'
  // mapping
  readonly byPosition?: boolean
  readonly select?: readonly string[]
  /** `old=new` */
  readonly rename?: readonly string[]
  /** `column=TYPE` */
  readonly type?: readonly string[]
  /** `column=constant` */
  readonly set?: readonly string[]
  readonly skipIfEmpty?: readonly string[]
  /** `column=/regex/text/flags` */
  readonly replace?: readonly string[]
  // mode
  readonly mode?: Mode
  readonly create?: boolean
  readonly ifExists?: IfExists
  readonly yes?: boolean
  // PostgreSQL
  readonly commit?: 'job' | 'partition'
  readonly ledgerSchema?: string
  readonly timeZone?: string
  readonly beforeSql?: readonly string[]
  readonly afterSql?: readonly string[]
  /** One statement, read instead of a table. */
  readonly query?: string
  /** What `numeric` columns without precision become in Parquet: `decimal(p,s)`. */
  readonly numeric?: string
  /** What the sink's format cannot hold: infinity, NaN in a decimal, BC, 24:00:00, arrays that count from 0. Default: an error. */
  readonly onSpecial?: 'error' | 'null' | 'text'
  // output files
  readonly rowGroupRows?: number
  readonly rowGroupBytes?: number
  readonly parquetCodec?: 'snappy' | 'zstd' | 'gzip' | 'lz4' | 'brotli' | 'none'
  readonly maxFileSize?: number
  /** URL of the list of files that is written last. */
  readonly manifest?: string
  readonly singleFile?: boolean
  // DynamoDB
  /** Create the DynamoDB table if it is missing, with the key that `partitionKey` and `sortKey` say. */
  readonly createTable?: boolean
  /** `NAME:S`, `NAME:N` or `NAME:B`; S where no type is said. */
  readonly partitionKey?: string
  readonly sortKey?: string
  /** Write units a second that a created table bears at once (its warm throughput). */
  readonly warmWrites?: number
  /** Write capacity units a second that a load keeps to, by consumed capacity. Default and `auto`: as fast as the table goes. */
  readonly writeUnits?: number | 'auto'
  /** Read capacity units a second that a Scan keeps to, by consumed capacity. Default and `auto`: as fast as the table goes. */
  readonly readUnits?: number | 'auto'
  /** How CSV's text becomes typed values; default: infer. */
  readonly types?: 'infer' | 'string'
  /** What becomes of rows with a key that came before; default: last. */
  readonly dedupe?: 'last' | 'error' | 'none'
  // S3
  readonly s3Endpoint?: string
  readonly region?: string
  readonly profile?: string
  readonly signRequest?: boolean
  readonly pathStyle?: 'auto' | 'always' | 'never'
  readonly partSize?: number
  readonly parallelism?: number | 'auto'
  // speed
  readonly concurrency?: number | 'auto'
  readonly workers?: number | 'auto'
  readonly maxMemory?: number
  readonly retryFor?: number
  readonly glob?: boolean
}

/** No piece of a file may be more than such a part of `maxFileSize`, so that files come close to it and not past it. */
const PIECES_PER_FILE = 8
const LEAST_PIECE_BYTES = 16 * 1024

/** Bytes that a piece of an output file may have, before it is written in its format, where `maxFileSize` asks for small ones; `usual` where not. */
export function pieceBytes(options: Pick<CopyOptions, 'maxFileSize'>, usual: number): number {
  const share = Math.floor((options.maxFileSize ?? Number.POSITIVE_INFINITY) / PIECES_PER_FILE)
  return Math.min(usual, Math.max(LEAST_PIECE_BYTES, share))
}

/** The outside world, handed in by the caller: the library itself reads no environment. */
export type Environment = Readonly<Record<string, string | undefined>>

export const DEFAULT_RETRY_FOR_MS = 5 * 60_000
