import type { AwsCredentials } from '../../../aws/credentials.ts'
import type { CsvShape } from '../../../core/batch.ts'
import type { InFlightBounds } from './in-flight.ts'
import type { Dedupe } from './key-window.ts'
import type { KeyAttribute } from '../table-info.ts'
import type { ThreadError } from './thread-error.ts'
import type { Attribute } from '../item/type-map.ts'

/** What a thread that puts items is begun with. Secrets are no part of it: it asks for credentials. */
export interface PutThreadData {
  readonly region: string
  /** For errors. */
  readonly url: string
  /** Null: AWS itself. */
  readonly endpoint: string | null
  /** False: `--no-sign-request`. */
  readonly signRequest: boolean | undefined
  readonly table: string
  /** The partition key first. */
  readonly keys: readonly KeyAttribute[]
  readonly nulls: 'omit' | 'NULL'
  readonly dedupe: Dedupe
  readonly retryForMs: number
  /** Of this thread alone. */
  readonly inFlight: InFlightBounds
  /** How many threads share the bounds of memory, and of remembered keys. */
  readonly threads: number
  readonly writeUnits: number | null
  readonly shared: SharedCells
}

/** What all threads look at, in SharedArrayBuffers. */
export interface SharedCells {
  /** Of the CapacityBudget. */
  readonly units: BigInt64Array
  /** Of the Progress. */
  readonly progress: BigInt64Array
  /** Of the PutTrace. */
  readonly trace: Int32Array
  /** The block after which no row matters since one up to it is bad: blocks are numbered from 0. */
  readonly lastBlock: Int32Array
}

/** A row of the block is bad: up to it all go on, so that the first bad row of the input is found, and not just any. */
export function lowerLastBlock({ lastBlock }: SharedCells, block: number): void {
  for (let last = Atomics.load(lastBlock, 0); block < last; last = Atomics.load(lastBlock, 0))
    Atomics.compareExchange(lastBlock, 0, last, block)
}

/** Whose credentials the server called expired: to tell them from those that were renewed meanwhile. */
export type StaleCredentials = Pick<AwsCredentials, 'accessKeyId' | 'sessionToken'>

/** Rows of one block that are the thread's: it reads those and no others. */
export interface CsvRows {
  readonly kind: 'csv'
  readonly block: number
  /** What the columns become, by a number that `columns` gave them before. */
  readonly columns: number
  readonly csv: CsvShape
  /** Shared by all threads; nobody alters it before all are done with it. */
  readonly bytes: Uint8Array
  /** Where each row begins. */
  readonly starts: Uint32Array
}

/** Items of one block that are the thread's, ready to be sent. */
export interface ItemRows {
  readonly kind: 'items'
  readonly block: number
  readonly bytes: Uint8Array
  /** Where each item ends. */
  readonly ends: Uint32Array
  readonly keys: readonly string[]
  /** The row of the batch that each is of, from 0. */
  readonly rows: Uint32Array
}

export type ToPutThread =
  | { readonly kind: 'columns'; readonly id: number; readonly attributes: readonly Attribute[] }
  | { readonly kind: 'begin' }
  | CsvRows
  | ItemRows
  /** All rows of the extent came. */
  | { readonly kind: 'written'; readonly extent: number }
  | { readonly kind: 'credentials'; readonly credentials: AwsCredentials }
  | { readonly kind: 'no-credentials'; readonly error: ThreadError }

export type FromPutThread =
  | { readonly kind: 'ready' }
  /** The rows of a block were taken, or do not matter. */
  | { readonly kind: 'done'; readonly block: number }
  /** The first bad row that the thread found, by its `starts` or `rows`; `done` follows. */
  | { readonly kind: 'bad'; readonly block: number; readonly row: number; readonly error: ThreadError }
  /** All puts of an extent are in, or later rows took their places. */
  | { readonly kind: 'settled'; readonly extent: number; readonly counts: PutCounts }
  /** What ended the thread's window. */
  | { readonly kind: 'failed'; readonly error: ThreadError }
  | { readonly kind: 'credentials'; readonly stale: StaleCredentials | null }
  /** Requests that are tried again, since this was told last. */
  | { readonly kind: 'retried'; readonly retries: number; readonly throttles: number }

export interface PutCounts {
  readonly accepted: number
  readonly superseded: number
  /** Of the items, on the wire. */
  readonly bytes: number
}
