import { joinKeys, keyText } from '../item/validate.ts'
import type { KeyAttribute } from '../table-info.ts'

/** AWS, BatchWriteItem: puts and bytes of a request. */
export const MOST_PUTS = 25
export const MOST_REQUEST_BYTES = 16 * 1024 * 1024
/** A request of small items: doubled where they are larger. */
const FIRST_BYTES = 8 * 1024

/** The puts of one extent, counted: what is not in yet, what is, and whose place a later row took. */
export interface ExtentPuts {
  pending: number
  accepted: number
  superseded: number
}

/**
 * One put, from its row until the server has taken it. `open`: in a request that is being filled; `waiting`: for its turn, or its next try;
 * `sent`: nobody knows yet.
 */
export interface Put {
  readonly key: string
  readonly extent: ExtentPuts
  state: 'open' | 'waiting' | 'sent'
  /** Where its JSON is: a comma or blank, and `{"PutRequest":…}`. */
  bytes: Buffer
  start: number
  end: number
  tries: number
  /** A request with it broke, or the server failed over it: it may be in, or come in later. */
  uncertain: boolean
  /** A later row with the same key, which waits until this one is answered. */
  next: Put | null
  /** A later row with the same key took its place. */
  superseded: boolean
}

const COMMA = 44
const BLANK = 32

/** A BatchWriteItem request in the making: its JSON grows in one buffer. */
export class PutBatch {
  readonly puts: Put[] = []
  bytes: Buffer
  /** Where the next put goes. */
  at: number
  /** Puts that a later row took the place of: left out when it is sent. */
  superseded = 0
  readonly #prefix: Buffer
  readonly #suffix: Buffer

  /** `spare`: a buffer that an earlier request has no use for any more. */
  constructor(frame: { readonly prefix: Buffer; readonly suffix: Buffer }, spare?: Buffer) {
    this.#prefix = frame.prefix
    this.#suffix = frame.suffix
    this.bytes = spare ?? Buffer.allocUnsafe(FIRST_BYTES)
    this.at = frame.prefix.copy(this.bytes)
  }

  /** What stands before the next put. */
  get separator(): number {
    return this.puts.length === 0 ? BLANK : COMMA
  }

  get isFull(): boolean {
    return this.puts.length >= MOST_PUTS
  }

  get live(): number {
    return this.puts.length - this.superseded
  }

  /** Makes room for so many bytes, and for the end. */
  reserve(bytes: number): void {
    const wanted = this.at + bytes + this.#suffix.byteLength
    if (wanted <= this.bytes.byteLength) return
    const larger = Buffer.allocUnsafe(Math.max(wanted, this.bytes.byteLength * 2))
    this.bytes.copy(larger, 0, 0, this.at)
    this.bytes = larger
  }

  /** Whether a put of so many bytes more keeps within what a request may have. */
  fits(bytes: number): boolean {
    return this.puts.length === 0 || this.at + bytes + this.#suffix.byteLength <= MOST_REQUEST_BYTES
  }

  /** Takes in a put whose bytes are elsewhere. */
  take(put: Put): void {
    const length = put.end - put.start
    this.reserve(length)
    put.bytes.copy(this.bytes, this.at, put.start, put.end)
    this.bytes[this.at] = this.separator
    put.bytes = this.bytes
    put.start = this.at
    this.at += length
    put.end = this.at
    put.state = 'open'
    this.puts.push(put)
  }

  /** The request's body. Afterwards nothing more goes in. */
  finish(): Buffer {
    if (this.superseded > 0) this.#leaveOut()
    this.reserve(0)
    this.at += this.#suffix.copy(this.bytes, this.at)
    for (const put of this.puts) {
      put.bytes = this.bytes
      put.state = 'sent'
    }
    return this.bytes.subarray(0, this.at)
  }

  #leaveOut(): void {
    const live = this.puts.filter((put) => !put.superseded)
    const old = this.bytes
    this.puts.length = 0
    this.superseded = 0
    this.bytes = Buffer.allocUnsafe(old.byteLength)
    this.at = this.#prefix.copy(this.bytes)
    for (const put of live) {
      put.bytes = old
      this.take(put)
    }
  }
}

/** Bytes of a write unit (AWS, "Read and write capacity"). */
const UNIT_BYTES = 1024

/** About what puts cost, where a server tells no capacity: by their bytes on the wire, which are a little more than the items'. */
export function unitsOf(puts: readonly Put[]): number {
  return puts.reduce((sum, { start, end }) => sum + Math.ceil((end - start) / UNIT_BYTES), 0)
}

/** Reads the keys of items that came back, as the encoders write them. */
export function keyReader(keys: readonly KeyAttribute[]): (item: Readonly<Record<string, unknown>>) => string | null {
  const one = (item: Readonly<Record<string, unknown>>, at: number): string | null => {
    const key = keys[at]
    const value = key === undefined ? null : item[key.name]
    if (key === undefined || typeof value !== 'object' || value === null || !(key.type in value)) return null
    const text: unknown = Object.values(value)[0]
    return typeof text === 'string' ? keyText(text, { type: key.type, key: at === 0 ? 'partition' : 'sort' }) : null
  }
  return (item) => {
    const partition = one(item, 0)
    if (keys.length < 2 || partition === null) return partition
    const sort = one(item, 1)
    return sort === null ? null : joinKeys(partition, sort)
  }
}
