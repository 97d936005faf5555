/** Which closer look a column's fields get. */
export const KIND = {
  skip: 0,
  numeric: 1,
  date: 2,
  time: 3,
  timetz: 4,
  timestamp: 5,
  timestamptz: 6,
  blanks: 7,
  text: 8,
} as const

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

/** Plain decimal with no more than `scale` digits after the point; longer than about 40 bytes it is read as text. */
export function fastNumeric(view: DataView, from: number, scale: number): number {
  const stop = from + FAST_REACH - 8
  let at = digitsEnd(view, view.getUint8(from) === DASH ? from + 1 : from, stop)
  if (at < stop && view.getUint8(at) === POINT) {
    const point = at
    at = digitsEnd(view, point + 1, stop)
    if (at - point - 1 > scale) return -1
  }
  return at < stop ? at : -1
}

/** Offset of the first byte that is no digit, at least `stop` where that is not sooner found. */
function digitsEnd(view: DataView, from: number, stop: number): number {
  for (let at = from; at < stop; at += 4) {
    const low = view.getInt32(at, true) ^ 0x30303030
    // A carry out of a byte that is no digit spoils only the bytes above it.
    const others = (low | (low + 0x06060606)) & 0xf0f0f0f0
    if (others !== 0) return at + ((31 - Math.clz32(others & -others)) >> 3)
  }
  return stop
}

/** `YYYY-MM-DD`. */
export function fastDate(view: DataView, at: number): number {
  return oddDate(view, at) === 0 ? at + 10 : -1
}

/** `HH:MM:SS`, seconds below 60, and a point with up to `precision` digits. */
export function fastTime(view: DataView, at: number, precision: number): number {
  return oddTime(view, at) === 0 ? fractionEnd(view, at + 8, precision) : -1
}

/** A date, a blank or `T`, a time. */
export function fastTimestamp(view: DataView, at: number, precision: number): number {
  const separator = view.getUint8(at + 10)
  if ((separator !== 32 && separator !== 84) || (oddDate(view, at) | oddTime(view, at + 11)) !== 0) return -1
  return fractionEnd(view, at + 19, precision)
}

function fractionEnd(view: DataView, at: number, precision: number): number {
  if (view.getUint8(at) !== POINT) return at
  const end = digitsEnd(view, at + 1, at + 9)
  return end - at - 1 > precision ? -1 : end
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

/** 0 where `dddd`, `-dd-` and `-dd` follow one another. */
function oddDate(view: DataView, at: number): number {
  const year = view.getInt32(at, true)
  const month = view.getInt32(at + 4, true)
  const day = view.getInt32(at + 6, true)
  return (
    ((year & 0xf0f0f0f0) ^ 0x30303030) |
    (((year + 0x06060606) & 0xf0f0f0f0) ^ 0x30303030) |
    ((month & 0xfff0f0ff) ^ 0x2d30302d) |
    (((month + 0x00060600) & 0x00f0f000) ^ 0x00303000) |
    ((day & 0xf0f00000) ^ 0x30300000) |
    (((day + 0x06060000) & 0xf0f00000) ^ 0x30300000)
  )
}

/** 0 where `dd:d` and `d:dd` follow one another and the last two are below 60. */
function oddTime(view: DataView, at: number): number {
  const hour = view.getInt32(at, true)
  const second = view.getInt32(at + 4, true)
  return (
    ((hour & 0xf0fff0f0) ^ 0x303a3030) |
    (((hour + 0x06000606) & 0xf000f0f0) ^ 0x30003030) |
    ((second & 0xf0f0fff0) ^ 0x30303a30) |
    (((second + 0x060a0006) & 0xf0f000f0) ^ 0x30300030)
  )
}

function twoDigits(word: number): boolean {
  return (word & 0xf0f0) === 0x3030 && ((word + 0x0606) & 0xf0f0) === 0x3030
}
