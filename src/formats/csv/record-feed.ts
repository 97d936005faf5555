import { isUtf8 } from 'node:buffer'
import { SluiceError } from '../../core/errors.ts'
import type { ErrorCode } from '../../core/errors.ts'
import type { Position } from '../../core/job.ts'
import { firstInvalid } from './csv-head.ts'
import type { CsvDialect } from './dialect.ts'
import { fieldCountFault } from './field-count.ts'
import { PLAIN, RecordCursor } from './record-cursor.ts'
import { countByte } from './scan.ts'

/** What a reader knows of its file beside the dialect. */
export interface FileFacts {
  readonly url: string
  readonly columns: readonly string[]
  /** The byte that ends lines: 10 or 13. */
  readonly lineEnd: number
  /** WHATWG name of what the file was before it became UTF-8. */
  readonly encoding: string
  readonly dialect: CsvDialect
}

/** Characters that a policy changed. */
export interface Alterations {
  nulsStripped: number
  valuesReplaced: number
}

/** The data rows of a block, one after the other, each checked; blank lines are left out. */
export class RecordFeed {
  /** The record in hand. */
  readonly cursor: RecordCursor
  /** Place of the record in hand: data row and physical line from 1. */
  row: number
  line: number
  readonly #file: FileFacts
  readonly #start: Position
  readonly #utf8: boolean
  readonly #nul: boolean
  readonly #altered: Alterations
  #nextLine: number
  /** Whether the record in hand holds what `content` has to mend. */
  #dirty = false

  constructor(block: Buffer, o: { readonly file: FileFacts; readonly start: Position; readonly altered: Alterations }) {
    this.cursor = new RecordCursor(block, o.file.dialect, o.file.lineEnd)
    this.#file = o.file
    this.#start = o.start
    this.#altered = o.altered
    this.#utf8 = isUtf8(block)
    this.#nul = block.includes(0)
    this.row = o.start.row
    this.line = o.start.line
    this.#nextLine = o.start.line + 1
  }

  /** Byte of the input where the record in hand begins. */
  get byte(): number {
    return this.#start.byte + this.cursor.start
  }

  /** Where the next record begins. */
  get end(): Position {
    return { byte: this.#start.byte + this.cursor.end, row: this.row, line: this.#nextLine - 1 }
  }

  /** Whether a value of the record in hand has to be mended. */
  get dirty(): boolean {
    return this.#dirty
  }

  /**
   * Goes to the next data row; false at the end of the block.
   *
   * @throws SLUICE_CSV_QUOTE, SLUICE_CSV_UNTERMINATED_QUOTE, SLUICE_CSV_FIELD_COUNT, SLUICE_ENCODING, SLUICE_NUL, SLUICE_UNKNOWN_FORMAT
   */
  next(): boolean {
    const { cursor } = this
    const width = this.#file.columns.length
    for (;;) {
      const status = cursor.next()
      if (status === 'end') return false
      this.row += 1
      this.line = this.#nextLine
      if (status !== 'row') throw this.#broken(status)
      this.#nextLine += cursor.quoted
        ? countByte(cursor.bytes.subarray(cursor.start, cursor.end), this.#file.lineEnd)
        : 1
      if (cursor.count === 1 && width !== 1 && !cursor.quoted && cursor.ends[0] === cursor.start) {
        this.row -= 1
        continue
      }
      this.#dirty = (!this.#utf8 || this.#nul) && this.#check()
      if (cursor.count !== width) this.#checkCount(width)
      return true
    }
  }

  /** Field j, mended as the policies say. */
  content(j: number): Buffer {
    const { cursor } = this
    const bytes = cursor.content(j)
    if (!this.#dirty) return bytes
    const kept = bytes.includes(0) ? Buffer.from(bytes.filter((byte) => byte !== 0)) : bytes
    this.#altered.nulsStripped += bytes.length - kept.length
    if (isUtf8(kept)) return kept
    this.#altered.valuesReplaced += 1
    return Buffer.from(kept.toString('utf8'))
  }

  /** Field j as text, mended as the policies say. */
  text(j: number): string {
    return this.#dirty ? this.content(j).toString('utf8') : this.cursor.text(j)
  }

  /** Whether the record needs mending. @throws where policy has it an error */
  #check(): boolean {
    const { cursor } = this
    const { dialect } = this.#file
    const record = cursor.bytes.subarray(cursor.start, cursor.end)
    const bad = this.#utf8 ? -1 : firstInvalid(record)
    const nul = this.#nul ? record.indexOf(0) : -1
    const badCounts = bad >= 0 && dialect.onInvalidUtf8 !== 'replace'
    const nulCounts = nul >= 0 && dialect.onNul !== 'strip'
    if (badCounts && (!nulCounts || bad < nul)) throw this.#invalid(cursor.start + bad)
    if (nulCounts) throw this.#error('SLUICE_NUL', 'a NUL character', { at: cursor.start + nul })
    return bad >= 0 || nul >= 0
  }

  #invalid(at: number): SluiceError {
    const byte = this.cursor.bytes[at] ?? 0
    const { encoding } = this.#file
    const what = `byte 0x${byte.toString(16).padStart(2, '0')} is not valid UTF-8`
    return this.#error(
      'SLUICE_ENCODING',
      byte === 0xff && encoding !== 'utf-8' ? `text that is not valid ${encoding}` : what,
      { at },
    )
  }

