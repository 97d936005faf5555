import type { Position } from './job.ts'

/**
 * The forms in which data travels, cheapest first. Source and sink agree on the first that both speak:
 * `bytes` (a file's own bytes, nothing parsed), `csv` (whole CSV records as bytes), `rows` (parsed values).
 * Columnar batches (Arrow layout) come with Parquet.
 */
export type BatchForm = 'bytes' | 'csv' | 'rows'

interface BatchBase {
  /** Where the batch begins and ends in its partition. */
  readonly start: Position
  readonly end: Position
  /** Whether an extent may end after this batch (a CSV record, a JSON line, any byte). */
  readonly mayEnd: boolean
}

/** Part of a file, as it is. `start.byte` is its offset. */
export interface BytesBatch extends BatchBase {
  readonly form: 'bytes'
  readonly bytes: Uint8Array
}

/**
 * Whole CSV records in UTF-8. What the reader promises, so that a sink may hand the bytes on unparsed:
 * records all end with the same line end (LF or CRLF; the last one too), none is blank where there are two columns or more,
 * none is a bare `\.`, quotes only open at a field's start and only close at its end, there is no NUL, and the dialect is as `csv` says.
 * Field counts and values are not checked.
 */
export interface CsvBatch extends BatchBase {
  readonly form: 'csv'
  readonly bytes: Uint8Array
  /** Records in `bytes`, counted by the reader. */
  readonly rows: number
  readonly columns: readonly string[]
  readonly csv: CsvShape
  /** False where no quote byte occurs in `bytes`. */
  readonly quoted: boolean
}

/** How the bytes of a CsvBatch are to be read. All single bytes; `quote` null means that quotes are plain characters. */
export interface CsvShape {
  readonly delimiter: string
  readonly quote: string | null
  readonly escape: string
}

/** A number by its own text, exact at any length, as JSON sources give it. */
export interface NumberText {
  readonly kind: 'number'
  readonly text: string
}

/** A nested JSON value by its own text (an object or an array), whitespace as in the source. */
export interface JsonText {
  readonly kind: 'json'
  readonly text: string
}

/** One value. `undefined`: the row does not have the column (a JSON key that is missing); `null`: it has it, with no value. */
export type Value = string | boolean | null | undefined | NumberText | JsonText | Uint8Array

/** Parsed rows. `rows[i][j]` belongs to `columns[j]`. */
export interface RowsBatch extends BatchBase {
  readonly form: 'rows'
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Value[])[]
  /** Where row i of the batch is in its source: data row from 1, physical line from 1, byte from 0. */
  readonly places: readonly RowPlace[]
  /** Bytes of input that the batch stands for: what extents and memory are measured by. */
  readonly sourceBytes: number
  /** Rows that the mapping left out on purpose, already counted out of `rows`. */
  readonly filtered: number
}

export interface RowPlace {
  readonly row: number
  readonly line: number
  readonly byte: number
}

export type Batch = BytesBatch | CsvBatch | RowsBatch

/** Data rows that a batch stands for; 0 for plain bytes. */
export function rowCount(batch: Batch): number {
  if (batch.form === 'csv') return batch.rows
  return batch.form === 'rows' ? batch.rows.length : 0
}

/** Bytes of source data in a batch: what buffers are bounded by. */
export function byteSize(batch: Batch): number {
  return batch.form === 'rows' ? batch.sourceBytes : batch.bytes.byteLength
}
