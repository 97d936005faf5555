import { ESCAPED, type RecordCursor } from '../../formats/csv/record-cursor.ts'
import type { Attribute } from './type-map.ts'

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
  /** Columns of the keys, and how their values are compared. */
  readonly #keys: readonly { readonly column: number; readonly kind: 'S' | 'N' | 'B' }[]

  constructor(attributes: readonly Attribute[], threads: number) {
    this.#threads = threads
    this.#keys = attributes.flatMap(({ key, kind }, column) =>
      key === null ? [] : [{ column, kind: kind === 'N' || kind === 'B' ? kind : 'S' }],
    )
  }

  /** The thread of the cursor's record, from 0. */
  threadOf(cursor: RecordCursor): number {
    let hash = BASIS
    for (const { column, kind } of this.#keys) {
      if (column >= cursor.count) return 0
      // No key of two parts is the same as another one whose parts are cut elsewhere: no matter here.
      if (kind === 'B') hash = hashText(Buffer.from(cursor.text(column), 'base64').toString('base64'), hash)
      else if (cursor.kinds[column] === ESCAPED) {
        const bytes = cursor.content(column)
        hash = hashBytes(bytes, { start: 0, end: bytes.byteLength, hash, kind })
      } else {
        const start = cursor.starts[column] as number
        hash = hashBytes(cursor.bytes, { start, end: cursor.ends[column] as number, hash, kind })
      }
    }
    return place(hash, this.#threads)
  }
}

/** The thread of a key in its canonical text, from 0. */
export function threadOfKey(key: string, threads: number): number {
  return place(hashText(key, BASIS), threads)
}

interface Stretch {
  readonly start: number
  readonly end: number
  readonly hash: number
  readonly kind: 'S' | 'N'
}

function hashBytes(bytes: Uint8Array, { start, end, hash, kind }: Stretch): number {
  if (kind === 'N') return hashDigits(bytes, { start, end, hash, kind })
  let h = hash
  for (let i = start; i < end; i += 1) h = Math.imul(h ^ (bytes[i] as number), PRIME)
  return h
}

/**
 * A number by its significant digits alone: 100, 1e2 and 0100.0 are the same key, and so have to be the same here. That 1 and 10 are, too, costs
 * nothing but evenness.
 */
function hashDigits(bytes: Uint8Array, { start, end, hash }: Stretch): number {
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

function hashText(text: string, hash: number): number {
  let h = hash
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), PRIME)
  return h
}

/** Spreads the hash over the threads by its high bits, after they were mixed: FNV's low ones are weak. */
function place(hash: number, threads: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return ((h ^ (h >>> 16)) >>> 0) % threads
}
