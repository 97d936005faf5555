/** Parts in flight where `--parallelism` does not say. */
const PARTS_IN_FLIGHT = 4
/** Bytes of parts that are made and wait for their turn while production goes on: what a connection that falls free takes at once. 16 MiB, less with `--max-memory`. */
const MOST_AHEAD_BYTES = 16 * 1024 * 1024

interface Waiting {
  readonly bytes: number
  readonly begin: () => void
  /** Lets production go on, where it waits for the part to wait by itself. */
  heard: (() => void) | null
}

/**
 * Bounds the parts in flight of all files of a sink together. Memory: the parts in flight, 16 MiB (an eighth of `--max-memory`) that wait for their turn, and of each file one part that
 * production waits with. What fails is kept and thrown by whoever comes next; what waited then is not begun.
 */
export class PartGate {
  /** Most parts in flight. */
  readonly limit: number
  /** `--parallelism 0`: production waits for each part. */
  readonly waits: boolean
  readonly #mostAheadBytes: number
  readonly #sending = new Set<Promise<void>>()
  readonly #queue: Waiting[] = []
  /** Of parts in the queue that production does not wait for. */
  #aheadBytes = 0
  #free: number
  #failure: { readonly reason: unknown } | null = null

  constructor(parallelism: number | 'auto' | undefined, maxMemoryBytes = Number.POSITIVE_INFINITY) {
    this.#mostAheadBytes = Math.min(MOST_AHEAD_BYTES, Math.floor(maxMemoryBytes / 8))
    this.waits = parallelism === 0
    this.limit = parallelism === undefined || parallelism === 'auto' ? PARTS_IN_FLIGHT : Math.max(1, parallelism)
    this.#free = this.limit
  }

  /**
   * Begins `task`, which sends so many bytes, in its turn. Resolves once there is room for the next: production goes on beside it (with `waits`, when it is
   * through).
   */
  async send(task: () => Promise<void>, bytes: number): Promise<void> {
    this.throwFailure()
    const turn = this.#enter(bytes)
    const sending = this.#run(task, turn.begun)
    this.#sending.add(sending)
    void sending.then(() => this.#sending.delete(sending))
    await (this.waits ? sending : turn.heard)
    this.throwFailure()
  }

  /** All parts are through. Never throws. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending)
  }

  throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.reason
  }

  async #run(task: () => Promise<void>, begun: Promise<void>): Promise<void> {
    await begun
    try {
      if (this.#failure === null) await task()
    } catch (reason) {
      this.#failure ??= { reason }
    } finally {
      this.#leave()
    }
  }

  /** `begun`: it is the part's turn; `heard`: production may go on. */
  #enter(bytes: number): { readonly begun: Promise<void>; readonly heard: Promise<void> } {
    if (this.#free > 0) {
      this.#free -= 1
      return { begun: Promise.resolve(), heard: Promise.resolve() }
    }
    const ahead = !this.waits && this.#aheadBytes + bytes <= this.#mostAheadBytes
    if (ahead) this.#aheadBytes += bytes
    let heard = (): void => undefined
    const hearing = ahead ? Promise.resolve() : new Promise<void>((resolve) => (heard = resolve))
    const begun = new Promise<void>((resolve) => {
      this.#queue.push({ bytes, begin: resolve, heard: ahead ? null : heard })
    })
    return { begun, heard: hearing }
  }

  #leave(): void {
    const next = this.#queue.shift()
    if (next === undefined) {
      this.#free += 1
      return
    }
    if (next.heard === null) this.#aheadBytes -= next.bytes
    next.heard?.()
    next.begin()
    for (const waiting of this.#queue) {
      if (waiting.heard === null || this.waits || this.#aheadBytes + waiting.bytes > this.#mostAheadBytes) continue
      this.#aheadBytes += waiting.bytes
      waiting.heard()
      waiting.heard = null
    }
  }
}
