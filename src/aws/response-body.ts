/** What steers the sender: a stream's three levers. */
export interface BodyControl {
  pause(): void
  resume(): void
  abort(reason: Error): void
}

/** Bytes that may wait for the consumer before the socket is paused: four of Node's reads of 64 KiB. */
const PAUSE_AT_BYTES = 256 * 1024

/**
 * A response's body: pulled once, by iteration, `text` or `discard`. Holds at most PAUSE_AT_BYTES and one read of the
 * socket. Leaving an iteration early closes the connection. Costs less than a Readable a chunk, which is why it exists.
 */
export class ResponseBody implements AsyncIterable<Uint8Array> {
  readonly #control: BodyControl
  readonly #translate: (error: unknown) => Error
  #chunks: Uint8Array[] = []
  #taken = 0
  #queuedBytes = 0
  #paused = false
  #ended = false
  #error: Error | null = null
  #wake: (() => void) | null = null

  constructor(control: BodyControl, translate: (error: unknown) => Error) {
    this.#control = control
    this.#translate = translate
  }

  /** Whether it is the consumer who holds things up. */
  get isPaused(): boolean {
    return this.#paused
  }

  /** @internal fed by the pool */
  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#queuedBytes += chunk.byteLength
    if (this.#queuedBytes >= PAUSE_AT_BYTES && !this.#paused) {
      this.#paused = true
      this.#control.pause()
    }
    this.#signal()
  }

  /** @internal fed by the pool */
  end(): void {
    this.#ended = true
    this.#signal()
  }

  /** @internal fed by the pool */
  fail(error: Error): void {
    if (this.#ended) return
    this.#error ??= error
    this.#signal()
  }

  /** The next chunk, null at the end. @throws the translated network error, or the reason of an abort */
  async next(): Promise<Uint8Array | null> {
    for (;;) {
      const chunk = this.#shift()
      if (chunk !== null) return chunk
      if (this.#error !== null) throw this.#translate(this.#error)
      if (this.#ended) return null
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (let chunk = await this.next(); chunk !== null; chunk = await this.next()) yield chunk
    } finally {
      this.destroy()
    }
  }

  /** The whole body as text, at most `limitBytes` of it (what is beyond is read and dropped). */
  async text(limitBytes = 1024 * 1024): Promise<string> {
    const kept: Uint8Array[] = []
    let bytes = 0
    for (let chunk = await this.next(); chunk !== null; chunk = await this.next()) {
      if (bytes < limitBytes) kept.push(chunk)
      bytes += chunk.byteLength
    }
    return Buffer.concat(kept).subarray(0, limitBytes).toString('utf8')
  }

  /** Reads up to 64 KiB to the end so that the connection can be used again; closes it where more would come. Never throws. */
  async discard(): Promise<void> {
    try {
      let bytes = 0
      for (let chunk = await this.next(); chunk !== null; chunk = await this.next()) {
        bytes += chunk.byteLength
        if (bytes > 64 * 1024) return this.destroy()
      }
    } catch {
      // What broke is not wanted any more.
    }
  }

  /** Closes the connection unless the body has ended. */
  destroy(): void {
    this.#chunks = []
    this.#taken = 0
    this.#queuedBytes = 0
    if (!this.#ended && this.#error === null) this.#control.abort(new Error('the body is not wanted any more'))
  }

  #shift(): Uint8Array | null {
    const chunk = this.#chunks[this.#taken]
    if (chunk === undefined) return null
    this.#taken += 1
    if (this.#taken === this.#chunks.length) {
      this.#chunks = []
      this.#taken = 0
    }
    this.#queuedBytes -= chunk.byteLength
    if (this.#paused && this.#queuedBytes < PAUSE_AT_BYTES / 2) {
      this.#paused = false
      this.#control.resume()
    }
    return chunk
  }

  #signal(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
