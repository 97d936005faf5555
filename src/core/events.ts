import type { ErrorCode } from './errors.ts'

/** What a running job tells: for progress bars, logs and the page. Counts are totals of the whole job, all its runs. */
export type JobEvent =
  | {
      readonly kind: 'planned'
      readonly partitions: number
      readonly bytesTotal: number | null
      readonly lanes: number
      readonly route: string
      readonly routeReason: string
    }
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'warning'; readonly message: string }
  /** SQL that is about to be run and that the user will want to have seen (CREATE TABLE …). */
  | { readonly kind: 'sql'; readonly statement: string }
  | { readonly kind: 'retry'; readonly code: ErrorCode; readonly message: string; readonly delayMs: number }
  | { readonly kind: 'phase'; readonly phase: JobPhase }

export type JobPhase = 'preparing' | 'inferring' | 'copying' | 'finishing' | 'stopping'

export interface Progress {
  readonly rowsRead: number
  readonly rowsWritten: number
  readonly bytesRead: number
  readonly bytesWritten: number
  /** Bytes that the store announced for all partitions; null where one is unknown. */
  readonly bytesTotal: number | null
  /** Lanes at work now. */
  readonly inFlight: number
  readonly retries: number
  readonly elapsedMs: number
}

export type EventListener = (event: JobEvent) => void
