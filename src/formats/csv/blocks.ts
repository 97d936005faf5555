import { SluiceError } from '../../core/errors.ts'
import type { ErrorPlace } from '../../core/errors.ts'
import type { ReadPlace } from '../../core/ports.ts'

/** Bytes of a block, unless one record is longer. Two blocks are alive at once, besides what the consumer holds. */
export const BLOCK_BYTES = 256 * 1024
/** Room behind a block's bytes for a line end that the file lacks. */
const SPARE_BYTES = 8

/** Pulls chunks, heeding the signal also while none comes. Closes what it pulls from, once. */
export class ChunkPuller {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #signal: AbortSignal
  #over = false

  constructor(chunks: AsyncIterable<Uint8Array>, signal: AbortSignal) {
    this.#iterator = chunks[Symbol.asyncIterator]()
    this.#signal = signal
  }

  /** The next chunk, or null at the end. @throws the signal's reason */
  async next(): Promise<Uint8Array | null> {
    const signal = this.#signal
    signal.throwIfAborted()
    if (this.#over) return null
    let onAbort = (): void => undefined
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      const result = await Promise.race([this.#iterator.next(), aborted])
      if (result.done !== true) return result.value
      this.#over = true
      return null
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async close(): Promise<void> {
    if (this.#over) return
    this.#over = true
    const closing = this.#iterator.return?.()
    // A generator that still waits for bytes closes only when they come: after an abort that is not waited for.
    if (this.#signal.aborted) void Promise.resolve(closing).catch(() => undefined)
    else await closing
  }
}

/** Gathers chunks into blocks, each with memory of its own; what a cut left over begins the next block. */
export class BlockGatherer {
  readonly #puller: ChunkPuller
  readonly #place: ReadPlace
  readonly #maxBytes: number
  #chunk: Uint8Array = new Uint8Array(0)
  #rest: Uint8Array = new Uint8Array(0)
  #ended = false

  constructor(puller: ChunkPuller, place: ReadPlace, maxBytes: number) {
    this.#puller = puller
    this.#place = place
    this.#maxBytes = maxBytes
  }

  get ended(): boolean {
    return this.#ended
  }

  /** The rest of the block before and as much more as makes `bytes`, less only at the end, or where it has `enough`. Room for a line end is behind it. */
  async gather(bytes: number, enough = bytes): Promise<Buffer> {
    const wanted = Math.max(bytes, this.#rest.byteLength)
    const block = Buffer.allocUnsafeSlow(wanted + SPARE_BYTES)
    block.set(this.#rest)
    let length = this.#rest.byteLength
    this.#rest = new Uint8Array(0)
    while (length < wanted) {
      if (this.#chunk.byteLength === 0) {
        if (length >= enough) break
        const next = await this.#puller.next()
        if (next === null) {
          this.#ended = true
          break
        }
        this.#chunk = next
        continue
      }
      const taken = this.#chunk.subarray(0, wanted - length)
      block.set(taken, length)
      length += taken.byteLength
      this.#chunk = this.#chunk.subarray(taken.byteLength)
    }
    return block.subarray(0, length)
  }

  /** What is to begin the next block. */
  keep(rest: Uint8Array): void {
    this.#rest = rest
  }

  /** Drops bytes from the beginning; fewer only where the input has fewer. */
  async skip(bytes: number): Promise<void> {
    let left = bytes
    while (left > 0) {
      const block = await this.gather(Math.min(left, BLOCK_BYTES))
      if (block.byteLength === 0) return
      const dropped = Math.min(left, block.byteLength)
      left -= dropped
      this.keep(block.subarray(dropped))
    }
  }

  /** How many bytes to gather where so many held no whole record. @throws SLUICE_ROW_TOO_LONG */
  more(have: number, where: ErrorPlace): number {
    if (have > this.#maxBytes)
      throw new SluiceError('SLUICE_ROW_TOO_LONG', `a row is longer than ${this.#maxBytes} bytes`, {
        where: { url: this.#place.url, ...where },
      })
    return Math.max(BLOCK_BYTES, have * 2)
  }
}
