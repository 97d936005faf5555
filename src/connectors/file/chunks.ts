/** Passes chunks on and counts their bytes. */
export async function* countBytes(
  chunks: AsyncIterable<Uint8Array>,
  add: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    add(chunk.byteLength)
    yield chunk
  }
}

/** The bytes `[start, end)` of a stream. Reads no further than `end`. */
export async function* sliceChunks(
  chunks: AsyncIterable<Uint8Array>,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array> {
  let at = 0
  if (start >= end) return
  for await (const chunk of chunks) {
    const from = Math.max(0, start - at)
    const to = Math.min(chunk.byteLength, end - at)
    at += chunk.byteLength
    if (to > from) yield chunk.subarray(from, to)
    if (at >= end) return
  }
}

/** A stream whose first chunks can be looked at and are read again afterwards. Keeps what was looked at: a head, so a few MiB at most. */
export class Rewindable {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #release: (() => Promise<void>) | undefined
  #seen: Uint8Array[] = []

  /** `release` frees what is below the chunks when the stream is closed: a generator that was never begun frees nothing by itself. */
  constructor(chunks: AsyncIterable<Uint8Array>, release?: () => Promise<void>) {
    this.#iterator = chunks[Symbol.asyncIterator]()
    this.#release = release
  }

  /** From the beginning, remembering. Ending this iteration early does not end the stream. */
  async *look(): AsyncGenerator<Uint8Array> {
    for (let i = 0; ; i += 1) {
      let chunk = this.#seen[i]
      if (chunk === undefined) {
        const next = await this.#iterator.next()
        if (next.done === true) return
        chunk = next.value
        this.#seen.push(chunk)
      }
      yield chunk
    }
  }

  /** The same stream from its beginning, by way of what is done to its chunks. What this one holds is released by the new one. */
  through(make: (chunks: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>): Rewindable {
    return new Rewindable(make(this.rest()), () => this.close())
  }

  /** From the beginning, forgetting: the last use. */
  async *rest(): AsyncGenerator<Uint8Array> {
    try {
      for (let chunk = this.#seen.shift(); chunk !== undefined; chunk = this.#seen.shift()) yield chunk
      for (;;) {
        const next = await this.#iterator.next()
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await this.close()
    }
  }

  async close(): Promise<void> {
    this.#seen = []
    try {
      await this.#iterator.return?.()
    } finally {
      await this.#release?.()
    }
  }
}

/** The first bytes of a stream, up to `bytes` of them, without using it up. */
export async function firstBytes(stream: Rewindable, bytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let have = 0
  for await (const chunk of stream.look()) {
    chunks.push(chunk)
    have += chunk.byteLength
    if (have >= bytes) break
  }
  return Buffer.concat(chunks, Math.min(have, bytes))
}
