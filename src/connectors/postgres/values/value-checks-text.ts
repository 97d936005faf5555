/** Says why PostgreSQL would store less than, or other than, the text; null where it stores it or refuses it by itself. */
export type TextCheck = (text: string) => string | null

const NUMBER = /^\s*[+-]?(\d[\d_]*)?(?:\.([\d_]*))?(?:[eE]([+-]?[\d_]+))?\s*$/

/** Position of the last digit that is not 0: 2 for 1.25, 0 for 10 and 7, -1 for 20 would be -1; -Infinity for zero. Null: no decimal number. */
export function decimalsOf(text: string): number | null {
  const match = NUMBER.exec(text) ?? NUMBER.exec(plainInteger(text))
  if (match === null) return null
  const whole = (match[1] ?? '').replaceAll('_', '')
  const fraction = (match[2] ?? '').replaceAll('_', '')
  const digits = whole + fraction
  let last = digits.length
  while (last > 0 && digits.charCodeAt(last - 1) === 48) last -= 1
  if (last === 0) return Number.NEGATIVE_INFINITY
  return last - whole.length - Number((match[3] ?? '0').replaceAll('_', ''))
}

/** PostgreSQL 16 and later read 0x1F, 0o17 and 0b11. */
function plainInteger(text: string): string {
  const match = /^\s*[+-]?(0[xob][\da-f_]+)\s*$/i.exec(text)
  if (match === null) return text
  try {
    return String(BigInt((match[1] ?? '').replaceAll('_', '')))
  } catch {
    return text
  }
}

/** numeric(p,s): digits past the scale are rounded away. PostgreSQL 15 and later also take a negative scale. */
export function numericCheck(scale: number, type: string): TextCheck {
  return (text) => {
    const decimals = decimalsOf(text)
    if (decimals === null || decimals <= scale) return null
    return scale < 0 ? `has digits that ${type} rounds away` : `has more digits after the point than ${type} keeps`
  }
}

/** numeric without a scale keeps 16,383 digits after the point (NUMERIC_MAX_DISPLAY_SCALE's bound on input, numeric.c). */
export const PLAIN_NUMERIC_DECIMALS = 16_383

/** varchar(n) and char(n): blanks past n characters are cut without a word, anything else past n is an error. */
export function blankCheck(limit: number, type: string): TextCheck {
  return (text) => {
    if (!text.endsWith(' ') || text.length <= limit) return null
    let characters = 0
    for (const _ of text) characters += 1
    return characters > limit ? `has blanks past the ${limit} characters of ${type}, which would be cut` : null
  }
}

/** name: cut at 63 bytes. */
export const nameCheck: TextCheck = (text) =>
  Buffer.byteLength(text) > 63 ? 'is longer than the 63 bytes of name, and would be cut' : null

/** "char": the first byte only (PostgreSQL 16 and later also read `\ooo`, which older servers cut). */
export const charCheck: TextCheck = (text) =>
  Buffer.byteLength(text) > 1 ? 'is longer than the one byte of "char", and would be cut' : null

/** money: two digits after the point (in the locales that have cents), the rest is rounded. */
export const moneyCheck: TextCheck = (text) => {
  const match = /\.(\d+)[^\d.,]*$/.exec(text)
  return match !== null && /[1-9]/.test((match[1] ?? '').slice(2))
    ? 'has more digits after the point than money keeps'
    : null
}

/** oid, xid, cid: a minus wraps around, and xid and cid of older servers wrap past 32 bits. */
export function wrapCheck(bits: 32 | 64, type: string): TextCheck {
  const most = bits === 32 ? 0xffff_ffffn : 0xffff_ffff_ffff_ffffn
  return (text) => {
    const trimmed = text.trim()
    // strtoul with base 0 (xid always, oid since PostgreSQL 16).
    if (/^[+-]?0\d/.test(trimmed)) return `begins with a zero, and would be read as octal by ${type}`
    if (/^-0*[1-9]/.test(trimmed)) return `is negative, and would wrap around in ${type}`
    return /^\d{10,}$/.test(trimmed) && BigInt(trimmed) > most ? `is beyond ${type}` : null
  }
}
