import type { RowPlace, Value } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Position } from '../../core/job.ts'
import { JsonFault, unexpected } from './json-fault.ts'
import type { RowParser } from './row-parser.ts'
import { skipBlank } from './skip-value.ts'
import type { Window } from './window.ts'

/** What comes of objects that span lines, or stand side by side on one. */
const MISPLACED = /^(?:the end of the line|'[{,]' where the end of the line)/
const ONE_A_LINE = 'mend the line; where objects span lines, or several stand on one, jq -c . makes one a line of them'

/** `lines`: one object a line. `array`: one JSON array of objects. `answer`: such an array inside of an object, whose other members follow it. */
export type Layout = 'lines' | 'array' | 'answer'

/** What follows the array of an answer: counts, and a key or a token. */
const MOST_TAIL_BYTES = 64 * 1024

/** Rows of one block and where they stand. */
export interface RowBlock {
  readonly columns: readonly string[]
  readonly rows: readonly Value[][]
  readonly places: readonly RowPlace[]
  readonly start: Position
  readonly end: Position
}

export interface RowReaderOptions {
  readonly layout: Layout
  readonly from: Position
  /** Bytes of a block, more where one row is longer. */
  readonly blockBytes: number
  readonly maxRowBytes: number
  readonly url: string
  /** Told what follows the array of an `answer`. */
  readonly onTail?: ((tail: object) => void) | undefined
}

/** Cuts a window into blocks of whole rows and parses them. Memory: one block (its bytes, its text, its rows) and what the window holds. */
export class RowReader {
  readonly #window: Window
  readonly #parser: RowParser
  readonly #o: RowReaderOptions
  #position: Position
  #closed = false
  readonly #isArray: boolean
  /** What followed the array of an `answer` so far; up to MOST_TAIL_BYTES. */
  #tail = ''
  // The block in hand.
  #block: Buffer = Buffer.alloc(0)
  #rows: Value[][] = []
  #places: RowPlace[] = []
  #line = 0
  #counted = 0
  #nextLineEnd = 0
  /** Where the row that is being parsed begins. */
  #began = 0

  constructor(window: Window, parser: RowParser, o: RowReaderOptions) {
    this.#window = window
    this.#parser = parser
    this.#o = o
    this.#position = o.from
    this.#isArray = o.layout !== 'lines'
  }