  #checkCount(width: number): void {
    const { cursor } = this
    const { ragged } = this.#file.dialect
    if (ragged === (cursor.count < width ? 'fill' : 'trim')) return
    const { message, column } = fieldCountFault(cursor.count, this.#file.columns)
    throw this.#error('SLUICE_CSV_FIELD_COUNT', message, {
      at: cursor.start,
      ...(column === undefined ? {} : { column }),
    })
  }

  #broken(status: 'stray' | 'after' | 'open' | 'lf'): SluiceError {
    const { cursor } = this
    const at = cursor.problemAt
    const bad = this.#utf8 ? -1 : firstInvalid(cursor.bytes.subarray(cursor.start))
    const ends = status === 'open' ? cursor.bytes.byteLength : at
    if (bad >= 0 && cursor.start + bad < ends && this.#file.dialect.onInvalidUtf8 !== 'replace')
      return this.#invalid(cursor.start + bad)
    if (status === 'open') return this.#error('SLUICE_CSV_UNTERMINATED_QUOTE', 'unterminated quoted field', { at })
    if (status === 'lf') {
      const hint = 'make all line ends LF or CR LF'
      return this.#error('SLUICE_UNKNOWN_FORMAT', 'the lines end with CR, and here one ends with LF', { at, hint })
    }
    if (status === 'after') return this.#error('SLUICE_CSV_QUOTE', 'text after a closing quote', { at })
    return this.#error('SLUICE_CSV_QUOTE', 'a quote inside an unquoted field', { at })
  }

  /** Line and column are those of the byte. */
  #error(
    code: ErrorCode,
    message: string,
    spot: { readonly at: number; readonly column?: string; readonly hint?: string },
  ): SluiceError {
    const { at, column, hint } = spot
    const { cursor } = this
    const lines = countByte(cursor.bytes.subarray(cursor.start, at), this.#file.lineEnd)
    const where = {
      url: this.#file.url,
      row: this.row,
      line: this.line + lines,
      byte: this.#start.byte + at,
      column: column ?? this.#columnAt(at),
    }
    return new SluiceError(code, message, { where, hint })
  }

  #columnAt(at: number): string | undefined {
    const { cursor } = this
    if (at === cursor.start && cursor.count !== this.#file.columns.length) return this.#file.columns[0]
    let j = 0
    for (; j < cursor.count; j += 1) if (at <= (cursor.ends[j] ?? 0)) break
    const afterQuote = j > 0 && at === (cursor.ends[j - 1] ?? 0) + 1 && cursor.kinds[j - 1] !== PLAIN
    return this.#file.columns[afterQuote ? j - 1 : j]
  }
}

/** Whether a field is one of the words that mean NULL. */
export function isNullWord(cursor: RecordCursor, j: number, nulls: readonly Buffer[]): boolean {
  if (nulls.length === 0 || cursor.kinds[j] !== PLAIN) return false
  const start = cursor.starts[j] ?? 0
  const end = cursor.ends[j] ?? 0
  return nulls.some((word) => word.length === end - start && word.compare(cursor.bytes, start, end) === 0)
}
