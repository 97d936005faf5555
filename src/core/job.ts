/** Anything that survives JSON.stringify and JSON.parse unchanged. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/**
 * A place between two rows of a partition. `byte` counts from 0 in the decompressed, UTF-8 form of the partition
 * (the raw bytes where it is neither compressed nor in another encoding); `row` is the number of data rows before it,
 * `line` the number of physical lines before it.
 */
export interface Position {
  readonly byte: number
  readonly row: number
  readonly line: number
}

export const START: Position = { byte: 0, row: 0, line: 0 }

/** What can be read by itself: an object, a file, an archive's entry. */
export interface Partition {
  /** Unique in the job and the same in every run of it. */
  readonly id: string
  /** For people and for errors; holds no secret. */
  readonly url: string
  /** Size in the store, in bytes (compressed, if it is); null where the store does not say. */
  readonly bytes: number | null
  /** Rows that it is expected to have, for progress; absent or null where nothing is known. */
  readonly rows?: number | null | undefined
  /** What the reader needs besides: the pinned ETag, the entry, the head. The engine does not look into it. */
  readonly state: Json
}

/** A run of whole rows of one partition: dealt, recorded and dealt again as one. `[start, end)`. */
export interface Extent {
  readonly partition: string
  /** Counts from 0 in its partition within one run; unique, ascending, not stable across runs. */
  readonly sequence: number
  readonly start: Position
  readonly end: Position
  readonly rows: number
  /** Rows read and left out on purpose by the mapping: part of rowsSkipped. */
  readonly filtered: number
  /** Bytes of source data. */
  readonly bytes: number
  /** True for the extent that ends its partition. */
  readonly last: boolean
}

/** A lane's word that an extent is complete in it. */
export interface Receipt {
  readonly extent: Extent
  /** Whether it is durable and visible now, or only once `finish` is through. */
  readonly durable: boolean
  readonly rowsWritten: number
  readonly bytesWritten: number
  /** Rows of the extent that were not written since a later one has the same key: part of rowsSkipped. */
  readonly superseded?: number | undefined
  /** What the sink needs to finish or to recover: a part's ETag, the lane's transaction id. */
  readonly state: Json
}

export interface Output {
  readonly url: string
  readonly rows: number | null
  readonly bytes: number
  readonly etag: string | null
}

export type JobStatus = 'done' | 'done-with-rejects' | 'stopped' | 'failed'

export interface SkippedCounts {
  readonly filtered: number
  readonly superseded: number
  readonly existing: number
}

export interface ReportedError {
  readonly code: string
  readonly message: string
  readonly where: string | null
  readonly hint: string
}

/** What a job reports at its end: the object of `--json` (cli.md, "What it prints"). */
export interface JobResult {
  readonly jobId: string
  readonly status: JobStatus
  readonly source: string
  readonly sink: string
  readonly route: string
  readonly routeReason: string
  readonly runs: number
  readonly rowsRead: number
  readonly rowsWritten: number
  readonly rowsRejected: number
  readonly rowsSkipped: number
  readonly skipped: SkippedCounts
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly partitions: number
  readonly retries: number
  readonly throttles: number
  readonly wallMs: number
  readonly cpuMs: number
  readonly peakRssBytes: number
  readonly outputs: readonly Output[]
  readonly rejectFile: string | null
  readonly warnings: readonly string[]
  readonly resumeCommand: string | null
  readonly error?: ReportedError
  /** Where a job failed although no row counts as written: whether some are in the sink all the same. */
  readonly leftRows?: boolean
}
