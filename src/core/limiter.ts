/** Bounds of an adaptive limit; `min` = `max` makes it a fixed number. */
export interface LimiterBounds {
  readonly initial: number
  readonly min: number
  readonly max: number
}

/**
 * How many operations may be in flight: grows by one while a window of completions brought more throughput than the best so far,
 * falls to 70 % on a throttle and by one where latency doubled without a gain. Waiters are served in order; at most as many
 * wait as there are callers. One limiter a server.
 */
export class AdaptiveLimiter {
  readonly #min: number
  readonly #max: number
  readonly #waiting: (() => void)[] = []
  #limit: number
  #inFlight = 0
  #windowBegan = performance.now()
  #windowUnits = 0
  #windowCompletions = 0
  #windowLatencyMs = 0
  #bestRate = 0
  #bestLatencyMs = Number.POSITIVE_INFINITY
  #lastCutMs = Number.NEGATIVE_INFINITY

  constructor(bounds: LimiterBounds) {
    this.#min = Math.max(1, bounds.min)
    this.#max = Math.max(this.#min, bounds.max)
    this.#limit = Math.min(this.#max, Math.max(this.#min, bounds.initial))
  }

  get limit(): number {
    return this.#limit
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Runs the operation once a place is free. `units` of its result (bytes, items) are what throughput is measured in. */
  async run<T>(operation: () => Promise<T>, units: (result: T) => number): Promise<T> {
    await this.#acquire()
    const beganMs = performance.now()
    try {
      const result = await operation()
      this.#completed(units(result), performance.now() - beganMs)
      return result
    } finally {
      this.#release()
    }
  }

  /** The server asked for less. Cuts at most once a second, as one burst of refusals is one piece of news. */
  throttled(): void {
    const nowMs = performance.now()
    if (nowMs - this.#lastCutMs < 1000) return
    this.#lastCutMs = nowMs
    this.#limit = Math.max(this.#min, Math.floor(this.#limit * 0.7))
    this.#bestRate = 0
    this.#beginWindow(nowMs)
  }

  async #acquire(): Promise<void> {
    while (this.#inFlight >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#inFlight += 1
  }

  #release(): void {
    this.#inFlight -= 1
    const free = this.#limit - this.#inFlight
    for (let i = 0; i < free; i += 1) this.#waiting.shift()?.()
  }

  #completed(units: number, latencyMs: number): void {
    this.#windowUnits += units
    this.#windowCompletions += 1
    this.#windowLatencyMs += latencyMs
    if (this.#windowCompletions < this.#limit * 2) return
    const nowMs = performance.now()
    const rate = this.#windowUnits / Math.max(1, nowMs - this.#windowBegan)
    const meanLatencyMs = this.#windowLatencyMs / this.#windowCompletions
    if (rate > this.#bestRate * 1.05) {
      this.#bestRate = rate
      this.#limit = Math.min(this.#max, this.#limit + 1)
    } else if (meanLatencyMs > this.#bestLatencyMs * 2) {
      this.#limit = Math.max(this.#min, this.#limit - 1)
    }
    this.#bestLatencyMs = Math.min(this.#bestLatencyMs, meanLatencyMs)
    this.#beginWindow(nowMs)
  }

  #beginWindow(nowMs: number): void {
    this.#windowBegan = nowMs
    this.#windowUnits = 0
    this.#windowCompletions = 0
    this.#windowLatencyMs = 0
  }
}
