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

/** The outside world, handed in by the caller: the library itself reads no environment. */
export type Environment = Readonly<Record<string, string | undefined>>

export const DEFAULT_RETRY_FOR_MS = 5 * 60_000
