/** Days from 1970-01-01 to 2000-01-01, which PostgreSQL counts dates and timestamps from. */
export const EPOCH_DAYS = 10_957
/** Years 1 to 9999, in days since 2000-01-01: what readers of Parquet can have (Python's datetime, SQL's date). */
export const FIRST_DATE = -730_119
/** The last such day. */
export const LAST_DATE = 2_921_939

const DAY_MICROS = 86_400_000_000n
/** PostgreSQL's infinity and -infinity (datatype/timestamp.h). */
const [LAST_INT32, FIRST_INT32] = [0x7fffffff, -0x80000000]
const [LAST_INT64, FIRST_INT64] = [0x7fffffffffffffffn, -0x8000000000000000n]

/** A date as people write it, given in days since 2000-01-01: `infinity`, `0044-03-15 BC`, `10000-01-01`. */
export function dateText(days: number): string {
  if (days === LAST_INT32) return 'infinity'
  if (days === FIRST_INT32) return '-infinity'
  const { date, isBc } = civilDate(days)
  return `${date}${isBc ? ' BC' : ''}`
}

/** A timestamp as people write it, given in microseconds since 2000-01-01, in its two halves. */
export function timestampText(high: number, low: number): string {
  const micros = (BigInt(high) << 32n) | BigInt(low >>> 0)
  if (micros === LAST_INT64) return 'infinity'
  if (micros === FIRST_INT64) return '-infinity'
  const ofDay = ((micros % DAY_MICROS) + DAY_MICROS) % DAY_MICROS
  const { date, isBc } = civilDate(Number((micros - ofDay) / DAY_MICROS))
  const seconds = Number(ofDay / 1_000_000n)
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const fraction = Number(ofDay % 1_000_000n)
  const behind = fraction === 0 ? '' : `.${String(fraction).padStart(6, '0').replace(/0+$/, '')}`
  return `${date} ${clock.map((part) => String(part).padStart(2, '0')).join(':')}${behind}${isBc ? ' BC' : ''}`
}

/** The Gregorian calendar, carried backwards as SQL has it; years count from March in the arithmetic, so that leap days come last. */
function civilDate(days: number): { date: string; isBc: boolean } {
  const [ofEra, ofYear] = [146_097, 365]
  const since = days + 730_425
  const era = Math.floor(since / ofEra)
  const day = since - era * ofEra
  const year = Math.floor(
    (day - Math.floor(day / 1460) + Math.floor(day / 36_524) - Math.floor(day / 146_096)) / ofYear,
  )
  const inYear = day - (ofYear * year + Math.floor(year / 4) - Math.floor(year / 100))
  const fromMarch = Math.floor((5 * inYear + 2) / 153)
  const dayOfMonth = inYear - Math.floor((153 * fromMarch + 2) / 5) + 1
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  const full = year + era * 400 + (month <= 2 ? 1 : 0)
  const isBc = full <= 0
  const two = (part: number): string => String(part).padStart(2, '0')
  return {
    date: `${String(isBc ? 1 - full : full).padStart(4, '0')}-${two(month)}-${two(dayOfMonth)}`,
    isBc,
  }
}
