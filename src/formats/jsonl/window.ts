/** A stretch of a stream of chunks: grown at its end, dropped from at its beginning. */
export class Window {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #signal: AbortSignal
  #bytes: Buffer = Buffer.alloc(0)
  #base: number
  #ended = false
  #pulling = false

  /** `base` is the offset of the first byte of the chunks. */
  constructor(chunks: AsyncIterable<Uint8Array>, base: number, signal: AbortSignal) {
    this.#iterator = chunks[Symbol.asyncIterator]()
    this.#base = base
    this.#signal = signal
  }

  /** Offset of the first byte held. */
  get base(): number {
    return this.#base
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  /** Nothing comes after what is held. */
  get ended(): boolean {
    return this.#ended
  }

  /** Pulls chunks until `least` bytes are held or the stream ends; holds at most one chunk more. */
  async fill(least: number): Promise<void> {
    if (this.#ended || this.#bytes.byteLength >= least) return
    const pieces: Uint8Array[] = [this.#bytes]
    let have = this.#bytes.byteLength
    while (have < least) {
      const step = await this.#pull()
      if (step.done === true) {
        this.#ended = true
        break
      }
      pieces.push(step.value)
      have += step.value.byteLength
    }
    this.#bytes = Buffer.concat(pieces, have)
  }

  drop(count: number): void {
    this.#bytes = this.#bytes.subarray(count)
    this.#base += count
  }

  /** Does not wait for a pull that is under way: its source ends by the signal. */
  async close(): Promise<void> {
    const returned = Promise.resolve(this.#iterator.return?.())
    if (this.#pulling) returned.catch(() => undefined)
    else await returned
  }

  /** The next chunk, or the signal's reason if that comes first. */
  async #pull(): Promise<IteratorResult<Uint8Array, unknown>> {
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
