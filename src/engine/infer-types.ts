import type { Value } from '../core/batch.ts'
import type { Column, NeutralType } from '../core/schema.ts'

/** A column with its inferred type. Fits where a Column is wanted. */
export interface InferredColumn extends Column {
  readonly type: NeutralType
  /** For `integer`: how many bits hold each value in two's complement. `more` where 64 are too few. */
  readonly integerBits?: 32 | 64 | 'more' | undefined
  /** For `integer` and `number`: that a value has more than 38 digits, which is what DynamoDB's numbers and Parquet's decimals hold. */
  readonly manyDigits?: true | undefined
}

/** What one value looks like. Kinds with a format are `date`/`timestamp`/`timestamptz` plus how it is written. */
type Kind = 'i32' | 'i64' | 'iBig' | 'number' | 'boolean' | 'date' | 'json' | 'binary' | 'string' | `timestamp${string}`

interface ColumnState {
  /** Null before the first value. */
  kind: Kind | null
  nullable: boolean
  /** A number with more than MANY_DIGITS came. */
  manyDigits: boolean
}

const MANY_DIGITS = 38

/** No system that sluice writes to holds a number with more digits; ones near it are text (PostgreSQL: 16,383 after the point). */
const LONGEST_NUMBER = 16_000

/**
 * Decides per column what its values are (cli.md, "Types"): a column is an integer, number, boolean, date or timestamp only if each
 * of its values, written back, is the same text. `01569`, `+44`, `1.10`, `1e5`, `-0`, `NaN`, `t` and `TRUE` stay text, and so do a column that mixes
 * kinds, one with an empty string, and one without any value. Timestamps may be written in any one format that all of
 * them share: separator (a blank or `T`), digits of the fraction (as many in each, or none at its end a zero), and mark of UTC (`Z`, `+00`,
 * `+00:00`: timestamptz; other offsets would be lost, so they stay text). State is a few words a column, however long the input.
 */
export class TypeInferrer {
  readonly #names: readonly string[]
  readonly #typed: boolean
  readonly #states: ColumnState[]
  #rows = 0

  /** `typed`: strings come from a format that has numbers and booleans of its own (JSON), so that only dates are looked for in them. */
  constructor(names: readonly string[], o: { readonly typed?: boolean } = {}) {
    this.#names = names
    this.#typed = o.typed === true
    this.#states = names.map(() => ({ kind: null, nullable: false, manyDigits: false }))
  }

  /** Rows seen by `add`. */
  get rows(): number {
    return this.#rows
  }

  add(rows: readonly (readonly Value[])[]): void {
    this.#rows += rows.length
    const states = this.#states
    for (const row of rows) {
      for (let index = 0; index < states.length; index += 1) {
        const value = row[index]
        if (typeof value === 'string') this.addText(index, value)
        else this.#addValue(index, value)
      }
    }
  }

  /** Values of the only column. */
  addValues(values: readonly Value[]): void {
    this.#rows += values.length
    for (const value of values) {
      if (typeof value === 'string') this.addText(0, value)
      else this.#addValue(0, value)
    }
  }

  /** Whether no value can change any result any more: all columns are text. */
  get isSettled(): boolean {
    return this.#states.every(({ kind }) => kind === 'string')
  }

  /** One value of a column as text; null and undefined are no value. */
  addText(index: number, text: string | null | undefined): void {
    const state = this.#states[index]
    if (state === undefined) return
    if (text === null || text === undefined) state.nullable = true
    else if (state.kind !== 'string') {
      state.kind = merge(state.kind, kindOfText(text, this.#typed))
      if (text.length > MANY_DIGITS && hasManyDigits(text)) state.manyDigits = true
    }
  }

  #addValue(index: number, value: Exclude<Value, string>): void {
    const state = this.#states[index]
    if (state === undefined) return
    if (value === null || value === undefined) state.nullable = true
    else if (state.kind !== 'string') state.kind = merge(state.kind, kindOfTyped(value))
  }

  /** May be asked at any time; later values may change it. */
  result(): InferredColumn[] {
    return this.#states.map((state, index) => {
      const name = this.#names[index] ?? ''
      const bits = state.kind === null ? undefined : BITS[state.kind]
      return {
        name,
        type: neutralOf(state.kind),
        ...(bits === undefined ? {} : { integerBits: bits }),
        ...(state.manyDigits && NUMERIC.includes(state.kind) ? { manyDigits: true as const } : {}),
        ...(state.nullable ? { nullable: true } : {}),
      }
    })
  }
}

const BITS: Readonly<Record<string, 32 | 64 | 'more'>> = { i32: 32, i64: 64, iBig: 'more' }

function neutralOf(kind: Kind | null): NeutralType {
  if (kind === null) return 'string'
  if (kind === 'i32' || kind === 'i64' || kind === 'iBig') return 'integer'
  if (kind.startsWith('timestamptz')) return 'timestamptz'
  if (kind.startsWith('timestamp')) return 'timestamp'
  return kind as NeutralType
}

