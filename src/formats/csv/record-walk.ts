import type { CsvBatch } from '../../core/batch.ts'
import { fieldCountError } from './field-count.ts'
import { CR, LF, PLAIN, recordCursor } from './record-cursor.ts'
import { countByte } from './scan.ts'

/** Where the fields of a record are in a batch's bytes, as RecordCursor tells it; overwritten by the next record. */
export interface FieldRanges {
  readonly starts: ArrayLike<number>
  readonly ends: ArrayLike<number>
  readonly kinds: ArrayLike<number>
  /** Of the record itself, its line end included. */
  readonly start: number
  readonly end: number
}

/**
 * Walks the records of a batch, each of which has to have as many fields as the batch has columns. `take` also learns how many lines of the batch
 * come before the record.
 *
 * @throws SLUICE_CSV_FIELD_COUNT with the place
 */
export function walkRecords(batch: CsvBatch, take: (record: FieldRanges, line: number) => void): void {
  if (batch.quoted) walkQuoted(batch, take)
  else walkPlain(batch, take)
}

function walkQuoted(batch: CsvBatch, take: (record: FieldRanges, line: number) => void): void {
  const { bytes, columns, csv } = batch
  const cursor = recordCursor(bytes, csv)
  let line = 0
  for (let index = 0; cursor.next() === 'row'; index += 1) {
    if (cursor.count !== columns.length) throw fieldCountError(batch, index, cursor.count)
    take(cursor, line)
    line += cursor.quoted ? countByte(bytes.subarray(cursor.start, cursor.end), LF) : 1
  }
}

/** Without quotes there are delimiters and line ends only: a third of the cursor's price. */
function walkPlain(batch: CsvBatch, take: (record: FieldRanges, line: number) => void): void {
  const { bytes, columns, csv } = batch
  const delimiter = csv.delimiter.charCodeAt(0)
  const highest = Math.max(delimiter, LF)
  const width = columns.length
  const starts = new Int32Array(width)
  const ends = new Int32Array(width)
  const kinds = new Uint8Array(width).fill(PLAIN)
  const record = { starts, ends, kinds, start: 0, end: 0 }
  const { length } = bytes
  let index = 0
  let column = 0
  let from = 0
  for (let i = 0; i < length; i += 1) {
    const byte = bytes[i] as number
    // Most letters and digits are beyond both.
    if (byte > highest) continue
    if (byte === delimiter) {
      // Beyond the last column nothing is kept by a typed array.
      starts[column] = from
      ends[column] = i
      column += 1
      from = i + 1
    } else if (byte === LF) {
      starts[column] = from
      ends[column] = i > from && bytes[i - 1] === CR ? i - 1 : i
      if (column + 1 !== width) throw fieldCountError(batch, index, column + 1)
      record.end = i + 1
      take(record, index)
      record.start = i + 1
      from = i + 1
      column = 0
      index += 1
    }
  }
}
