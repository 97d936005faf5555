/** Bounds of an adaptive limit; `min` = `max` makes it a fixed number. */
export interface LimiterBounds {
  readonly initial: number
  readonly min: number
  readonly max: number
}

/**
 * A higher limit must bring this much more throughput to be kept: half of what one more could bring (an n-th, at n in flight), but between these two. Rates
 * swing, and each place costs memory: by 5 % alone loads of 2 GB wandered up to 6 lanes where 2 did as much.
 */
const [LEAST_GAIN, MOST_GAIN] = [0.05, 0.25]
/** How soon a low latency is forgotten, a window: twice as much is usual after 15 of them. */
const FORGOTTEN_LATENCY = 1.05
/** Windows without a new probe after one that gained nothing; doubled each time up to the bound. */
const FIRST_REST_WINDOWS = 4
const LONGEST_REST_WINDOWS = 64

/**
 * How many operations may be in flight. It probes: one more for a window of completions; kept if throughput grew by half of
 * what one more could bring, else taken back, and the next probe comes later. A throttle cuts it to 70 %; a doubled latency without a gain
 * takes one away. Waiters are served in order; at most as many wait as there are callers. One limiter a server.
 */
export class AdaptiveLimiter {
  readonly #min: number
  readonly #max: number
  readonly #waiting: (() => void)[] = []
  readonly #changed: (() => void)[] = []
  #limit: number
  #inFlight = 0
  #windowBeganMs = performance.now()
  #windowUnits = 0
  #windowCompletions = 0
  #windowLatencyMs = 0
  /** Throughput at the limit before the probe under way; null where none is. */
  #beforeProbe: number | null = null
  #restWindows = 1
  #nextRestWindows = FIRST_REST_WINDOWS
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
    while (this.#inFlight >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#inFlight += 1
    const beganMs = performance.now()
    try {
      const result = await operation()
      this.completed(units(result), performance.now() - beganMs)
      return result
    } finally {
      this.#inFlight -= 1
      this.#wake()
    }
  }

  /** Tells of an operation that was run elsewhere, by a caller that keeps to `limit` itself. */
  completed(units: number, latencyMs: number): void {
    this.#windowUnits += units
    this.#windowCompletions += 1
    this.#windowLatencyMs += latencyMs
    if (this.#windowCompletions < this.#limit * 2) return
    const nowMs = performance.now()
    this.#judge(
      this.#windowUnits / Math.max(1, nowMs - this.#windowBeganMs),
      this.#windowLatencyMs / this.#windowCompletions,
    )
    this.#beginWindow(nowMs)
  }

  /** The server asked for less. Cuts at most once a second, as one burst of refusals is one piece of news. */
  throttled(): void {
    const nowMs = performance.now()
    if (nowMs - this.#lastCutMs < 1000) return
    this.#lastCutMs = nowMs
    this.#beforeProbe = null
    this.#restWindows = this.#nextRestWindows
    this.#setLimit(Math.floor(this.#limit * 0.7))
    this.#beginWindow(nowMs)
  }

  /** Resolves when the limit has changed, for callers that keep to it themselves. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#changed.push(resolve))
  }

  #judge(rate: number, latencyMs: number): void {
    if (this.#beforeProbe !== null) {
      const wanted = Math.min(MOST_GAIN, Math.max(LEAST_GAIN, 0.5 / (this.#limit - 1)))
      const gained = rate > this.#beforeProbe * (1 + wanted)
      if (gained) this.#nextRestWindows = FIRST_REST_WINDOWS
      else {
        this.#setLimit(this.#limit - 1)
        this.#restWindows = this.#nextRestWindows
        this.#nextRestWindows = Math.min(LONGEST_REST_WINDOWS, this.#nextRestWindows * 2)
      }
      this.#beforeProbe = null
      if (!gained) return
    }
    const slower = latencyMs > this.#bestLatencyMs * 2
    this.#bestLatencyMs = Math.min(this.#bestLatencyMs * FORGOTTEN_LATENCY, latencyMs)
    this.#restWindows -= 1
    if (this.#restWindows > 0) {
      if (slower) this.#setLimit(this.#limit - 1)
    } else if (this.#limit < this.#max) {
      this.#beforeProbe = rate
      this.#setLimit(this.#limit + 1)
    }
  }

  #setLimit(limit: number): void {
    this.#limit = Math.min(this.#max, Math.max(this.#min, limit))
    this.#wake()
    for (const resolve of this.#changed.splice(0)) resolve()
  }

  #wake(): void {
    const free = this.#limit - this.#inFlight
    for (let i = 0; i < free; i += 1) this.#waiting.shift()?.()
  }

  #beginWindow(nowMs: number): void {
    this.#windowBeganMs = nowMs
    this.#windowUnits = 0
    this.#windowCompletions = 0
    this.#windowLatencyMs = 0
  }
}
