/**
 * Scanning CSV bytes four at a time: each kernel turns a word into masks that have 0x80 in the bytes that match, so that a
 * word costs the same whatever stands in it. Words are little-endian, as on every machine that Node runs on. Records end with LF here, with or
 * without a CR before it. Blocks begin where a record begins.
 */

const LF = 10
const CR = 13
const ONES = 0x01010101
const LOW7 = 0x7f7f7f7f
const HIGH = 0x80808080 | 0
const LF_WORD = LF * ONES
const CR_WORD = CR * ONES
/** Words that can be counted in one accumulator of four bytes before one of them overflows. */
const WORDS_A_FOLD = 255
/** Below this many bytes a plain loop is as fast. */
const FEW_BYTES = 128

/** What a block of whole records looks like. */
export interface Screening {
  /** Records, blank ones included. */
  readonly records: number
  /** Line ends, those between quotes included. */
  readonly lines: number
  /** False: something is there that COPY might read otherwise than we do, and only parsing tells. */
  readonly clean: boolean
}

export interface ScreenRules {
  readonly delimiter: number
  /** -1: the block has no quote, or quotes mean nothing. */
  readonly quote: number
  /** Whether two quotes within quotes are one. */
  readonly doubled: boolean
  /** Line ends that the block ought to have. */
  readonly crlf: boolean
  /** Whether an empty line is a record: in a file of one column. */
  readonly blankLines: boolean
}

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
  for (let i = Math.max(0, (whole << 2) - lead); i < bytes.byteLength; i += 1) last |= (bytes[i] as number) << ((i + lead - (whole << 2)) << 3)
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
  for (let k = 1; k < words.length; ) {
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

/** Looks at a block of whole records: how many they are, and whether line ends and quotes are all as they should be. */
export function screen(bytes: Uint8Array, rules: ScreenRules): Screening {
  if (rules.quote >= 0) return screenQuoted(bytes, rules)
  return screenPlain(bytes, rules)
}

/**
 * No quotes: each line end as it should be, and no CR elsewhere. Masks are inverted here: a byte's bit 0x80 is set where it does not match, which is
 * one addition where no byte is above 0x7F; those become 0x01 before.
 */
function screenPlain(bytes: Uint8Array, rules: ScreenRules): Screening {
  const { words, ...edge } = wordsOf(bytes)
  // Said to be integers once more, or the compiler takes each word for a double: half the speed.
  const first = edge.first | 0
  const last = edge.last | 0
  const crlf = rules.crlf ? -1 : 0
  const wordCount = words.length + 1
  let others = 0
  let unpaired = 0
  let noBlank = -1
  let crBefore = 0x80
  let lfBefore = 0x80
  for (let k = 0; k < wordCount; ) {
    const end = Math.min(wordCount, k + WORDS_A_FOLD)
    let counts = 0
    for (; k < end; k += 1) {
      let word = (k === 0 && wordCount > 1 ? first : k < words.length ? (words[k] as number) : last) | 0
      const high = word & HIGH
      if (high !== 0) word = (word & ~Math.imul(high >>> 7, 255)) | (high >>> 7)
      const lf = ((word ^ LF_WORD) + LOW7) | 0
      const cr = ((word ^ CR_WORD) + LOW7) | 0
      // In a file of LF alone every CR is unpaired.
      unpaired |= (((cr << 8) | crBefore) ^ lf) & crlf
      unpaired |= ~cr & ~crlf
      noBlank &= ((lf << 8) | lfBefore) | (cr & lf)
      crBefore = cr >>> 24
      lfBefore = lf >>> 24
      counts = (counts + ((lf >>> 7) & ONES)) | 0
    }
    others += fold(counts)
  }
  const lines = wordCount * 4 - others
  const blank = (noBlank & HIGH) !== HIGH || bytes[0] === LF || bytes[0] === CR
  const clean = (unpaired & HIGH) === 0 && (rules.blankLines || !blank)
  return { records: lines, lines, clean }
}

/**
 * Quotes by parity within the word: `inside` has the bytes from an opening quote to before the closing one. An opening quote wants a delimiter,
 * a line end or a closing quote (two are one) before it, a closing one a delimiter, a line end or an opening quote behind it.
 */
function screenQuoted(bytes: Uint8Array, rules: ScreenRules): Screening {
  const { words, lead, ...edge } = wordsOf(bytes)
  const first = edge.first | 0
  const last = edge.last | 0
  const wordCount = words.length + 1
  const q0 = Math.imul(rules.quote, ONES)
  const d0 = Math.imul(rules.delimiter, ONES)
  const doubled = rules.doubled ? -1 : 0
  const bare = rules.crlf ? -1 : 0
  let records = 0
  let lines = 0
  let bad = 0
  let blank = 0
  let carry = 0
  let mayOpen = 0x80 << (lead << 3)
  let closed = 0
  let crBefore = 0
  let lfBefore = 0x80 << (lead << 3)
  for (let k = 0; k < wordCount; ) {
    const end = Math.min(wordCount, k + WORDS_A_FOLD)
    let lineCounts = 0
    let recordCounts = 0
    for (; k < end; k += 1) {
      let word = (k === 0 && wordCount > 1 ? first : k < words.length ? (words[k] as number) : last) | 0
      const high = word & HIGH
      if (high !== 0) word = (word & ~Math.imul(high >>> 7, 255)) | (high >>> 7)
      const quotes = ~((word ^ q0) + LOW7) & HIGH
      const delimiters = ~((word ^ d0) + LOW7) & HIGH
      const lf = ~((word ^ LF_WORD) + LOW7) & HIGH
      const allCr = ~((word ^ CR_WORD) + LOW7) & HIGH
      let inside = quotes ^ (quotes << 8)
      inside ^= inside << 16
      inside ^= carry
      carry = (inside >> 31) & HIGH
      const outside = ~inside
      const opening = quotes & inside
      const closing = quotes & outside
      const ends = lf & outside
      const cr = allCr & outside
      const starts = (delimiters & outside) | ends | (closing & doubled)
      bad |= opening & ~((starts << 8) | mayOpen)
      bad |= ((closing << 8) | closed) & ~(delimiters | lf | allCr | (opening & doubled))
      bad |= ((cr << 8) | crBefore) ^ (ends & bare)
      blank |= ((ends << 8) | lfBefore) & (ends | cr)
      mayOpen = starts >>> 24
      closed = closing >>> 24
      crBefore = cr >>> 24
      lfBefore = ends >>> 24
      lineCounts = (lineCounts + (lf >>> 7)) | 0
      recordCounts = (recordCounts + (ends >>> 7)) | 0
    }
    lines += fold(lineCounts)
    records += fold(recordCounts)
  }
  const clean = (bad & HIGH) === 0 && carry === 0 && (blank === 0 || rules.blankLines)
  return { records, lines, clean }
}
