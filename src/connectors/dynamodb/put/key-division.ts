import { ESCAPED, type RecordCursor } from '../../../formats/csv/record-cursor.ts'
import type { KeyAttribute, KeyType } from '../table-info.ts'
import { splitKeys } from '../item/validate.ts'

const ZERO = 48
const NINE = 57
/** `e`, in either case. */
const EXPONENT = 101
const LOWER_CASE = 32

/** FNV-1a's basis and prime (draft-eastlake-fnv). */
const BASIS = 0x811c9dc5
const PRIME = 0x01000193

/**
 * Which thread has the rows of a key: always the same for what DynamoDB takes for the same key, however it is written, and all threads about as many of
 * many keys. Rows whose key is missing or wrong go anywhere: they are an error there.
 */
export class KeyDivision {
  readonly #threads: number
  readonly #types: readonly KeyType[]

  /** `keys`: the partition key first. */
  constructor(keys: readonly KeyAttribute[], threads: number) {
    this.#threads = threads
    this.#types = keys.map((key) => key.type)
  }

  /** The thread of the cursor's record, from 0. `columns`: those of the keys, the partition key's first. */
  ofRecord(cursor: RecordCursor, columns: readonly number[]): number {
    let hash = BASIS
    for (let i = 0; i < columns.length; i += 1) {
      const column = columns[i] as number
      if (column >= cursor.count) return 0
      const type = this.#types[i]
      if (type === 'B') hash = hashBytes(Buffer.from(canonicalBase64(cursor.text(column))), hash)
      else if (cursor.kinds[column] === ESCAPED) {
        const bytes = cursor.content(column)
        hash = type === 'N' ? hashDigits(bytes, hash) : hashBytes(bytes, hash)
      } else {
        const range = { start: cursor.starts[column] as number, end: cursor.ends[column] as number }
        hash = type === 'N' ? hashDigits(cursor.bytes, hash, range) : hashBytes(cursor.bytes, hash, range)
      }
    }
    return place(hash, this.#threads)
  }

  /** The thread of a record without quotes, whose keys are at these places, the partition key first. */
  ofRanges(bytes: Buffer, ranges: readonly Range[]): number {
    let hash = BASIS
    for (let i = 0; i < ranges.length; i += 1) {
      const range = ranges[i] as Range
      const type = this.#types[i]
      if (type === 'B')
        hash = hashBytes(Buffer.from(canonicalBase64(bytes.toString('utf8', range.start, range.end))), hash)
      else hash = type === 'N' ? hashDigits(bytes, hash, range) : hashBytes(bytes, hash, range)
    }
    return place(hash, this.#threads)
  }

  /** The thread of a key as the encoders give it, from 0. */
  ofKey(key: string): number {
    const parts = this.#types.length === 1 ? [key] : splitKeys(key)
    let hash = BASIS
    for (let i = 0; i < parts.length; i += 1) {
      const bytes = Buffer.from(parts[i] ?? '')
      hash = this.#types[i] === 'N' ? hashDigits(bytes, hash) : hashBytes(bytes, hash)
    }
    return place(hash, this.#threads)
  }
}

function canonicalBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('base64')
}

/** Of bytes: `[start, end)`. */
export interface Range {
  readonly start: number
  readonly end: number
}

const whole = (bytes: Uint8Array): Range => ({ start: 0, end: bytes.byteLength })

function hashBytes(bytes: Uint8Array, hash: number, { start, end }: Range = whole(bytes)): number {
  let h = hash
  for (let i = start; i < end; i += 1) h = Math.imul(h ^ (bytes[i] as number), PRIME)
  return h
}

/**
 * A number by its significant digits alone: 100, 1e2 and 0100.0 are the same key, and so have to be the same here. That 1 and 10 are, too, costs
 * nothing but evenness.
 */
function hashDigits(bytes: Uint8Array, hash: number, { start, end }: Range = whole(bytes)): number {
  let h = hash
  let zeros = 0
  let begun = false
  for (let i = start; i < end; i += 1) {
    const byte = bytes[i] as number
    if ((byte | LOWER_CASE) === EXPONENT) break
    if (byte < ZERO || byte > NINE) continue
    if (byte === ZERO) {
      // Zeros count only between digits.
      if (begun) zeros += 1
      continue
    }
    for (; zeros > 0; zeros -= 1) h = Math.imul(h ^ ZERO, PRIME)
    begun = true
    h = Math.imul(h ^ byte, PRIME)
  }
  return h
}

/** Spreads the hash over the threads by its high bits, after they were mixed: FNV's low ones are weak. */
function place(hash: number, threads: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return ((h ^ (h >>> 16)) >>> 0) % threads
}
