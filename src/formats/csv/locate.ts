import type { CsvBatch, CsvShape, RowPlace } from '../../core/batch.ts'
import { LF, recordCursor } from './record-cursor.ts'
import { countByte } from './scan.ts'

/** Where the records of bytes that were written anew came from: 8 bytes a row, as long as the bytes themselves live. */
const placesOf = new WeakMap<Uint8Array, Uint32Array>()

/** Notes for bytes that are not the input's own where each record was: byte and line, from the batch's start. */
export function rememberPlaces(bytes: Uint8Array, places: Uint32Array): void {
  placesOf.set(bytes, places)
}

/**
 * Where the record of this index (from 0) of a batch is in the input: data row and line from 1, byte from 0. Walks the batch. Past its end, the
 * batch's end.
 */
export function locateRecord(batch: CsvBatch, index: number): RowPlace {
  const { start } = batch
  const row = start.row + index + 1
  const places = placesOf.get(batch.bytes)
  if (places !== undefined) {
    const byte = places[index * 2]
    const line = places[index * 2 + 1]
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
