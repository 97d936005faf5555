import type { TextCheck } from './value-checks-text.ts'

/** Bits of an interval's typmod range (src/include/utils/timestamp.h INTERVAL_MASK, datetime.h), finest first, with their words. */
const FIELDS = [
  { bit: 1 << 12, name: 'second', rank: 0 },
  { bit: 1 << 11, name: 'minute', rank: 1 },
  { bit: 1 << 10, name: 'hour', rank: 2 },
  { bit: 1 << 3, name: 'day', rank: 3 },
  { bit: 1 << 1, name: 'month', rank: 4 },
  { bit: 1 << 2, name: 'year', rank: 5 },
] as const

const FULL_RANGE = 0x7fff

/** Words and letters of units (datetime.c, deltatktbl) with how many of `base` they are. */
const UNITS: readonly {
  readonly pattern: RegExp
  readonly rank: number
  readonly months?: number
  readonly microseconds?: number
}[] = [
  { pattern: /^(us|usecs?|microseconds?|microsecon)$/, rank: 0, microseconds: 1 },
  { pattern: /^(ms|msecs?|milliseconds?|millisecon)$/, rank: 0, microseconds: 1e3 },
  { pattern: /^(s|secs?|seconds?)$/, rank: 0, microseconds: 1e6 },
  { pattern: /^(m|mins?|minutes?)$/, rank: 1, microseconds: 60e6 },
  { pattern: /^(h|hrs?|hours?)$/, rank: 2, microseconds: 3600e6 },
  { pattern: /^(d|days?)$/, rank: 3, microseconds: 86_400e6 },
  { pattern: /^(w|weeks?)$/, rank: 3, microseconds: 604_800e6 },
  { pattern: /^(mons?|months?)$/, rank: 4, months: 1 },
  { pattern: /^(y|yrs?|years?)$/, rank: 5, months: 12 },
  { pattern: /^(dec|decs|decades?)$/, rank: 5, months: 120 },
  { pattern: /^(c|cent|century|centuries)$/, rank: 5, months: 1200 },
  { pattern: /^(mil|mils|millennia|millennium)$/, rank: 5, months: 12_000 },
]

/**
 * interval, with the fields and the precision of its typmod: fields finer than the last are dropped, fractions are rounded to the
 * precision, and a fraction of months becomes days of 30 to the month, which is only refused where even that is rounded.
 */
export function intervalCheck(typmod: number, type: string): TextCheck {
  const range = typmod < 0 ? FULL_RANGE : (typmod >> 16) & 0x7fff
  const digits = typmod < 0 ? 0xffff : typmod & 0xffff
  const precision = digits === 0xffff ? 6 : Math.min(digits, 6)
  const finest = range === FULL_RANGE ? 0 : (FIELDS.find((field) => (range & field.bit) !== 0)?.rank ?? 0)
  const quantum = 10 ** (6 - precision)
  return (text) => {
    const found = pieces(text, finest)
    if (found === null) return null
    const unit = [quantum, 60e6, 3600e6, 86_400e6][finest] ?? 86_400e6
    for (const piece of found) {
      if (piece.months !== undefined && !isWhole(piece.text, piece.months, finest >= 5 ? 12 : 1)) {
        // A year's fraction becomes whole months; a month's, days of 30 to the month.
        if (piece.months > 1 || finest >= 4 || !isWhole(piece.text, 30 * 86_400e6, unit))
          return `has a fraction that ${type} rounds`
      }
      if (piece.microseconds !== undefined) {
        if (finest > piece.rank && /[1-9]/.test(piece.text)) return `has a field finer than ${type} keeps`
        if (!isWhole(piece.text, piece.microseconds, unit)) return `has a fraction that ${type} rounds`
      } else if (finest > piece.rank && /[1-9]/.test(piece.text) && !isWhole(piece.text, piece.months ?? 1, 12)) {
        return `has a field finer than ${type} keeps`
      }
    }
    return null
  }
}

/** One amount of an interval: months, or microseconds; a bare number's unit is the finest field's. */
interface Piece {
  readonly text: string
  readonly rank: number
  readonly months?: number | undefined
  readonly microseconds?: number | undefined
}

