import { isUtf8 } from 'node:buffer'
import type { Value } from '../../core/batch.ts'
import { JsonFault, unexpected } from './json-fault.ts'
import { controlCharacter, skipBlank, skipNumber, skipString, skipValue, skipWord } from './skip-value.ts'

export interface RowParserOptions {
  readonly onInvalidUtf8: 'error' | 'reject' | 'replace'
  /** `keep`: an escaped one, which JSON has like any other character; whoever can't hold it tells. */
  readonly onNul: 'error' | 'reject' | 'strip' | 'keep'
  /** Rows may span lines (a JSON array). */
  readonly acrossLines: boolean
}

const LONE_SURROGATE = /\p{Surrogate}/gu

/**
 * Parses JSON objects into rows. The block is taken as Latin-1 text, in which an index is a byte; only what has bytes above 0x7F is decoded
 * from the bytes themselves. Keys are guessed to come in the order of the row before, which makes a key a comparison.
 */
export class RowParser {
  /** Index behind the object that `parse` read last. */
  at = 0
  readonly #o: RowParserOptions
  readonly #first: readonly string[]
  #bytes: Buffer = Buffer.alloc(0)
  #text = ''
  #limit = 0
  #valid = true
  #columns: string[] = []
  #empty: undefined[] = []
  #byName = new Map<string, number>()
  #byToken = new Map<string, number>()
  /** The row before: the bytes of its keys, quotes included, and their columns. */
  #tokens: Uint8Array[] = []
  #guesses: number[] = []

  constructor(columns: readonly string[], o: RowParserOptions) {
    this.#first = columns
    this.#o = o
    this.#reset()
  }

  /** All columns of the block so far: the first ones, then those that its rows added. The same array as long as none is added. */
  get columns(): readonly string[] {
    return this.#columns.length === this.#first.length ? this.#first : this.#columns
  }

