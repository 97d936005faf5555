import type { Batch, BatchForm, CsvBatch, RowsBatch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { CopyOptions } from '../../core/options.ts'
import type { CompressionName, FormatName } from '../../core/ports.ts'
import type { Schema } from '../../core/schema.ts'
import type { CompressedBlock } from '../../compression/compress-blocks.ts'
import type { ParquetGroup } from '../../formats/parquet/parquet-encoder.ts'

/** A piece of a file that was made by itself: bytes as they are, a compressed block, a row group. */
export type EncodedPiece =
  /** `rows`: whole rows, so many, which may go into a file of their own; null where they may not. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly rows: number | null }
  | { readonly kind: 'block'; readonly block: CompressedBlock }
  | { readonly kind: 'group'; readonly group: ParquetGroup }

/** How batches become a file: lanes make pieces side by side, files join them. */
export interface OutputEncoding {
  openLane(): LaneEncoder
  openFile(): FileJoiner
  /** Values that lost their type, all lanes together (FormatEncoder.lost). */
  lost(): ReadonlyMap<string, number>
  close(): Promise<void>
}

/** Makes the pieces of extents, one extent after the other. */
export interface LaneEncoder {
  write(batch: Batch): Promise<void>
  /** The pieces of what was written since the last time, in order. */
  take(): Promise<readonly EncodedPiece[]>
}

/** Joins pieces to one file. */
export interface FileJoiner {
  begin(): Promise<Uint8Array[]>
  add(piece: EncodedPiece): Uint8Array
  end(): Uint8Array
  /** Bytes that `end` would have now, about. */
  readonly tailBytes: number
}

export interface EncodingRequest {
  readonly format: FormatName
  readonly compression: CompressionName
  readonly schema: Schema
  readonly form: BatchForm
  readonly options: CopyOptions
  readonly url: string
  /** Lanes that will be open at most. */
  readonly lanes: number
  /** Key-value metadata, where the format has such. */
  readonly metadata: Readonly<Record<string, string>>
}

/** Rows in the output's columns: files under a prefix may have them in another order; one more than the first had is an error, never dropped. */
export function alignColumns<B extends CsvBatch | RowsBatch>(batch: B, columns: readonly string[]): Batch {
  if (batch.columns.length === columns.length && batch.columns.every((name, i) => name === columns[i])) return batch
  const unknown = batch.columns.find((name) => !columns.includes(name))
  if (unknown !== undefined)
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `column "${unknown}" comes up after the output's columns were fixed`,
      {
        where: { row: batch.start.row + 1, byte: batch.start.byte },
        hint: 'name all columns with --columns, or choose some with --select',
      },
    )
  if (batch.form === 'csv')
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `its columns are ${batch.columns.join(', ')}, where the first file has ${columns.join(', ')}`,
      { hint: '--select puts them in one order' },
    )
  const from = columns.map((name) => batch.columns.indexOf(name))
  return { ...batch, columns, rows: batch.rows.map((row) => from.map((i) => (i < 0 ? undefined : row[i]))) }
}
