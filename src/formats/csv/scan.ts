/**
 * Scanning CSV bytes four at a time: each kernel turns a word into masks that have 0x80 in the bytes that match, so that a
 * word costs the same whatever stands in it. Words are little-endian, as on every machine that Node runs on. Records end with LF here, with or
 * without a CR before it. Blocks begin where a record begins.
 */

const LF = 10
const CR = 13
const ONES = 0x01010101
const LOW7 = 0x7f7f7f7f
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

/** The block as words: copied where it does not lie on a word boundary; zeros after its last byte. */
function wordsOf(bytes: Uint8Array): { words: Int32Array; last: number } {
  const whole = bytes.byteLength >> 2
  let last = 0
  for (let i = whole << 2, shift = 0; i < bytes.byteLength; i += 1, shift += 8) last |= (bytes[i] as number) << shift
  if ((bytes.byteOffset & 3) === 0) return { words: new Int32Array(bytes.buffer, bytes.byteOffset, whole), last }
  return { words: new Int32Array(new Uint8Array(bytes.subarray(0, whole << 2)).buffer), last }
}

function fold(counts: number): number {
  const pairs = (counts & 0x00ff00ff) + ((counts >>> 8) & 0x00ff00ff)
  return (pairs & 0xffff) + (pairs >>> 16)
}

/** How often a byte, not 0, occurs. */
export function countByte(bytes: Uint8Array, byte: number): number {
  const length = bytes.byteLength
  const lead = Math.min(length, length < FEW_BYTES ? length : -bytes.byteOffset & 3)
  let total = 0
  for (let i = 0; i < lead; i += 1) if (bytes[i] === byte) total += 1
  if (lead === length) return total
  const { words, last } = wordsOf(bytes.subarray(lead))
  const pattern = Math.imul(byte, ONES)
  for (let k = 0; k < words.length; ) {
    const end = Math.min(words.length, k + WORDS_A_FOLD)
    let counts = 0
    for (; k < end; k += 1) counts = (counts + (matches(words[k] as number, pattern) >>> 7)) | 0
    total += fold(counts)
  }
  return total + fold(matches(last, pattern) >>> 7)
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
  const { words, last } = wordsOf(bytes)
  const pattern = Math.imul(quote, ONES)
  const pairs = words.length & ~1
  let odd = matches(last, pattern)
  for (let k = 0; k < pairs; k += 2) {
    const x = (words[k] as number) ^ pattern
    const y = (words[k + 1] as number) ^ pattern
    odd ^= ~(((x & LOW7) + LOW7) | x | LOW7) ^ ~(((y & LOW7) + LOW7) | y | LOW7)
  }
  if (pairs < words.length) odd ^= matches(words[pairs] as number, pattern)
  odd ^= odd >>> 16
  odd ^= odd >>> 8
  return (odd & 0x80) !== 0
}

/** Looks at a block of whole records: how many they are, and whether line ends and quotes are all as they should be. */
export function screen(bytes: Uint8Array, rules: ScreenRules): Screening {
  if (rules.quote >= 0) return screenQuoted(bytes, rules)
  return rules.crlf ? screenCrLf(bytes, rules) : screenLf(bytes, rules)
}

/** No quotes; no CR either, or it is not clean. */
function screenLf(bytes: Uint8Array, rules: ScreenRules): Screening {
  const { words, last } = wordsOf(bytes)
  const pattern = LF * ONES
  let total = 0
  let bad = 0
  let before = rules.blankLines ? 0 : 0x80
  for (let k = 0; k < words.length; ) {
    const end = Math.min(words.length, k + WORDS_A_FOLD)
    let counts = 0
    for (; k < end; k += 1) {
      const x = (words[k] as number) ^ pattern
      const lf = ~(((x & LOW7) + LOW7) | x | LOW7)
      bad |= lf & ((lf << 8) | before)
      before = lf >>> 24
      counts = (counts + (lf >>> 7)) | 0
    }
    total += fold(counts)
  }
  const lf = matches(last, pattern)
  bad |= lf & ((lf << 8) | before)
  total += fold(lf >>> 7)
  const hasCr = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf(CR) >= 0
  return { records: total, lines: total, clean: !hasCr && (bad === 0 || rules.blankLines) }
}

/** No quotes; each LF has its CR and each CR its LF, or it is not clean. */
function screenCrLf(bytes: Uint8Array, rules: ScreenRules): Screening {
  const { words, last } = wordsOf(bytes)
  const lfPattern = LF * ONES
  const crPattern = CR * ONES
  let total = 0
  let unpaired = 0
  let blank = 0
  let crBefore = 0
  let lfBefore = 0x80
  for (let k = 0; k <= words.length; ) {
    const end = Math.min(words.length + 1, k + WORDS_A_FOLD)
    let counts = 0
    for (; k < end; k += 1) {
      const word = k < words.length ? (words[k] as number) : last
      const x = word ^ lfPattern
      const y = word ^ crPattern
      const lf = ~(((x & LOW7) + LOW7) | x | LOW7)
      const cr = ~(((y & LOW7) + LOW7) | y | LOW7)
      unpaired |= ((cr << 8) | crBefore) ^ lf
      blank |= ((lf << 8) | lfBefore) & cr
      crBefore = cr >>> 24
      lfBefore = lf >>> 24
      counts = (counts + (lf >>> 7)) | 0
    }
    total += fold(counts)
  }
  return { records: total, lines: total, clean: unpaired === 0 && (blank === 0 || rules.blankLines) }
}

/**
 * Quotes by parity within the word: `inside` has the bytes from an opening quote to before the closing one. An opening quote wants a delimiter,
 * a line end or a closing quote (two are one) before it, a closing one a delimiter, a line end or an opening quote behind it.
 */
function screenQuoted(bytes: Uint8Array, rules: ScreenRules): Screening {
  const { words, last } = wordsOf(bytes)
  const [q0, d0, n0, r0] = [rules.quote, rules.delimiter, LF, CR].map((byte) => Math.imul(byte, ONES)) as [number, number, number, number]
  const doubled = rules.doubled ? -1 : 0
  const bare = rules.crlf ? -1 : 0
  let records = 0
  let lines = 0
  let bad = 0
  let blank = 0
  let carry = 0
  let mayOpen = 0x80
  let closed = 0
  let crBefore = 0
  let lfBefore = 0x80
  for (let k = 0; k <= words.length; ) {
    const end = Math.min(words.length + 1, k + WORDS_A_FOLD)
    let lineCounts = 0
    let recordCounts = 0
    for (; k < end; k += 1) {
      const word = k < words.length ? (words[k] as number) : last
      let x = word ^ q0
      const quotes = ~(((x & LOW7) + LOW7) | x | LOW7)
      x = word ^ d0
      const delimiters = ~(((x & LOW7) + LOW7) | x | LOW7)
      x = word ^ n0
      const lf = ~(((x & LOW7) + LOW7) | x | LOW7)
      x = word ^ r0
      const allCr = ~(((x & LOW7) + LOW7) | x | LOW7)
      let inside = quotes ^ (quotes << 8)
      inside ^= inside << 16
      inside ^= carry
      carry = (inside >> 31) & 0x80808080
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
  const clean = (bad & 0x80808080) === 0 && carry === 0 && (blank === 0 || rules.blankLines)
  return { records, lines, clean }
}
