import { SluiceError } from '../core/errors.ts'
import type { Abortable, ByteRange, ObjectInfo, Store } from '../core/ports.ts'

export interface ParallelReadOptions extends Abortable {
  /** Bytes of one range. */
  readonly rangeBytes: number
  /** Ranges being fetched or waiting to be consumed, the one in consumption included; a function is asked again as it goes. */
  readonly inFlight: number | (() => number)
}

/**
 * Bytes of a range in order, fetched as several ranges at the same time. Holds at most `inFlight` × `rangeBytes` bytes; the
 * next range is begun as soon as one has been consumed. Leaving early ends all requests. One plain read where the store cannot
 * read ranges, the size is unknown, or the range is no longer than `rangeBytes`. Chunks are handed on as they came, uncopied.
 *
 * @throws what the store's `read` throws, in the order of the bytes; SLUICE_SOURCE_SHORT where a range had too few
 */
// oxlint-disable-next-line max-params -- the three of Store.read, and how
export async function* readParallel(
  store: Store,
  info: ObjectInfo,
  range: ByteRange,
  options: ParallelReadOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const end = info.size === null ? range.end : Math.min(range.end, info.size)
  if (!info.ranged || !Number.isFinite(end) || end - range.start <= options.rangeBytes) {
    yield* store.read(info, range, { signal: options.signal })
    return
  }
  const stop = new AbortController()
  const onAbort = (): void => stop.abort(options.signal.reason)
  options.signal.throwIfAborted()
  options.signal.addEventListener('abort', onAbort, { once: true })
  const queue: Fetch[] = []
  let next = range.start
  const fill = (): void => {
    const limit = Math.max(1, typeof options.inFlight === 'number' ? options.inFlight : options.inFlight())
    while (queue.length < limit && next < end) {
      const piece = { start: next, end: Math.min(end, next + options.rangeBytes) }
      queue.push(new Fetch(store.read(info, piece, { signal: stop.signal }), { url: info.url, ...piece }))
      next = piece.end
    }
  }
  try {
    for (fill(); queue.length > 0; fill()) {
      const [first] = queue
      if (first === undefined) break
      for (let chunk = await first.next(); chunk !== null; chunk = await first.next()) yield chunk
      queue.shift()
    }
  } finally {
    options.signal.removeEventListener('abort', onAbort)
    stop.abort(new Error('the reader has left'))
    await Promise.all(queue.map((fetch) => fetch.settled))
  }
}

interface Piece extends ByteRange {
  readonly url: string
}

/** One range on its way: runs at once and at full speed, keeps what nobody has taken yet (at most the range). */
class Fetch {
  /** Resolves when the range is in, or failed, or was stopped; never rejects. */
  readonly settled: Promise<void>
  #chunks: Uint8Array[] = []
  #taken = 0
  #ended = false
  #failure: { readonly error: unknown } | null = null
  #wake: (() => void) | null = null

  constructor(chunks: AsyncIterable<Uint8Array>, piece: Piece) {
    this.settled = this.#run(chunks, piece)
  }

  async next(): Promise<Uint8Array | null> {
    for (;;) {
      const chunk = this.#chunks[this.#taken]
      if (chunk !== undefined) {
        this.#taken += 1
        if (this.#taken === this.#chunks.length) {
          this.#chunks = []
          this.#taken = 0
        }
        return chunk
      }
      if (this.#failure !== null) throw this.#failure.error
      if (this.#ended) return null
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async #run(chunks: AsyncIterable<Uint8Array>, { url, start, end }: Piece): Promise<void> {
    try {
      let at = start
      for await (const chunk of chunks) {
        at += chunk.byteLength
        this.#chunks.push(chunk)
        this.#wakeUp()
      }
      if (at !== end) {
        throw new SluiceError('SLUICE_SOURCE_SHORT', `${at - start} bytes came where ${end - start} were asked for`, {
          where: { url, byte: at },
        })
      }
    } catch (error) {
      this.#failure = { error }
    }
    this.#ended = true
    this.#wakeUp()
  }

  #wakeUp(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
