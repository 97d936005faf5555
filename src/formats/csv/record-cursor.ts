import type { CsvShape } from '../../core/batch.ts'
import { shapeBytes } from './dialect.ts'
import type { CsvBytes } from './dialect.ts'

export const LF = 10
export const CR = 13

/** How a field stands in the bytes. */
export const PLAIN = 0
/** Between quotes; its range leaves them out. */
export const QUOTED = 1
/** Between quotes, with escapes that are still in the range. */
export const ESCAPED = 2

/** `stray` and `after`: a quote in an unquoted field, text after a closing quote. `open`: the bytes end within quotes. `lf`: LF in a file of CRs. */
export type RecordStatus = 'row' | 'end' | 'stray' | 'after' | 'open' | 'lf'

/**
 * Walks records in bytes without copying anything: after `next()` said `row`, `start` and `end` (with its line end) are the record, and for
 * j < `count` field j is `[starts[j], ends[j])` of kind `kinds[j]`. What it holds is overwritten by the next record.
 */
export class RecordCursor {
  /** Of the record in hand. */
  start = 0
  /** After the record's line end: where the next one begins. */
  end = 0
  count = 0
  /** Where a record is wrong; for `open`, where the quote opened. */
  problemAt = 0
  /** Whether a field of the record stood between quotes. */
  quoted = false
  // As long as the widest record so far.
  readonly starts: number[] = []
  readonly ends: number[] = []
  readonly kinds: number[] = []
  readonly bytes: Buffer
  readonly #limit: number
  readonly #d0: number
  readonly #delimiter: Uint8Array
  readonly #quote: number
  readonly #escape: number
  readonly #lineEnd: number

  /** `lineEnd` 10: LF, with or without CR before it; 13: CR alone. */
  constructor(bytes: Uint8Array, csv: CsvBytes, lineEnd = LF) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#limit = bytes.byteLength
    this.#delimiter = csv.delimiter
    this.#d0 = csv.delimiter[0] ?? -1
    this.#quote = csv.quote
    this.#escape = csv.escape
    this.#lineEnd = lineEnd
  }

  /** Goes to the next record. After anything but `row` the cursor stays where that record begins. */
  next(): RecordStatus {
    const { bytes } = this
    const limit = this.#limit
    let i = this.end
    this.start = i
    this.count = 0
    this.quoted = false
    if (i >= limit) return 'end'
    for (;;) {
      const quoted = bytes[i] === this.#quote && i < limit
      i = quoted ? this.#quotedField(i + 1) : this.#plainField(i)
      if (i < 0) return this.#failure(-i)
      const byte = bytes[i]
      if (i < limit && byte === this.#d0 && this.#isDelimiter(i)) {
        i += this.#delimiter.length
        continue
      }
      if (i < limit && byte === CR && this.#lineEnd === LF) i += 1
      this.end = Math.min(i + 1, limit)
      return 'row'
    }
  }

  /** Field j, as text. */
  text(j: number): string {
    const start = this.starts[j] ?? 0
    const end = this.ends[j] ?? 0
    return this.kinds[j] === ESCAPED ? this.content(j).toString('utf8') : this.bytes.toString('utf8', start, end)
  }

  /** What stood between quotes in a range of the bytes, without its escapes, as text. */
  unescaped(start: number, end: number): string {
    return unescape(this.bytes.subarray(start, end), this.#quote, this.#escape).toString('utf8')
  }

  /** Field j, its own bytes: without quotes and escapes. A view where nothing had to be taken out. */
  content(j: number): Buffer {
    const raw = this.bytes.subarray(this.starts[j] ?? 0, this.ends[j] ?? 0)
    return this.kinds[j] === ESCAPED ? unescape(raw, this.#quote, this.#escape) : raw
  }

  /** Goes on at a byte where a record begins. */
  seek(byte: number): void {
    this.end = byte
  }

  /** Where the plain field ends, or what is wrong as a negative code. */
  #plainField(from: number): number {
    const { bytes } = this
    const limit = this.#limit
    const d0 = this.#d0
    const quote = this.#quote
    const lineEnd = this.#lineEnd
    let i = from
    for (; i < limit; i += 1) {
      const byte = bytes[i]
      if (byte === lineEnd) break
      if (byte === d0 && this.#isDelimiter(i)) break
      if (byte === quote) return this.#problem(i, STRAY)
      if (byte === LF) return this.#problem(i, LONE_LF)
    }
    const crlf = lineEnd === LF && i < limit && i > from && bytes[i] === LF && bytes[i - 1] === CR
    const end = crlf ? i - 1 : i
    this.#add(from, end, PLAIN)
    return end
  }

  /** Where the field after its closing quote ends, or what is wrong as a negative code. */
  #quotedField(from: number): number {
    const { bytes } = this
    const limit = this.#limit
    const quote = this.#quote
    const escape = this.#escape
    let kind = QUOTED
    let i = from
    for (; ; i += 1) {
      if (i >= limit) return this.#problem(from - 1, OPEN)
      const byte = bytes[i]
      if (byte !== quote && byte !== escape) continue
      const next = i + 1 < limit ? bytes[i + 1] : -1
      if (byte === escape && (next === quote || next === escape)) {
        kind = ESCAPED
        i += 1
      } else if (byte === quote) break
    }
    this.quoted = true
    this.#add(from, i, kind)
    const after = i + 1
    if (after >= limit) return limit
    const byte = bytes[after]
    if (byte === this.#lineEnd || (byte === this.#d0 && this.#isDelimiter(after))) return after
    if (byte === CR && this.#lineEnd === LF && bytes[after + 1] === LF && after + 1 < limit) return after
    return this.#problem(after, AFTER)
  }

  #isDelimiter(at: number): boolean {
    const delimiter = this.#delimiter
    for (let k = 1; k < delimiter.length; k += 1) if (this.bytes[at + k] !== delimiter[k]) return false
    return at + delimiter.length <= this.#limit
  }

  #add(start: number, end: number, kind: number): void {
    const { count } = this
    this.starts[count] = start
    this.ends[count] = end
    this.kinds[count] = kind
    this.count = count + 1
  }

  #problem(at: number, code: number): number {
    this.problemAt = at
    return -code
  }

  #failure(code: number): RecordStatus {
    this.end = this.start
    return code === STRAY ? 'stray' : code === AFTER ? 'after' : code === OPEN ? 'open' : 'lf'
  }
}

const STRAY = 1
const AFTER = 2
const OPEN = 3
const LONE_LF = 4

/** Whether more bytes may make something else of the record: it does not end, or a line end or a delimiter is cut in two behind a quote. */
export function isUndecided(status: RecordStatus, cursor: RecordCursor): boolean {
  const { length } = cursor.bytes
  if (status === 'row') return cursor.end >= length
  return status === 'open' || status === 'end' || (status === 'after' && cursor.problemAt + 4 > length)
}

/** A cursor over the bytes of a CsvBatch, or any others of that shape. */
export function recordCursor(bytes: Uint8Array, shape: CsvShape): RecordCursor {
  return new RecordCursor(bytes, shapeBytes(shape))
}

/** Takes escapes out of what stood between quotes. */
function unescape(raw: Buffer, quote: number, escape: number): Buffer {
  const out = Buffer.allocUnsafe(raw.length)
  let length = 0
  for (let i = 0; i < raw.length; i += 1) {
    const next = raw[i + 1]
    if (raw[i] === escape && i + 1 < raw.length && (next === quote || next === escape)) i += 1
    out[length] = raw[i] as number
    length += 1
  }
  return out.subarray(0, length)
}
