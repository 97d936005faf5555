import type { CsvBatch, RowsBatch } from '../../../core/batch.ts'
import type { PutCounts } from './put-message.ts'

/** A way for rows to become items: a window of requests in this thread, or those of several threads. */
export interface PutWay {
  /** Rows of the next extent follow, until it is `written`: one is written at a time. */
  begin(): ExtentWriter
  /** Whether the table may have got an item by now. */
  readonly mayHavePut: boolean
  /** Nothing more is sent; who waits gets the reason. */
  stop(reason: unknown): void
}

/** An extent on its way. What its methods throw ends the way. */
export interface ExtentWriter {
  /** Resolves when there is room for the next batch. @throws a bad row, with its place; what ended the requests */
  write(batch: CsvBatch | RowsBatch): Promise<void>
  /** No row follows. */
  written(): void
  /** Waits until all its puts are in, or later rows took their places; other extents may be written meanwhile. */
  settled(): Promise<PutCounts>
}