const PIECE =
  /([+-]?\d+):(\d+)(?::(\d+(?:\.\d*)?))?(?:\.(\d+))?|([+-]?\d+)-(\d+)(?![\d:])|([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)|[a-z]+|[@,\s]+/y

/** The amounts in a literal of any style but ISO 8601's; null where it is not understood (the server judges it). */
function pieces(text: string, finest: number): Piece[] | null {
  const source = text.trim().toLowerCase()
  if (source.startsWith('p') && /\d/.test(source)) return isoPieces(source)
  const found: Piece[] = []
  PIECE.lastIndex = 0
  while (PIECE.lastIndex < source.length) {
    const match = PIECE.exec(source)
    if (match === null) return null
    const [whole, first, second, third, stray, years, months, amount, unit] = match
    if (first !== undefined) addClock(found, { first, second: second ?? '', third, stray, finest })
    else if (years !== undefined)
      found.push({ text: years, rank: 5, months: 12 }, { text: months ?? '0', rank: 4, months: 1 })
    else if (amount !== undefined) {
      const known = unit === '' ? bareUnit(finest) : UNITS.find(({ pattern }) => pattern.test(unit ?? ''))
      if (known === undefined) return null
      found.push({ text: amount, rank: known.rank, months: known.months, microseconds: known.microseconds })
    } else if (/[a-z]/.test(whole) && whole !== 'ago') return null
  }
  return found
}

interface Clock {
  readonly first: string
  readonly second: string
  readonly third: string | undefined
  readonly stray: string | undefined
  readonly finest: number
}

/** `h:m:s`, `h:m`, and `m:s.fraction` (also `m:s` where the column's finest field is the second and the coarsest the minute: the same amounts). */
function addClock(found: Piece[], { first, second, third, stray }: Clock): void {
  if (third === undefined && stray !== undefined) {
    found.push({ text: first, rank: 1, microseconds: 60e6 }, { text: `${second}.${stray}`, rank: 0, microseconds: 1e6 })
    return
  }
  found.push({ text: first, rank: 2, microseconds: 3600e6 }, { text: second, rank: 1, microseconds: 60e6 })
  if (third !== undefined) found.push({ text: third, rank: 0, microseconds: 1e6 })
}

function bareUnit(finest: number): (typeof UNITS)[number] | undefined {
  const word = ['second', 'minute', 'hour', 'day', 'month', 'year'][finest] ?? 'second'
  return UNITS.find(({ pattern }) => pattern.test(word))
}

function isoPieces(source: string): Piece[] | null {
  const [dates = '', times = ''] = source.slice(1).split('t')
  if (!/^(?:[+-]?[\d.]+[ymwd])*$/.test(dates) || !/^(?:[+-]?[\d.]+[hms])*$/.test(times)) return null
  const found: Piece[] = []
  const add = (part: string, words: Readonly<Record<string, string>>): void => {
    for (const [, amount = '', letter = ''] of part.matchAll(/([+-]?[\d.]+)([a-z])/g)) {
      const unit = UNITS.find(({ pattern }) => pattern.test(words[letter] ?? ''))
      if (unit !== undefined)
        found.push({ text: amount, rank: unit.rank, months: unit.months, microseconds: unit.microseconds })
    }
  }
  add(dates, { y: 'year', m: 'month', w: 'week', d: 'day' })
  add(times, { h: 'hour', m: 'minute', s: 'second' })
  return found
}

/** Whether amount × factor is a multiple of unit, exactly. */
function isWhole(amount: string, factor: number, unit: number): boolean {
  const match = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/.exec(amount)
  if (match === null) return true
  const [, whole = '', fraction = '', exponent = '0'] = match
  const shift = fraction.length - Number(exponent)
  // Past this many digits nothing is a multiple of a microsecond by chance, and exponents could make numbers without end.
  if (Math.abs(shift) > 400) return !/[1-9]/.test(whole + fraction)
  const digits = BigInt(whole + fraction || '0') * BigInt(factor)
  const numerator = shift < 0 ? digits * 10n ** BigInt(-shift) : digits
  const denominator = BigInt(unit) * (shift > 0 ? 10n ** BigInt(shift) : 1n)
  return numerator % denominator === 0n
}