const NUMERIC: readonly (Kind | null)[] = ['i32', 'i64', 'iBig', 'number']

/** The narrowest kind that both fit. */
function merge(a: Kind | null, b: Kind): Kind {
  if (a === b || a === null) return b
  const [first, second] = [NUMERIC.indexOf(a), NUMERIC.indexOf(b)]
  if (first >= 0 && second >= 0) return first > second ? a : b
  if (a.startsWith('timestamp') && b.startsWith('timestamp')) return mergeFormats(a, b)
  return 'string'
}

/** Formats are `timestamp|tz`, separator, mark, fraction (`fN`, and `t` where it ends in no zero), parted by `/`. */
function mergeFormats(a: Kind, b: Kind): Kind {
  const [headA = '', fractionA = ''] = splitLast(a)
  const [headB = '', fractionB = ''] = splitLast(b)
  if (headA !== headB) return 'string'
  const trimmed = fractionA.endsWith('t') && fractionB.endsWith('t')
  if (trimmed) return `${headA}/t` as Kind
  return digitsOf(fractionA) === digitsOf(fractionB) ? (`${headA}/${digitsOf(fractionA)}` as Kind) : 'string'
}

function splitLast(text: string): [string, string] {
  const slash = text.lastIndexOf('/')
  return [text.slice(0, slash), text.slice(slash + 1)]
}

/** `3t` → `3`; plain `t` (several lengths seen) fits no fixed number of digits. */
function digitsOf(fraction: string): string {
  return fraction === 't' ? 'several' : fraction.replace('t', '')
}

function kindOfTyped(value: Exclude<Value, string | null | undefined>): Kind {
  if (typeof value === 'boolean') return 'boolean'
  if (value instanceof Uint8Array) return 'binary'
  if (value.kind === 'json') return 'json'
  const kind = kindOfNumber(value.text)
  return kind === 'string' ? 'number' : kind
}

const ZERO = 48
const NINE = 57

function kindOfText(text: string, typed: boolean): Kind {
  const first = text.charCodeAt(0)
  if (first >= ZERO && first <= NINE) {
    if (text.length >= 10 && text.charCodeAt(4) === 45) return kindOfDate(text)
    return typed ? 'string' : kindOfNumber(text)
  }
  if (typed) return 'string'
  if (first === 45) return kindOfNumber(text)
  return text === 'true' || text === 'false' ? 'boolean' : 'string'
}

/** Canonical decimal text: no leading zeros, no plus, no exponent, no zero at the fraction's end, no minus zero. */
function kindOfNumber(text: string): Kind {
  const length = text.length
  if (length > LONGEST_NUMBER) return 'string'
  let at = text.charCodeAt(0) === 45 ? 1 : 0
  const negative = at === 1
  const firstDigit = text.charCodeAt(at)
  const begin = at
  while (at < length && isDigit(text.charCodeAt(at))) at += 1
  const digits = at - begin
  if (digits === 0 || (firstDigit === ZERO && digits > 1)) return 'string'
  if (at === length) return negative && firstDigit === ZERO ? 'string' : kindOfInteger(text, digits)
  if (text.charCodeAt(at) !== 46) return 'string'
  at += 1
  const fraction = at
  while (at < length && isDigit(text.charCodeAt(at))) at += 1
  return at === length && at > fraction && text.charCodeAt(at - 1) !== ZERO ? 'number' : 'string'
}

/** Zeros before the first digit count for nothing. */
function hasManyDigits(text: string): boolean {
  return text.replace(/^-?[0.]*/, '').replace('.', '').length > MANY_DIGITS
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

function kindOfInteger(text: string, digits: number): Kind {
  if (digits <= 9) return 'i32'
  if (digits <= 10) {
    const value = Number(text)
    return value >= -2_147_483_648 && value <= 2_147_483_647 ? 'i32' : 'i64'
  }
  if (digits <= 18) return 'i64'
  if (digits > 19) return 'iBig'
  const value = BigInt(text)
  return value === BigInt.asIntN(64, value) ? 'i64' : 'iBig'
}

const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)(?:([ T])(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(Z|\+00(?::00)?)?)?$/

function kindOfDate(text: string): Kind {
  // 32 characters are the longest: 2020-01-01T00:00:00.123456+00:00
  const match = text.length > 32 ? null : DATE_TIME.exec(text)
  if (match === null) return 'string'
  const [, year, month, day, separator, hour, minute, second, fraction = '', mark = ''] = match
  if (!isDay(Number(year), Number(month), Number(day))) return 'string'
  if (separator === undefined) return 'date'
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return 'string'
  const trimmed = fraction.endsWith('0') ? '' : 't'
  return `timestamp${mark === '' ? '' : 'tz'}/${separator}/${mark}/${fraction.length}${trimmed}`
}

function isDay(year: number, month: number, day: number): boolean {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 ? (leap ? 29 : 28) : month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  return day <= days
}