  /** Whether bytes `[from, end]` of the block, the last one perhaps the first of a character, are not UTF-8. */
  invalidWithin(from: number, end: number): boolean {
    if (this.#valid || this.#o.onInvalidUtf8 === 'replace') return false
    return this.#bytes[end] === 0xff || !isUtf8(this.#bytes.subarray(from, end))
  }

  /** Takes the next block in hand. Columns that the last one added are forgotten, so that a batch's columns do not depend on where reading began. */
  load(bytes: Buffer): void {
    this.#bytes = bytes
    this.#limit = bytes.byteLength
    this.#text = bytes.toString('latin1')
    this.#valid = isUtf8(bytes)
    if (this.#columns.length > this.#first.length) this.#reset()
  }

  /** Gives rows that were read before a column was added their full width. */
  widen(rows: readonly Value[][]): void {
    for (const row of rows) while (row.length < this.#columns.length) row.push(undefined)
  }

  /**
   * The object that begins at `from`.
   *
   * @throws JsonFault
   */
  parse(from: number): Value[] {
    const bytes = this.#bytes
    const across = this.#o.acrossLines
    if ((bytes[from] ?? 0) !== 0x7b) throw unexpected(bytes, from, 'a JSON object')
    const row: Value[] = this.#empty.slice()
    let at = skipBlank(bytes, from + 1, across)
    if ((bytes[at] ?? 0) === 0x7d) {
      this.at = at + 1
      return row
    }
    for (let index = 0; ; index += 1) {
      const column = this.#key(at, index)
      at = this.at
      if ((bytes[at] ?? 0) !== 0x3a) {
        at = skipBlank(bytes, at, across)
        if ((bytes[at] ?? 0) !== 0x3a) throw unexpected(bytes, at, 'a colon')
      }
      at += 1
      const code = bytes[at] ?? 0
      if (code === 0x20 || code === 0x09 || code === 0x0d || code === 0x0a) at = skipBlank(bytes, at, across)
      if (row[column] !== undefined)
        throw this.#named('SLUICE_JSON', 'the key comes twice in one object', { at: from, column })
      while (row.length < column) row.push(undefined)
      row[column] = this.#value(at, column)
      at = this.at
      let next = bytes[at] ?? 0
      if (next !== 0x2c && next !== 0x7d) {
        at = skipBlank(bytes, at, across)
        next = bytes[at] ?? 0
      }
      at += 1
      if (next === 0x7d) {
        this.at = at
        return row
      }
      if (next !== 0x2c) throw unexpected(bytes, at - 1, "',' or '}'")
      if ((bytes[at] ?? 0) !== 0x22) at = skipBlank(bytes, at, across)
    }
  }

  /** The column of the key at `from`; `this.at` is then behind it. */
  #key(from: number, index: number): number {
    const bytes = this.#bytes
    const guess = this.#tokens[index]
    if (guess !== undefined) {
      let same = 0
      while (same < guess.length && guess[same] === bytes[from + same]) same += 1
      if (same === guess.length) {
        this.at = from + same
        return this.#guesses[index] ?? 0
      }
    }
    if ((bytes[from] ?? 0) !== 0x22) throw unexpected(bytes, from, 'a key in quotes')
    const end = skipString(bytes, from, this.#o.onNul === 'strip' ? this.#limit : 0)
    const token = this.#text.slice(from, end)
    const column = this.#byToken.get(token) ?? this.#columnOf(token, from, end)
    this.#tokens[index] = Uint8Array.prototype.slice.call(bytes, from, end)
    this.#guesses[index] = column
    this.at = end
    return column
  }

  #columnOf(token: string, from: number, end: number): number {
    const name =
      token.includes('\\') || token.includes('\0') ? this.#unescape(from, end, -1) : this.#decode(from + 1, end - 1, -1)
    let column = this.#byName.get(name)
    if (column === undefined) {
      column = this.#columns.length
      this.#columns.push(name)
      this.#byName.set(name, column)
      this.#empty.push(undefined)
    }
    // One entry a spelling; spellings of a block are bounded by its bytes, and the map is emptied with the columns.
    this.#byToken.set(token, column)
    return column
  }

  #value(from: number, column: number): Value {
    const bytes = this.#bytes
    const code = bytes[from] ?? 0
    if (code === 0x22) return this.#string(from, column)
    if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      this.at = skipNumber(bytes, from)
      return { kind: 'number', text: this.#text.slice(from, this.at) }
    }
    if (code === 0x7b || code === 0x5b) {
      this.at = skipValue(bytes, from, { acrossLines: this.#o.acrossLines, depth: 1 })
      return { kind: 'json', text: this.#decode(from, this.at, column) }
    }
    if (code === 0x6e) {
      this.at = skipWord(bytes, from, 'null')
      return null
    }
    const word = code === 0x74
    if (!word && code !== 0x66) throw unexpected(bytes, from, 'a value')
    this.at = skipWord(bytes, from, word ? 'true' : 'false')
    return word
  }

  #string(from: number, column: number): string {
    const bytes = this.#bytes
    let at = from + 1
    let bits = 0
    let code = bytes[at] ?? 0
    while (code !== 0x22 && code !== 0x5c && code >= 0x20) {
      bits |= code
      at += 1
      code = bytes[at] ?? 0
    }
    if (code === 0x22) {
      this.at = at + 1
      return bits < 0x80 ? this.#text.slice(from + 1, at) : this.#decode(from + 1, at, column)
    }
    const strip = this.#o.onNul === 'strip'
    if (code !== 0x5c && !(strip && code === 0 && at < this.#limit)) throw controlCharacter(bytes, at)
    this.at = skipString(bytes, from, strip ? this.#limit : 0)
    return this.#unescape(from, this.at, column)
  }

  /** The text of bytes `[from, end)`. */
  #decode(from: number, end: number, column: number): string {
    if (!this.#valid && this.#o.onInvalidUtf8 !== 'replace' && !isUtf8(this.#bytes.subarray(from, end))) {
      throw this.#named('SLUICE_ENCODING', 'bytes that are not valid UTF-8', { at: from, column })
    }
    return this.#bytes.toString('utf8', from, end)
  }

  /** The value of a string token, quotes included, that has escapes (checked already) or NUL bytes to strip. */
  #unescape(from: number, end: number, column: number): string {
    const token = this.#decode(from, end, column)
    let value = String(JSON.parse(token.includes('\0') ? token.replaceAll('\0', '') : token))
    if (this.#o.onNul !== 'keep' && value.includes('\0')) {
      if (this.#o.onNul !== 'strip')
        throw this.#named('SLUICE_NUL', 'a NUL character (\\u0000) in a string', { at: from, column })
      value = value.replaceAll('\0', '')
    }
    LONE_SURROGATE.lastIndex = 0
    if (!LONE_SURROGATE.test(value)) return value
    if (this.#o.onInvalidUtf8 !== 'replace')
      throw this.#named('SLUICE_ENCODING', 'half of a surrogate pair in a string', { at: from, column })
    return value.replace(LONE_SURROGATE, '\ufffd')
  }

  #named(
    code: 'SLUICE_JSON' | 'SLUICE_ENCODING' | 'SLUICE_NUL',
    message: string,
    o: { readonly at: number; readonly column: number },
  ): JsonFault {
    return new JsonFault(code, message, { at: o.at, column: this.#columns[o.column] })
  }

  #reset(): void {
    this.#columns = [...this.#first]
    this.#empty = this.#first.map(() => undefined)
    this.#byName = new Map(this.#first.map((name, index) => [name, index]))
    this.#byToken = new Map()
    this.#tokens = []
    this.#guesses = []
  }
}
