import { SluiceError } from '../../core/errors.ts'
import type { ErrorPlace } from '../../core/errors.ts'
import { BufferPool, giveBack, LentSpace } from '../../core/lent-buffers.ts'
import type { ReadPlace } from '../../core/ports.ts'

/** Bytes of a block, unless one record is longer. Two blocks are alive at once, besides what the consumer holds. */
export const BLOCK_BYTES = 256 * 1024
/** Chunks from this length on are not copied. */
const LONG_CHUNK_BYTES = 128 * 1024
/** How much of a long chunk is copied to complete a record that the chunk before began. */
const JOIN_BYTES = 8 * 1024
/** Less room than this in a lent buffer is not worth a block that is copied whole. */
const LEAST_ROOM_BYTES = 64 * 1024
const buffers = new BufferPool(BLOCK_BYTES)
const NOTHING: Buffer = Buffer.alloc(0)

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

/**
 * Gathers chunks into blocks. A block that lies in one long chunk is a view of it, nothing copied; a record that two chunks share is joined
 * with a little of the second one. What a cut left over begins the next block. What was copied is given back to its pool; a block, be it a view or
 * made here, is given back by who takes it.
 */
export class BlockGatherer {
  readonly #puller: ChunkPuller
  readonly #place: ReadPlace
  readonly #maxBytes: number
  /** Where blocks are made; null where chunks are read once more by others, so that nothing of them is given back. */
  readonly #space: LentSpace | null
  #chunk: Buffer = NOTHING
  /** Offset in the chunk of what was not given out yet. */
  #at = 0
  /** Bytes of the chunk, before `#at`, that end the block given out last. */
  #taken = 0
  /** The last of a chunk that was copied into the block given out last; what came before it is given back already. */
  #copied: Uint8Array = NOTHING
  #rest: Uint8Array = NOTHING
  /** The block given out last, where it was made here. */
  #block: Buffer = NOTHING
  #ended = false

  /** `looks`: others read the same chunks afterwards. */
  constructor(puller: ChunkPuller, place: ReadPlace, o: { readonly maxBytes: number; readonly looks?: boolean }) {
    this.#puller = puller
    this.#place = place
    this.#maxBytes = o.maxBytes
    this.#space = o.looks === true ? null : new LentSpace(buffers)
  }

  /** Whether the block given out last ends the input. */
  get ended(): boolean {
    return this.#ended && this.#at >= this.#chunk.byteLength
  }

  /** The rest of the block before and as much more as makes `bytes`; less at the end, where it has `enough`, and where nothing need be copied then. */
  async gather(bytes: number, enough = bytes): Promise<Buffer> {
    const wanted = Math.max(bytes, this.#rest.byteLength)
    let left = await this.#left()
    const long = left >= LONG_CHUNK_BYTES && bytes <= BLOCK_BYTES
    if (long && this.#rest.byteLength === 0) return this.#take(wanted)
    let limit = long ? Math.min(wanted, this.#rest.byteLength + JOIN_BYTES) : wanted
    const block = this.#room(limit)
    const lends = limit <= BLOCK_BYTES
    limit = block.byteLength
    block.set(this.#rest)
    let length = this.#rest.byteLength
    this.#giveBack(this.#rest)
    this.#rest = NOTHING
    this.#taken = 0
    for (
      ;
      left > 0 && length < limit;
      left = length < enough ? await this.#left() : this.#chunk.byteLength - this.#at
    ) {
      // A long chunk that comes after a few bytes of the one before is not copied for their sake.
      if (left >= LONG_CHUNK_BYTES && bytes <= BLOCK_BYTES && length < LONG_CHUNK_BYTES)
        limit = Math.min(limit, length + JOIN_BYTES)
      const taken = this.#take(limit - length)
      block.set(taken, length)
      length += taken.byteLength
      this.#giveBack(this.#copied)
      this.#copied = taken
    }
    if (lends) this.#space?.handOn(length)
    this.#block = block.subarray(0, length)
    return this.#block
  }

  /** For a block of so many bytes; of fewer, where that fills a buffer and still is worth it. */
  #room(bytes: number): Buffer {
    const space = this.#space
    if (space === null || bytes > BLOCK_BYTES) return Buffer.allocUnsafeSlow(bytes)
    const fills = space.left >= Math.max(LEAST_ROOM_BYTES, this.#rest.byteLength + JOIN_BYTES)
    return space.room(fills ? Math.min(bytes, space.left) : bytes)
  }

  /** What is to begin the next block: the last bytes of the block given out last. */
  keep(rest: Uint8Array): void {
    const again = rest.byteLength <= this.#taken ? rest.byteLength : 0
    this.#at -= again
    this.#rest = again === rest.byteLength ? NOTHING : rest
    this.#giveBack(this.#copied.subarray(0, this.#copied.byteLength - again))
    // What comes out of the chunk once more is not looked at in the block.
    this.#giveBack(this.#block.subarray(this.#block.byteLength - again))
    this.#copied = NOTHING
    this.#block = NOTHING
    this.#taken = 0
  }

  /** No more blocks are gathered. */
  close(): void {
    this.#space?.close()
  }

  #giveBack(bytes: Uint8Array): void {
    if (this.#space !== null) giveBack(bytes)
  }

  /** Bytes of the chunk in hand that are still to be given out, after pulling one where there are none; 0 at the end. */
  async #left(): Promise<number> {
    while (this.#at >= this.#chunk.byteLength) {
      const next = await this.#puller.next()
      if (next === null) {
        this.#ended = true
        return 0
      }
      this.#chunk = Buffer.from(next.buffer, next.byteOffset, next.byteLength)
      this.#at = 0
    }
    return this.#chunk.byteLength - this.#at
  }

  #take(bytes: number): Buffer {
    const taken = this.#chunk.subarray(this.#at, this.#at + bytes)
    this.#at += taken.byteLength
    this.#taken = taken.byteLength
    return taken
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
    return Math.max(BLOCK_BYTES + 1, have * 2)
  }
}
