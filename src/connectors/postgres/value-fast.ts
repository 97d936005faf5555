/** Which closer look a column's fields get. */
export const KIND = { skip: 0, numeric: 1, date: 2, time: 3, timetz: 4, timestamp: 5, timestamptz: 6, blanks: 7, text: 8 } as const

/** The longest text that a look below reads without asking for the array's end: callers stay this many bytes away from it. */
export const FAST_REACH = 48

const DASH = 45
const POINT = 46
const COLON = 58

/*
 * Each look gives the offset behind a field's text where that is written in the common way and is stored exactly, or -1 where
 * somebody has to read it as text. Four bytes are compared at a time, as a little-endian word: a digit is 0x30 … 0x39, so its upper half is 3 and stays 3
 * when 6 is added. The caller sees to it that a field's end follows.
 */

/** Plain decimal with no more than `scale` digits after the point; longer than 40 bytes it is read as text. */
export function fastNumeric(view: DataView, from: number, scale: number): number {
  const stop = from + FAST_REACH - 8
  let at = view.getUint8(from) === DASH ? from + 1 : from
  while (at < stop && isDigit(view.getUint8(at))) at += 1
  if (view.getUint8(at) !== POINT) return at < stop ? at : -1
  const point = at
  do at += 1
  while (at < stop && isDigit(view.getUint8(at)))
  return at - point - 1 <= scale && at < stop ? at : -1
}

/** `YYYY-MM-DD`. */
export function fastDate(view: DataView, at: number): number {
  return isYear(view.getInt32(at, true)) && isMonth(view.getInt32(at + 4, true)) && twoDigits(view.getInt16(at + 8, true)) ? at + 10 : -1
}

/** `HH:MM:SS`, seconds below 60, and a point with up to `precision` digits. */
export function fastTime(view: DataView, at: number, precision: number): number {
  // `HH:M` and `M:SS`.
  if (!isHour(view.getInt32(at, true)) || !isSecond(view.getInt32(at + 4, true))) return -1
  let end = at + 8
  if (view.getUint8(end) !== POINT) return end
  end += 1
  // More than 8 digits are read as text, which keeps this within FAST_REACH.
  while (end < at + 17 && isDigit(view.getUint8(end))) end += 1
  return end - at - 9 > precision ? -1 : end
}

/** A date, a blank or `T`, a time. */
export function fastTimestamp(view: DataView, at: number, precision: number): number {
  if (fastDate(view, at) < 0) return -1
  const separator = view.getUint8(at + 10)
  return separator === 32 || separator === 84 ? fastTime(view, at + 11, precision) : -1
}

/** What may follow where a zone is kept: nothing, `Z`, `+HH`, `+HHMM`, `+HH:MM`. Passes -1 on. */
export function fastZone(view: DataView, at: number): number {
  if (at < 0) return -1
  const sign = view.getUint8(at)
  if (sign === 90) return at + 1
  if (sign !== 43 && sign !== DASH) return at
  if (!twoDigits(view.getInt16(at + 1, true))) return -1
  const minutes = view.getUint8(at + 3) === COLON ? at + 4 : at + 3
  return twoDigits(view.getInt16(minutes, true)) ? minutes + 2 : at + 3
}

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57
}

/** dddd */
function isYear(word: number): boolean {
  return (word & 0xf0f0f0f0) === (0x30303030 | 0) && ((word + 0x06060606) & 0xf0f0f0f0) === (0x30303030 | 0)
}

/** -dd- */
function isMonth(word: number): boolean {
  return (word & 0xfff0f0ff) === (0x2d30302d | 0) && ((word + 0x00060600) & 0x00f0f000) === 0x00303000
}

/** dd:d */
function isHour(word: number): boolean {
  return (word & 0xf0fff0f0) === (0x303a3030 | 0) && ((word + 0x06000606) & 0xf000f0f0) === (0x30003030 | 0)
}

/** d:dd, the second digit below 6 */
function isSecond(word: number): boolean {
  return (word & 0xf0f0fff0) === (0x30303a30 | 0) && ((word + 0x060a0006) & 0xf0f000f0) === (0x30300030 | 0)
}

function twoDigits(word: number): boolean {
  return (word & 0xf0f0) === 0x3030 && ((word + 0x0606) & 0xf0f0) === 0x3030
}
