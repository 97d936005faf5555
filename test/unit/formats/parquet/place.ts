import type { ColumnsBatch } from '../../../../src/core/batch.ts'
import type { Column } from '../../../../src/core/schema.ts'
import { openParquetEncoder } from '../../../../src/formats/parquet/parquet-encoder.ts'
import type { ParquetCodec } from '../../../../src/formats/parquet/parquet-encoder.ts'
import { ParquetFile } from '../../../../src/formats/parquet/parquet-file.ts'
import { openParquetReader } from '../../../../src/formats/parquet/parquet-reader.ts'
import type { ParquetReader } from '../../../../src/formats/parquet/parquet-reader.ts'
import { ColumnsBuilder } from '../../../../src/formats/parquet/rows-to-columns.ts'
import type { RowsBatch, Value } from '../../../../src/core/batch.ts'

/** Rows as a batch, row by row from 1. */
export function rowsOf(columns: readonly string[], rows: readonly (readonly Value[])[]): RowsBatch {
  const place = { byte: 0, row: 0, line: 0 }
  const places = rows.map((_, i) => ({ row: i + 1, line: i + 1, byte: 0 }))
  return { form: 'rows', columns, rows, places, start: place, end: place, mayEnd: true, filtered: 0, sourceBytes: 0 }
}

/** One batch of columns for each group of rows. */
export function groupsOf(
  columns: readonly Column[],
  groups: readonly (readonly (readonly Value[])[])[],
  typed = false,
): { columns: readonly Column[]; batches: ColumnsBatch[] } {
  const builder = new ColumnsBuilder({ columns, typed })
  const names = columns.map(({ name }) => name)
  const batches = groups.map((rows) => {
    builder.add(rowsOf(names, rows))
    return builder.take()
  })
  return { columns: builder.columns, batches }
}

/** A whole Parquet file, its row groups encoded at once in two threads. */
export async function fileOf(
  made: { columns: readonly Column[]; batches: readonly ColumnsBatch[] },
  o: { codec?: ParquetCodec; dictionary?: boolean; metadata?: Record<string, string> } = {},
): Promise<Buffer> {
  const { codec = 'snappy', dictionary, metadata = {} } = o
  const encoder = openParquetEncoder({ columns: made.columns, codec, workers: 2, dictionary })
  try {
    const file = new ParquetFile({ schemaFooter: await encoder.schemaFooter, version: '0.1.0' })
    const groups = await Promise.all(made.batches.map((batch) => encoder.encode(batch)))
    return Buffer.concat([file.begin(), ...groups.map((group) => file.add(group)), file.end(metadata)])
  } finally {
    await encoder.close()
  }
}

export function readerOf(file: Uint8Array): Promise<ParquetReader> {
  return openParquetReader(({ start, end }) => Promise.resolve(file.slice(start, end)), file.byteLength)
}

/** All rows of a file. */
export async function readAll(file: Uint8Array): Promise<Value[][]> {
  const reader = await readerOf(file)
  const rows: Value[][] = []
  for (const group of reader.groups.keys())
    for await (const batch of reader.rowsOf(group, AbortSignal.timeout(60_000)))
      rows.push(...batch.rows.map((row) => [...row]))
  return rows
}

export function number(text: string): Value {
  return { kind: 'number', text }
}
