import type { CsvBatch } from '../../../core/batch.ts'
import { CR, LF, recordCursor } from '../../../formats/csv/record-cursor.ts'
import type { KeyDivision, Range } from './key-division.ts'

export interface Divided {
  readonly division: KeyDivision
  /** Columns of the keys, the partition key's first. */
  readonly keys: readonly number[]
  readonly threads: number
}

/** Where the rows of a batch begin, for each thread its own, in their order. */
export function divideRows(batch: CsvBatch, o: Divided): readonly Uint32Array<ArrayBuffer>[] {
  const lists = Array.from({ length: o.threads }, () => new Uint32Array(batch.rows))
  const counts = lists.map(() => 0)
  const add = (thread: number, start: number): void => {
    const list = lists[thread]
    const count = counts[thread] as number
    if (list !== undefined) list[count] = start
    counts[thread] = count + 1
  }
  const plain = !batch.quoted && batch.csv.delimiter.charCodeAt(0) < 128
  if (plain) walkPlain(batch, o, add)
  else {
    const cursor = recordCursor(batch.bytes, batch.csv)
    while (cursor.next() === 'row') add(o.division.ofRecord(cursor, o.keys), cursor.start)
  }
  return lists.map((list, i) => list.slice(0, counts[i]))
}

/** Without quotes fields are only looked at up to the last key, and the line end is found by memchr: a third of the cursor's price. */
function walkPlain({ bytes, csv }: CsvBatch, o: Divided, add: (thread: number, start: number) => void): void {
  const { keys, division } = o
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const delimiter = csv.delimiter.charCodeAt(0)
  const last = Math.max(-1, ...keys)
  const ranges = keys.map((): { start: number; end: number } => ({ start: 0, end: 0 }))
  const { length } = buffer
  for (let start = 0; start < length;) {
    let at = start
    let found = true
    for (let column = 0; column <= last; column += 1) {
      const from = at
      while (at < length && buffer[at] !== delimiter && buffer[at] !== LF) at += 1
      const ends = at >= length || buffer[at] === LF
      note(ranges, keys, { column, start: from, end: ends && at > from && buffer[at - 1] === CR ? at - 1 : at })
      if (ends) {
        found = column === last
        break
      }
      at += 1
    }
    add(found ? division.ofRanges(buffer, ranges) : 0, start)
    // After the last key's delimiter the row may be over at once, but its line end still comes.
    const end = buffer[at] === LF && at < length ? at : buffer.indexOf(LF, at)
    start = end < 0 ? length : end + 1
  }
}

function note(
  ranges: readonly { start: number; end: number }[],
  keys: readonly number[],
  { column, start, end }: Range & { readonly column: number },
): void {
  for (let k = 0; k < keys.length; k += 1) {
    const range = ranges[k]
    if (keys[k] !== column || range === undefined) continue
    range.start = start
    range.end = end
  }
}
