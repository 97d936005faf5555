/** How a text does not fit: it can be no value of the type at all, is one that the type lacks (infinity, BC, 24:00:00), or would lose something. */
export type Misfit = 'no' | 'special' | 'inexact'

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?$/
const SPECIAL_NUMBER = /^[+-]?(?:nan|inf(?:inity)?)$/i
const DATE = /^(\d{4,6})-(\d{2})-(\d{2})$/
const TIME = /^(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?$/
const STAMP = /^(\d{4,6}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}[^Zz+-]*))?\s*([Zz]|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)?$/
const SPECIAL_TIME = /^[+-]?infinity$|BC$/i
const DAY_MS = 86_400_000
const DAY_MICROS = 86_400_000_000n
/** Digits that a decimal of 128 bits has (Parquet's and Arrow's highest precision). */
const MOST_DIGITS = 38

/** A number as `digits × 10^exponent`, digits without zeros at their ends; null where the text is none. */
function takeApart(text: string): { negative: boolean; digits: string; exponent: number } | null {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  const all = whole + fraction
  if (all === '') return null
  const digits = all.replace(/0+$/, '')
  const stripped = digits.replace(/^0+/, '')
  return {
    negative: sign === '-',
    digits: stripped,
    exponent: stripped === '' ? 0 : Number(exponent) - fraction.length + all.length - digits.length,
  }
}

/** The units of 10^-scale that a number is, where that is a whole number of at most `precision` digits. */
export function unitsOf(text: string, precision: number, scale: number): bigint | Misfit {
  const number = takeApart(text)
  if (number === null) return SPECIAL_NUMBER.test(text) ? 'special' : 'no'
  const zeros = number.exponent + scale
  if (number.digits === '') return 0n
  if (zeros < 0 || number.digits.length + zeros > Math.min(precision, MOST_DIGITS)) return 'inexact'
  const units = BigInt(number.digits) * 10n ** BigInt(zeros)
  return number.negative ? -units : units
}

/** A whole number of at most `bits` bits; `12.0` and `1e3` are such, too. */
export function integerOf(text: string, bits: 16 | 32 | 64): bigint | Misfit {
  const value = /^-?\d{1,15}$/.test(text) ? BigInt(text) : unitsOf(text, MOST_DIGITS, 0)
  if (typeof value !== 'bigint') return value
  return BigInt.asIntN(bits, value) === value ? value : 'inexact'
}

/** The double that a text is. Exactly: written back, the double has the same digits. */
export function doubleOf(text: string): number | Misfit {
  if (SPECIAL_NUMBER.test(text)) return specialNumber(text)
  const wanted = takeApart(text)
  if (wanted === null) return 'no'
  const value = Number(text)
  const got = takeApart(String(value))
  const same = got !== null && got.digits === wanted.digits && got.exponent === wanted.exponent
  return same ? value : 'inexact'
}

/** The nearest single-precision number. */
export function floatOf(text: string): number | Misfit {
  if (SPECIAL_NUMBER.test(text)) return specialNumber(text)
  if (takeApart(text) === null) return 'no'
  const value = Math.fround(Number(text))
  return Number.isFinite(value) ? value : 'inexact'
}

function specialNumber(text: string): number {
  if (/nan/i.test(text)) return Number.NaN
  return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

/** Days since 1970-01-01 in the Gregorian calendar, as ISO 8601 has it for all years. */
export function daysOf(text: string): number | Misfit {
  const [, year = '', month = '', day = ''] = DATE.exec(text) ?? []
  if (year === '') return SPECIAL_TIME.test(text) ? 'special' : 'no'
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  const isReal = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day)
  return isReal ? date.getTime() / DAY_MS : 'no'
}

/** Microseconds since midnight. */
export function microsOf(text: string): bigint | Misfit {
  const [, hour = '', minute = '', second = '0', fraction = ''] = TIME.exec(text) ?? []
  if (hour === '' || Number(minute) > 59 || Number(second) > 59 || Number(hour) > 24) return 'no'
  if (Number(hour) === 24) return Number(minute) + Number(second) + Number(fraction || '0') === 0 ? 'special' : 'no'
  if (/[1-9]/.test(fraction.slice(6))) return 'inexact'
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second)
  return BigInt(seconds * 1_000_000 + Number(fraction.slice(0, 6).padEnd(6, '0')))
}

/** Microseconds since 1970-01-01T00:00:00: of UTC where `utc` (a text without an offset is UTC), else an offset has no place. */
export function stampOf(text: string, utc: boolean): bigint | Misfit {
  const [, date = '', time = '00:00', offset = ''] = STAMP.exec(text) ?? []
  if (date === '') return SPECIAL_TIME.test(text) ? 'special' : 'no'
  if (offset !== '' && !utc) return 'inexact'
  const days = daysOf(date)
  const micros = microsOf(time.trim())
  if (typeof days === 'string') return days
  if (typeof micros === 'string') return micros
  const stamp = BigInt(days) * DAY_MICROS + micros - offsetMicros(offset)
  return BigInt.asIntN(64, stamp) === stamp ? stamp : 'special'
}

function offsetMicros(offset: string): bigint {
  const [, sign = '', hours = '0', minutes = '0', seconds = '0'] =
    /^([+-])(\d{2}):?(\d{2})?:?(\d{2})?$/.exec(offset) ?? []
  const micros = BigInt(Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1_000_000n
  return sign === '-' ? -micros : micros
}