  /**
   * The next block that has rows; null at the end.
   *
   * @throws SLUICE_JSON, SLUICE_NUL, SLUICE_ENCODING, SLUICE_ROW_TOO_LONG with url, row, line and byte
   */
  async next(): Promise<RowBlock | null> {
    const start = this.#position
    let size = this.#o.blockBytes
    for (;;) {
      await this.#window.fill(size)
      const view = this.#window.bytes.subarray(0, size)
      const whole = this.#window.ended && view.byteLength === this.#window.bytes.byteLength
      if (whole && view.byteLength === 0) {
        if (this.#isArray && !this.#closed)
          throw this.#fault({ code: 'SLUICE_JSON', message: 'the array does not end', at: 0 })
        if (this.#o.layout === 'answer') this.#endAnswer()
        return null
      }
      const used = this.#take(view, whole)
      if (used === 0) {
        if (size > this.#o.maxRowBytes) throw this.#tooLong()
        size *= 2
        continue
      }
      size = this.#o.blockBytes
      this.#position = { byte: this.#position.byte + used, row: start.row + this.#rows.length, line: this.#line }
      this.#window.drop(used)
      if (this.#rows.length === 0) continue
      this.#parser.widen(this.#rows)
      return { columns: this.#parser.columns, rows: this.#rows, places: this.#places, start, end: this.#position }
    }
  }

  /** Parses what is whole in the view; returns how many bytes that took, 0 where more bytes are needed. */
  #take(view: Buffer, whole: boolean): number {
    this.#rows = []
    this.#places = []
    this.#line = this.#position.line
    this.#counted = 0
    this.#nextLineEnd = -1
    const limit = whole || this.#isArray ? view.byteLength : view.lastIndexOf(0x0a) + 1
    if (limit === 0) return 0
    this.#block = view.subarray(0, limit)
    this.#parser.load(this.#block)
    try {
      return this.#isArray ? this.#takeElements(limit, whole) : this.#takeLines(limit)
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error
      // Bytes that are no text often break the grammar, too: what comes first is told.
      if (error.code === 'SLUICE_JSON' && this.#parser.invalidWithin(this.#began, error.at)) {
        throw this.#fault({
          code: 'SLUICE_ENCODING',
          message: 'bytes that are not valid in the encoding',
          at: this.#began,
        })
      }
      throw this.#fault(error)
    }
  }

  #takeLines(limit: number): number {
    const bytes = this.#block
    for (let at = 0; at < limit; at += 1) {
      at = skipBlank(bytes, at, false)
      if (at < limit && bytes[at] !== 0x0a) {
        this.#began = at
        const row = this.#parser.parse(at)
        let after = this.#parser.at
        if (bytes[after] !== 0x0a) after = skipBlank(bytes, after, false)
        if (after < limit && bytes[after] !== 0x0a) throw unexpected(bytes, after, 'the end of the line')
        this.#add(row, at)
        at = after
      }
      // A last line without an end is no line more to count.
      if (at < limit) this.#line += 1
    }
    return limit
  }

  #takeElements(limit: number, whole: boolean): number {
    let used = 0
    try {
      for (;;) {
        const after = this.#element(used, limit)
        // A batch ends behind its last element: who begins there still finds the end of the array.
        if (this.#closed && this.#rows.length === 0) return limit
        if (this.#closed) break
        used = after
      }
      this.#closed = false
    } catch (error) {
      const real = error instanceof JsonFault && error.at < limit
      if (real) this.#countLines(error.at)
      if (real || !(error instanceof JsonFault)) throw error
      if (whole && used === 0) throw new JsonFault('SLUICE_JSON', 'the array does not end', { at: limit })
    }
    this.#countLines(used)
    return used
  }

  /** One element from `from` on, with the comma before it; returns the index behind it. */
  #element(from: number, limit: number): number {
    const bytes = this.#block
    let at = skipBlank(bytes, from, true)
    if (this.#closed) {
      if (this.#o.layout === 'answer' && this.#tail.length + limit - from <= MOST_TAIL_BYTES)
        this.#tail += bytes.toString('latin1', from, limit)
      else if (at < limit) throw unexpected(bytes, at, 'the end of the file')
      return limit
    }
    const first = this.#position.row === 0 && this.#rows.length === 0
    if (bytes[at] === 0x5d) {
      this.#closed = true
      return this.#rows.length > 0 ? at : this.#element(at + 1, limit)
    }
    if (!first) {
      if (bytes[at] !== 0x2c) throw unexpected(bytes, at, "',' or ']'")
      at = skipBlank(bytes, at + 1, true)
    }
    this.#began = at
    const row = this.#parser.parse(at)
    this.#countLines(at)
    this.#add(row, at)
    return this.#parser.at
  }

  #endAnswer(): void {
    try {
      this.#o.onTail?.(JSON.parse(`{"":[]${this.#tail}`) as object)
    } catch {
      throw this.#fault({ code: 'SLUICE_JSON', message: 'the object around the array does not end', at: 0 })
    }
  }

  /** Takes in the row that the parser has just read from `at` on. */
  #add(row: Value[], at: number): void {
    const { byte, row: before } = this.#position
    if (this.#parser.at - at > this.#o.maxRowBytes)
      throw new JsonFault('SLUICE_ROW_TOO_LONG', `a row of more than ${this.#o.maxRowBytes} bytes`, { at })
    this.#rows.push(row)
    this.#places.push({ row: before + this.#rows.length, line: this.#line + 1, byte: byte + at })
  }

  /** Counts the line ends before `at`; each is looked for once. */
  #countLines(at: number): void {
    for (;;) {
      if (this.#nextLineEnd < this.#counted) {
        const found = this.#block.indexOf(0x0a, this.#counted)
        this.#nextLineEnd = found < 0 ? Number.POSITIVE_INFINITY : found
      }
      if (this.#nextLineEnd >= at) return
      this.#line += 1
      this.#counted = this.#nextLineEnd + 1
    }
  }

  #fault({
    code,
    message,
    at,
    column,
  }: Pick<JsonFault, 'code' | 'message' | 'at'> & { readonly column?: string | undefined }): SluiceError {
    const where = {
      url: this.#o.url,
      row: this.#position.row + this.#rows.length + 1,
      line: this.#line + 1,
      byte: this.#position.byte + at,
      ...(column === undefined ? {} : { column }),
    }
    if (code !== 'SLUICE_JSON') return new SluiceError(code, message, { where })
    const hint = this.#o.layout === 'lines' && MISPLACED.test(message) ? ONE_A_LINE : undefined
    return new SluiceError(code, `not a JSON object: ${message}`, { where, hint })
  }

  #tooLong(): SluiceError {
    return this.#fault({
      code: 'SLUICE_ROW_TOO_LONG',
      message: `a row of more than ${this.#o.maxRowBytes} bytes`,
      at: 0,
    })
  }
}
