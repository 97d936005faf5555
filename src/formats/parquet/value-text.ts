/** `8-4-4-4-12` hex digits. */
export function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** The shortest text that gives the double back; NaN, Infinity, -Infinity. */
export function doubleText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

/** The shortest text that gives the single-precision number back: nine digits always do (IEEE 754). */
export function floatText(value: number): string {
  if (!Number.isFinite(value) || value === 0) return doubleText(value)
  for (let digits = 1; digits < 9; digits += 1) {
    const text = value.toPrecision(digits)
    if (Math.fround(Number(text)) === value) return String(Number(text))
  }
  return String(Number(value.toPrecision(9)))
}

/** A half-precision number (IEEE 754 binary16) by its bits. */
export function halfText(bits: number): string {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const fraction = bits & 1023
  if (exponent === 31) return fraction === 0 ? String(sign * Number.POSITIVE_INFINITY) : 'NaN'
  const value = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15)
  return doubleText(sign * value)
}

/** The exact text of a decimal of 128 or 256 bits, which lies as 32-bit words, lowest first. */
export function decimalText(
  words: ArrayLike<number | bigint>,
  at: number,
  type: { readonly bitWidth: number; readonly scale: number },
): string {
  const count = type.bitWidth / 32
  let units = 0n
  for (let i = count - 1; i >= 0; i -= 1) units = (units << 32n) | BigInt(words[at * count + i] ?? 0)
  units = BigInt.asIntN(type.bitWidth, units)
  const digits = String(units < 0n ? -units : units).padStart(type.scale + 1, '0')
  const point = digits.length - type.scale
  const text = type.scale > 0 ? `${digits.slice(0, point)}.${digits.slice(point)}` : digits
  return units < 0n ? `-${text}` : text
}

/** ISO 8601 duration of Parquet's interval: months, days and milliseconds, little-endian without sign (LogicalTypes.md, "INTERVAL"). */
export function intervalText(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [months, days, millis] = [view.getUint32(0, true), view.getUint32(4, true), view.getUint32(8, true)]
  const date = `${months === 0 ? '' : `${months}M`}${days === 0 ? '' : `${days}D`}`
  return `P${date}${millis === 0 && date !== '' ? '' : `T${millis / 1000}S`}`
}
