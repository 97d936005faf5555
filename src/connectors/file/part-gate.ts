/** Parts in flight where `--parallelism` does not say. */
const PARTS_IN_FLIGHT = 4

/**
 * Bounds the parts in flight of all files of a sink together. Memory: the parts in flight, and those that wait for their turn, of which each file has
 * one at most. What fails is kept and thrown by whoever comes next.
 */
export class PartGate {
  /** Most parts in flight. */
  readonly limit: number
  /** `--parallelism 0`: production waits for each part. */
  readonly waits: boolean
  readonly #sending = new Set<Promise<void>>()
  readonly #queue: (() => void)[] = []
  #free: number
  #failure: { readonly reason: unknown } | null = null

  constructor(parallelism: number | 'auto' | undefined) {
    this.waits = parallelism === 0
    this.limit = parallelism === undefined || parallelism === 'auto' ? PARTS_IN_FLIGHT : Math.max(1, parallelism)
    this.#free = this.limit
  }

  /** Begins `task` once there is room for it, and resolves then: production goes on beside it (with `waits`, when it is through). */
  async send(task: () => Promise<void>): Promise<void> {
    await this.#enter()
    if (this.#failure !== null) {
      this.#leave()
      throw this.#failure.reason
    }
    const sending = task()
      .catch((reason: unknown) => {
        this.#failure ??= { reason }
      })
      .finally(() => {
        this.#sending.delete(sending)
        this.#leave()
      })
    this.#sending.add(sending)
    if (this.waits) await sending
    this.throwFailure()
  }

  /** All parts that were begun are through. Never throws. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending)
  }

  throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.reason
  }

  #enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve()
    }
    return new Promise((resolve) => this.#queue.push(resolve))
  }

  #leave(): void {
    const next = this.#queue.shift()
    if (next === undefined) this.#free += 1
    else next()
  }
}
