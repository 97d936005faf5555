import type { Abortable } from '../core/ports.ts'

/** Takes a stream of chunks apart: by whole chunks, or by counted bytes. Holds one chunk at most. */
export class ByteCursor {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #signal: AbortSignal
  #held: Uint8Array | null = null
  #position: number
  #pulling = false
  #ended = false

  /** `position`: the offset of the first byte in its file, 0 by default. */
  constructor(chunks: AsyncIterable<Uint8Array>, o: Abortable & { readonly position?: number }) {
    this.#iterator = chunks[Symbol.asyncIterator]()
    this.#signal = o.signal
    this.#position = o.position ?? 0
  }

  /** Offset of the next byte in its file. */
  get position(): number {
    return this.#position
  }

  /** The next bytes, as many as have come, never none; null at the end. */
  async next(): Promise<Uint8Array | null> {
    const chunk = this.#held ?? (await this.#pull())
    this.#held = null
    this.#position += chunk?.byteLength ?? 0
    return chunk
  }

  /** Puts bytes back that were the end of what `next` or `take` gave last. */
  unread(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return
    this.#position -= bytes.byteLength
    this.#held = this.#held === null ? bytes : Buffer.concat([bytes, this.#held])
  }

  /** Exactly `count` bytes, or fewer where the stream ends. */
  async take(count: number): Promise<Uint8Array> {
    const pieces: Uint8Array[] = []
    let have = 0
    while (have < count) {
      const chunk = await this.next()
      if (chunk === null) break
      const wanted = Math.min(count - have, chunk.byteLength)
      pieces.push(chunk.subarray(0, wanted))
      have += wanted
      this.unread(chunk.subarray(wanted))
    }
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)
  }

  /** Ends the stream. Does not wait for a pull that is under way: its source ends by the signal. */
  async close(): Promise<void> {
    const returned = this.#iterator.return?.()
    if (returned === undefined) return
    if (this.#pulling) void Promise.resolve(returned).catch(() => undefined)
    else await returned
  }

  async #pull(): Promise<Uint8Array | null> {
    while (!this.#ended) {
      const step = await this.#step()
      if (step.done === true) this.#ended = true
      else if (step.value.byteLength > 0) return step.value
    }
    return null
  }

  /** The next chunk, or the signal's reason if that comes first. */
  async #step(): Promise<IteratorResult<Uint8Array, unknown>> {
    this.#signal.throwIfAborted()
    let stop: () => void = () => undefined
    const stopped = new Promise<never>((_, reject) => {
      stop = () => reject(this.#signal.reason)
    })
    this.#signal.addEventListener('abort', stop)
    this.#pulling = true
    const next = this.#iterator.next().finally(() => {
      this.#pulling = false
    })
    try {
      return await Promise.race([next, stopped])
    } finally {
      this.#signal.removeEventListener('abort', stop)
    }
  }
}
