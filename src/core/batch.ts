import type { Position } from './job.ts'

/**
 * The forms in which data travels, cheapest first. Source and sink agree on the first that both speak:
 * `bytes` (a file's own bytes, nothing parsed), `csv` (whole CSV records as bytes), `columns` (values as Arrow lays them out), `rows` (parsed values).
 */
export type BatchForm = 'bytes' | 'csv' | 'columns' | 'rows'

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
  /** Where a mapping wrote the bytes anew: rows that it left out on purpose, already counted out of `rows`. */
  readonly filtered?: number | undefined
  /** Where a mapping wrote the bytes anew: how many bytes of input they stand for. */
  readonly sourceBytes?: number | undefined
}

/** How the bytes of a CsvBatch are to be read. All single bytes; `quote` null means that quotes are plain characters. */
export interface CsvShape {
  readonly delimiter: string
  readonly quote: string | null
  readonly escape: string
}

/**
 * How the values of a column lie in a ColumnVector: Arrow's physical layouts (https://arrow.apache.org/docs/format/Columnar.html), little-endian.
 * `utf8` and `json` are UTF-8 text; `uuid` 16 bytes a value; `date` int32 days since 1970-01-01; `time` int64 microseconds since midnight;
 * `timestamp` int64 microseconds since 1970-01-01T00:00:00 (of UTC where `utc`, else of no zone); `decimal` a 128-bit integer of units of 10^-scale.
 */
export type ColumnType =
  | {
      readonly kind:
        | 'bool'
        | 'int16'
        | 'int32'
        | 'int64'
        | 'float32'
        | 'float64'
        | 'utf8'
        | 'json'
        | 'binary'
        | 'uuid'
        | 'date'
        | 'time'
    }
  | { readonly kind: 'timestamp'; readonly utc: boolean }
  /** `precision` 1 to 38. */
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'list'; readonly item: ColumnType }

/** One column of a ColumnsBatch in Arrow's layout. Each buffer begins an ArrayBuffer of its own, or at a multiple of 8 in one. */
export interface ColumnVector {
  readonly type: ColumnType
  /** Values, missing ones included. */
  readonly length: number
  /** How many are missing. */
  readonly nulls: number
  /** One bit a value, lowest first, 1 where there is one; null where none is missing. */
  readonly validity: Uint8Array | null
  /** `length + 1` offsets into `values` (utf8, json, binary: bytes) or into `items` (list); null for the rest. */
  readonly offsets: Int32Array | null
  /** The values' bytes; one bit each for bool; empty for a list. */
  readonly values: Uint8Array
  /** What a list's offsets point into. */
  readonly items: ColumnVector | null
}

/**
 * Rows in columns. Unlike other forms it is moved: who takes it may transfer its memory to a thread, so that nobody looks at it afterwards
 * (the engine never deals it again).
 */
export interface ColumnsBatch extends BatchBase {
  readonly form: 'columns'
  readonly columns: readonly string[]
  readonly vectors: readonly ColumnVector[]
  readonly rows: number
  /** Bytes of all buffers together, when it was made. */
  readonly bufferBytes: number
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
  /** Where it is an array of JSON documents (Parquet's list of JSON): places, from 0, of those that are JSON's null, and not missing. */
  readonly documents?: readonly number[] | undefined
}

/**
 * A nested value that says its own types all the way down, as DynamoDB's JSON does: `{"SS":["a","b"]}`, `{"L":[{"N":"1"}]}`, `{"M":{…}}`.
 * What has a plain form (S, N, B, BOOL, NULL) comes as that.
 */
export interface TypedJsonText {
  readonly kind: 'typed-json'
  readonly text: string
}

/** One value. `undefined`: the row does not have the column (a JSON key that is missing); `null`: it has it, with no value. */
export type Value = string | boolean | null | undefined | NumberText | JsonText | TypedJsonText | Uint8Array

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

export type Batch = BytesBatch | CsvBatch | ColumnsBatch | RowsBatch

/** Data rows that a batch stands for; 0 for plain bytes. */
export function rowCount(batch: Batch): number {
  if (batch.form === 'csv' || batch.form === 'columns') return batch.rows
  return batch.form === 'rows' ? batch.rows.length : 0
}

/** Rows that a mapping left out of a batch on purpose. */
export function filteredCount(batch: Batch): number {
  return (batch.form === 'rows' || batch.form === 'csv' ? batch.filtered : undefined) ?? 0
}

/** Bytes of source data in a batch, or of its own where it has more: what buffers are bounded by. */
export function byteSize(batch: Batch): number {
  if (batch.form === 'columns') return batch.bufferBytes
  if (batch.form === 'rows') return batch.sourceBytes
  return Math.max(batch.bytes.byteLength, (batch.form === 'csv' ? batch.sourceBytes : undefined) ?? 0)
}
