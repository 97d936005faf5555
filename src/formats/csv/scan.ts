/**
 * Scanning CSV bytes four at a time: each kernel turns a word into masks that have 0x80 in the bytes that match, so that a
 * word costs the same whatever stands in it. Words are little-endian, as on every machine that Node runs on. Records end with LF here, with or
 * without a CR before it. Blocks begin where a record begins.
 */

const LF = 10
const ONES = 0x01010101
const LOW7 = 0x7f7f7f7f
/** Words that can be counted in one accumulator of four bytes before one of them overflows. */
const WORDS_A_FOLD = 255
/** Below this many bytes a plain loop is as fast. */
const FEW_BYTES = 128

/** Matching bytes of a word as 0x80 each. */
function matches(word: number, pattern: number): number {
  const x = word ^ pattern
  return ~(((x & LOW7) + LOW7) | x | LOW7)
}

/** Bytes as words from the boundary at or before their first: `lead` bytes of the first word are not theirs, nor are some of the last. */
interface Words {
  readonly words: Int32Array
  readonly lead: number
  /** First and last word with zeros for what is not theirs. They are one and the same in a view of one word. */
  readonly first: number
  readonly last: number
}

function wordsOf(bytes: Uint8Array): Words {
  const lead = bytes.byteOffset & 3
  const whole = (lead + bytes.byteLength) >> 2
  const words = new Int32Array(bytes.buffer, bytes.byteOffset - lead, whole)
  let last = 0
  for (let i = Math.max(0, (whole << 2) - lead); i < bytes.byteLength; i += 1)
    last |= (bytes[i] as number) << ((i + lead - (whole << 2)) << 3)
  return { words, lead, first: (words[0] ?? 0) & (-1 << (lead << 3)), last }
}

function fold(counts: number): number {
  const pairs = (counts & 0x00ff00ff) + ((counts >>> 8) & 0x00ff00ff)
  return (pairs & 0xffff) + (pairs >>> 16)
}

/** How often a byte, not 0, occurs. */
export function countByte(bytes: Uint8Array, byte: number): number {
  let total = 0
  if (bytes.byteLength < FEW_BYTES) {
    for (let i = 0; i < bytes.byteLength; i += 1) if (bytes[i] === byte) total += 1
    return total
  }
  const { words, first, last } = wordsOf(bytes)
  const pattern = Math.imul(byte, ONES)
  total = fold(matches(first, pattern) >>> 7) + fold(matches(last, pattern) >>> 7)
  for (let k = 1; k < words.length;) {
    const end = Math.min(words.length, k + WORDS_A_FOLD)
    let counts = 0
    for (; k < end; k += 1) counts = (counts + (matches(words[k] as number, pattern) >>> 7)) | 0
    total += fold(counts)
  }
  return total
}

/**
 * Where the last whole record of a block ends; 0 where none does. Where a quote stands that should not (`5" pipe`), the place is as if it
 * opened a quoted field: who reads the records finds it before.
 */
export function lastRecordEnd(bytes: Uint8Array, quote: number): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (quote < 0 || buffer.indexOf(quote) < 0) return buffer.lastIndexOf(LF) + 1
  let inside = quoteParity(bytes, quote)
  for (let i = bytes.byteLength - 1; i >= 0; i -= 1) {
    const byte = bytes[i]
    if (byte === quote) inside = !inside
    else if (byte === LF && !inside) return i + 1
  }
  return 0
}

/** Whether the number of quotes is odd. */
export function quoteParity(bytes: Uint8Array, quote: number): boolean {
  const { words, first, last } = wordsOf(bytes)
  const pattern = Math.imul(quote, ONES)
  const end = words.length - ((words.length - 1) & 1)
  let odd = matches(last, pattern) ^ (words.length > 0 ? matches(first, pattern) : 0)
  for (let k = 1; k < end; k += 2) {
    const x = (words[k] as number) ^ pattern
    const y = (words[k + 1] as number) ^ pattern
    odd ^= ~(((x & LOW7) + LOW7) | x | LOW7) ^ ~(((y & LOW7) + LOW7) | y | LOW7)
  }
  if (words.length > 0 && end < words.length) odd ^= matches(words[end] as number, pattern)
  odd ^= odd >>> 16
  odd ^= odd >>> 8
  return (odd & 0x80) !== 0
}
