import type { ItemRows } from './put-message.ts'
import { mostPutBytes, writePut } from '../item/wire-json.ts'

const FIRST_BYTES = 64 * 1024

/** Items for one thread, written one behind the other, with their keys and the rows that they came from. */
export class ItemPack {
  readonly #keys: string[] = []
  readonly #ends: number[] = []
  readonly #rows: number[] = []
  #bytes = Buffer.from(new ArrayBuffer(FIRST_BYTES))
  #at = 0

  /** `text`: attributes as they go over the wire, without the braces. `row`: its index in the batch. */
  add(text: string, key: string, row: number): void {
    this.#reserve(mostPutBytes(text))
    this.#at = writePut(text, this.#bytes, this.#at)
    this.#ends.push(this.#at)
    this.#keys.push(key)
    this.#rows.push(row)
  }

  get isEmpty(): boolean {
    return this.#rows.length === 0
  }

  /** What is sent to the thread. The bytes move there. */
  message(block: number): ItemRows & { readonly bytes: Uint8Array<ArrayBuffer> } {
    const bytes = new Uint8Array(this.#bytes.buffer, 0, this.#at)
    return {
      kind: 'items',
      block,
      bytes,
      ends: Uint32Array.from(this.#ends),
      keys: this.#keys,
      rows: Uint32Array.from(this.#rows),
    }
  }

  #reserve(bytes: number): void {
    const wanted = this.#at + bytes
    if (wanted <= this.#bytes.byteLength) return
    const larger = Buffer.from(new ArrayBuffer(Math.max(wanted, this.#bytes.byteLength * 2)))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
