import type { EventListener } from '../core/events.ts'
import type { Json, JobResult, JobStatus } from '../core/job.ts'
import type { CopyOptions, Environment } from '../core/options.ts'
import type { NeutralType } from '../core/schema.ts'

/** Where standard output goes: what `process.stdout` is. */
export type OutputStream = NodeJS.WritableStream

/** A copy, whole: what the library needs to know, and nothing that it could read by itself (no argv, no process.env). */
export interface CopyRequest {
  readonly source: string
  readonly sink: string
  readonly options: CopyOptions
  /** Options that stand for any job (of a config file or the environment): they are passed over where nothing heeds them. */
  readonly defaults?: readonly string[] | undefined
  readonly env: Environment
  /** Folder for jobs' state, see `--state-dir`. */
  readonly stateDir: string
  readonly jobId?: string | undefined
  /** Go on with the job `jobId`. */
  readonly resume?: boolean | undefined
  /** Start over although an unfinished job for the same source and sink is there; what that one left behind is removed. */
  readonly newJob?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  readonly onEvent?: EventListener | undefined
  /** Needed where the source is `-`. */
  readonly stdin?: AsyncIterable<Uint8Array> | undefined
  /** Needed where the sink is `-`. */
  readonly stdout?: OutputStream | undefined
}

export interface PlanResult {
  readonly source: string
  readonly sink: string
  readonly route: string
  readonly routeReason: string
  readonly partitions: readonly { readonly id: string; readonly url: string; readonly bytes: number | null }[]
  readonly lanes: number
  /** Bytes of an S3 part and their number, where parts are made. */
  readonly partBytes: number | null
  readonly parts: number | null
  /** Statements that the job will run, in order. */
  readonly sql: readonly string[]
  /** What the job will do beside SQL, for people. */
  readonly steps: readonly string[]
  readonly columns: readonly { readonly source: string | null; readonly sink: string; readonly type: string | null }[]
  readonly warnings: readonly string[]
}

export interface ReadRequest {
  readonly options: CopyOptions
  /** Options that stand for any job (of a config file or the environment): they are passed over where nothing heeds them. */
  readonly defaults?: readonly string[] | undefined
  readonly env: Environment
  readonly signal?: AbortSignal | undefined
  readonly stdin?: AsyncIterable<Uint8Array> | undefined
}

export interface InspectRequest extends ReadRequest {
  /** Rows of the sample; 10 by default. */
  readonly rows?: number | undefined
  /** Read everything: exact counts and a profile of each column. */
  readonly full?: boolean | undefined
  readonly ddl?: 'postgres' | undefined
}

export interface ColumnProfile {
  readonly name: string
  readonly type: NeutralType
  readonly nulls: number
  readonly min: string | null
  readonly max: string | null
  /** Longest value, in characters. */
  readonly longest: number
  /** Digits in all, and after the point, of a numeric column. */
  readonly precision: number | null
  readonly scale: number | null
}

export interface InspectResult {
  readonly url: string
  readonly format: string
  readonly compression: string | null
  readonly bytes: number | null
  readonly partitions: readonly { readonly url: string; readonly bytes: number | null }[]
  readonly columns: readonly {
    readonly name: string
    readonly type: NeutralType | null
    readonly nativeType?: string | undefined
    readonly nullable?: boolean | undefined
  }[]
  readonly sample: readonly (readonly (string | null)[])[]
  readonly counts: { readonly rows: number | null; readonly exact: boolean }
  readonly profile?: readonly ColumnProfile[] | undefined
  readonly ddl?: string | undefined
  /** A table's keys, constraints and size, as its connector tells them. */
  readonly table?: Json | undefined
  readonly warnings: readonly string[]
}

export interface CatRequest extends ReadRequest {
  /** Rows in this format instead of the bytes. */
  readonly as?: 'csv' | 'jsonl' | undefined
  readonly stdout: OutputStream
}

export interface VerifyRequest extends ReadRequest {
  /** Differences shown at most; 10 by default. */
  readonly limit?: number | undefined
  readonly onEvent?: EventListener | undefined
  readonly stateDir: string
}

export interface VerifySide {
  readonly url: string
  /** Null where bytes were compared. */
  readonly rows: number | null
  /** Independent of the rows' order, except for bytes. */
  readonly hash: string
  readonly bytes: number | null
}

export interface VerifyResult {
  readonly same: boolean
  readonly source: VerifySide
  readonly sink: VerifySide
  readonly differences: readonly { readonly kind: 'missing' | 'extra' | 'different'; readonly text: string }[]
}

export interface JobSummary {
  readonly jobId: string
  /** `running`: a live process works on it; `unfinished`: none does, and it can be resumed. */
  readonly status: JobStatus | 'running' | 'unfinished'
  readonly source: string
  readonly sink: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly endedAt: string | null
  readonly rowsWritten: number
  readonly bytesRead: number
}

export interface JobDetail extends JobSummary {
  readonly options: CopyOptions
  readonly runs: readonly {
    readonly startedAt: string
    readonly endedAt: string | null
    readonly status: string | null
  }[]
  readonly result: JobResult | null
  readonly partitions: readonly {
    readonly url: string
    readonly bytes: number | null
    readonly rows: number | null
    readonly done: boolean
  }[]
  readonly resumeCommand: string | null
}

export interface ResumeRequest {
  readonly stateDir: string
  readonly jobId: string
  readonly env: Environment
  readonly signal?: AbortSignal | undefined
  readonly onEvent?: EventListener | undefined
  readonly stdout?: OutputStream | undefined
}
