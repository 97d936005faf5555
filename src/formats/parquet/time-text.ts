const DAY_MS = 86_400_000
/** Digits of a fraction by Arrow's TimeUnit: seconds, milli-, micro-, nanoseconds. */
const DIGITS = [0, 3, 6, 9]

/** ISO 8601 date of days since 1970-01-01; years before 1 with BC behind, as PostgreSQL has them. */
export function dateText(days: number): string {
  const { date, bc } = dateParts(days)
  return date + bc
}

/** How many of Arrow's TimeUnit a day has. */
export function unitsPerDay(unit: number): bigint {
  return 86_400n * 10n ** BigInt(DIGITS[unit] ?? 0)
}

/** ISO 8601: `2020-01-02T03:04:05.123456`, the fraction without zeros at its end; of UTC with a Z, before the BC of years before 1. */
export function stampText(value: bigint, unit: number, utc = false): string {
  const perDay = unitsPerDay(unit)
  let days = value / perDay
  let rest = value % perDay
  if (rest < 0n) {
    rest += perDay
    days -= 1n
  }
  const { date, bc } = dateParts(Number(days))
  return `${date}T${clockText(rest, unit)}${utc ? 'Z' : ''}${bc}`
}

/** `03:04:05.123456` of units since midnight. */
export function clockText(value: bigint, unit: number): string {
  const digits = DIGITS[unit] ?? 0
  const scale = 10n ** BigInt(digits)
  const seconds = Number(value / scale)
  const fraction =
    digits === 0
      ? ''
      : String(value % scale)
          .padStart(digits, '0')
          .replace(/0+$/, '')
  const two = (n: number): string => String(n).padStart(2, '0')
  const clock = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
  return fraction === '' ? clock : `${clock}.${fraction}`
}

/** Julian day number of 1970-01-01. */
const JULIAN_EPOCH = 2_440_588n
const NANOS_A_DAY = 86_400_000_000_000n
const NANOSECONDS = 3

/** An INT96 timestamp: nanoseconds of the day in 8 bytes, then the Julian day in 4, little-endian. */
export function int96Text(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const days = BigInt(view.getInt32(8, true)) - JULIAN_EPOCH
  return stampText(days * NANOS_A_DAY + view.getBigInt64(0, true), NANOSECONDS)
}

function dateParts(days: number): { date: string; bc: string } {
  const date = new Date(days * DAY_MS)
  // Past what Date holds (year 271821) the date is counted by the 400 years after which the calendar repeats.
  const far = Number.isNaN(date.getTime())
  const cycles = far ? Math.floor(days / 146_097) : 0
  const near = far ? new Date((days - cycles * 146_097) * DAY_MS) : date
  const year = near.getUTCFullYear() + cycles * 400
  const shown = year > 0 ? year : 1 - year
  const month = String(near.getUTCMonth() + 1).padStart(2, '0')
  const day = String(near.getUTCDate()).padStart(2, '0')
  return { date: `${String(shown).padStart(4, '0')}-${month}-${day}`, bc: year > 0 ? '' : ' BC' }
}
