import { SluiceError } from './errors.ts'

/**
 * Bytes that a pool keeps free for the next reads: what jobs have in use at their busiest (16 parts of 8 MiB), so that they make no new buffers once they
 * were. What is not kept waits for a collection beside its successors (16 MiB instead took 30 MiB more in copies of 2 GB from S3 to S3).
 */
const MOST_FREE_BYTES = 128 * 1024 * 1024

/** A buffer to read into, out of a pool. */
export interface LentBuffer {
  readonly buffer: Buffer
  /** So many bytes of it were handed on as views, and will be given back. */
  lent(bytes: number): void
  /** Nothing more is read into it; once it is all given back, it goes to the next. */
  close(): void
}

/** Pages of a new buffer cost a fault each, and its memory a collection: 208 MB through new ones took 0.2 s of CPU more than through the same 16 MiB. */
export class BufferPool {
  /** Of a buffer. */
  readonly bytes: number
  #free: Buffer[] = []

  constructor(bytes: number) {
    this.bytes = bytes
  }

  take(): LentBuffer {
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.bytes)
    const loan = new Loan(buffer, () => {
      if ((this.#free.length + 1) * this.bytes <= MOST_FREE_BYTES) this.#free.push(buffer)
    })
    loans.set(buffer.buffer, loan)
    return loan
  }
}

/** Room for blocks that are made one after the other, side by side in lent buffers: a small block pins no buffer of its own. */
export class LentSpace {
  readonly #pool: BufferPool
  #lent: LentBuffer | null = null
  #filled = 0

  constructor(pool: BufferPool) {
    this.#pool = pool
  }

  /** Bytes that the buffer in hand still has. */
  get left(): number {
    return this.#lent === null ? 0 : this.#pool.bytes - this.#filled
  }

  /** Room for a block of `bytes`, no more than a buffer has. The block before has what was handed on of its own. */
  room(bytes: number): Buffer {
    if (bytes > this.left) this.close()
    this.#lent ??= this.#pool.take()
    return this.#lent.buffer.subarray(this.#filled, this.#filled + bytes)
  }

  /** The first bytes of the room given last are handed on, to be given back. */
  handOn(bytes: number): void {
    this.#lent?.lent(bytes)
    this.#filled += bytes
  }

  /** The buffer in hand goes back once its blocks did. */
  close(): void {
    this.#lent?.close()
    this.#lent = null
    this.#filled = 0
  }
}

/**
 * Says that nobody looks at these bytes any more: where they, and all else that was handed on of their buffer, came out of a pool, it
 * is read into again. To be called once for each byte, by the one who owns it; who never calls it leaves the buffer to the collector.
 */
export function giveBack(bytes: Uint8Array): void {
  loans.get(bytes.buffer)?.back(bytes.byteLength)
}

const loans = new WeakMap<ArrayBufferLike, Loan>()

class Loan implements LentBuffer {
  readonly buffer: Buffer
  readonly #onFree: () => void
  /** Bytes that are looked at by others. */
  #out = 0
  #open = true

  constructor(buffer: Buffer, onFree: () => void) {
    this.buffer = buffer
    this.#onFree = onFree
  }

  lent(bytes: number): void {
    this.#out += bytes
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#freeIfDone()
  }

  back(bytes: number): void {
    this.#out -= bytes
    if (this.#out < 0) throw new SluiceError('SLUICE_INTERNAL', 'bytes of a buffer were given back twice')
    this.#freeIfDone()
  }

  #freeIfDone(): void {
    if (this.#open || this.#out > 0) return
    loans.delete(this.buffer.buffer)
    this.#onFree()
  }
}
