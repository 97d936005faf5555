import type { CsvBatch } from '../../core/batch.ts'
import { CR, LF } from './record-cursor.ts'

/** How the records of a batch end; it has at least one. */
export function lineEndOf({ bytes }: CsvBatch): 'lf' | 'crlf' {
  return bytes.byteLength >= 2 && bytes[bytes.byteLength - 2] === CR ? 'crlf' : 'lf'
}

/** The batch's bytes with its records ended otherwise. Line ends inside quotes are values, and stay. */
export function withLineEnd(batch: CsvBatch, wanted: 'lf' | 'crlf'): Uint8Array {
  if (lineEndOf(batch) === wanted) return batch.bytes
  const source = batch.bytes
  const out = Buffer.allocUnsafe(source.byteLength + (wanted === 'crlf' ? batch.rows : 0))
  let [from, written] = [0, 0]
  for (const at of recordEnds(batch)) {
    const end = wanted === 'lf' ? at - 1 : at
    out.set(source.subarray(from, end), written)
    written += end - from
    if (wanted === 'crlf') out[written++] = CR
    out[written++] = LF
    from = at + 1
  }
  return out.subarray(0, written)
}

/** Where the LF of each record is. A batch's quotes only open at a field's start, so that within and without is a matter of counting. */
function* recordEnds({ bytes, quoted, csv }: CsvBatch): Generator<number, void, undefined> {
  const quote = quoted && csv.quote !== null ? csv.quote.charCodeAt(0) : -1
  const escape = csv.escape.charCodeAt(0)
  if (quote < 0) {
    for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) yield at
    return
  }
  let within = false
  for (let at = 0; at < bytes.byteLength; at += 1) {
    const byte = bytes[at]
    if (within && byte === escape && escape !== quote) at += 1
    else if (byte === quote) within = !within
    else if (byte === LF && !within) yield at
  }
}
