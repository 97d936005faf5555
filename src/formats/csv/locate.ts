import type { CsvBatch, CsvShape, RowPlace } from '../../core/batch.ts'
import { LF, recordCursor } from './record-cursor.ts'
import { countByte } from './scan.ts'

/** Byte and line of each record, from the batch's start. `rows`: which of the batch's rows each is, from 0; absent where none was left out. */
interface Places {
  readonly places: Uint32Array
  readonly rows?: Uint32Array | undefined
}

/** Where the records of bytes that were written anew came from: 8 or 12 bytes a row, as long as the bytes themselves live. */
const placesOf = new WeakMap<Uint8Array, Places>()

/** Notes for bytes that are not the input's own where each record was: byte and line, from the batch's start, and its row where some were left out. */
export function rememberPlaces(bytes: Uint8Array, places: Uint32Array, rows?: Uint32Array): void {
  placesOf.set(bytes, { places, rows })
}

/** Byte and line of each record, where the bytes are not the input's own. */
export function placesIn(bytes: Uint8Array): Uint32Array | undefined {
  return placesOf.get(bytes)?.places
}

/**
 * Where the record of this index (from 0) of a batch is in the input: data row and line from 1, byte from 0. Walks the batch. Past its end, the
 * batch's end.
 */
export function locateRecord(batch: CsvBatch, index: number): RowPlace {
  const { start } = batch
  const noted = placesOf.get(batch.bytes)
  const row = start.row + (noted?.rows?.[index] ?? index) + 1
  if (noted !== undefined) {
    const byte = noted.places[index * 2]
    const line = noted.places[index * 2 + 1]
    if (byte === undefined || line === undefined) return { row, line: batch.end.line + 1, byte: batch.end.byte }
    return { row, line: start.line + line + 1, byte: start.byte + byte }
  }
  const cursor = recordCursor(batch.bytes, batch.csv)
  for (let i = 0; i <= index; i += 1)
    if (cursor.next() !== 'row') return { row, line: batch.end.line + 1, byte: batch.end.byte }
  const line = start.line + countByte(batch.bytes.subarray(0, cursor.start), LF) + 1
  return { row, line, byte: start.byte + cursor.start }
}

/** Index (from 0) of the record that holds a physical line (from 1) of a batch's bytes; -1 where they have no such line. */
export function recordAtLine(bytes: Uint8Array, shape: CsvShape, line: number): number {
  const cursor = recordCursor(bytes, shape)
  let lines = 0
  for (let index = 0; cursor.next() === 'row'; index += 1) {
    lines += cursor.quoted ? countByte(bytes.subarray(cursor.start, cursor.end), LF) : 1
    if (line <= lines) return index
  }
  return -1
}
