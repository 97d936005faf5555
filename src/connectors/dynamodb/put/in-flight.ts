/** Bounds of the number of requests at once; equal ones fix it. */
export interface InFlightBounds {
  readonly initial: number
  readonly min: number
  readonly max: number
}

/** More requests must bring this much more throughput to be kept. */
const GAIN = 1.04
/** Above this share of refused puts there are fewer requests, below the other there may be more: between them the table is just busy. */
const TOO_MANY_REFUSED = 0.25
const FEW_REFUSED = 0.1
/** A window is judged when this much time has passed and each place was used twice. */
const WINDOW_MS = 100
/** Windows without a new attempt after one that gained nothing; doubled each time up to the bound. */
const FIRST_REST = 4
const LONGEST_REST = 64

/**
 * How many requests may be in flight: a quarter more is tried for a window and kept where it brings more items a second; where more than a quarter of
 * the puts come back refused, a fifth less. So a table at its limit stays busy, as capacity grows only under load, and a client at its limit
 * is not drowned.
 */
export class InFlightLimit {
  readonly #min: number
  readonly #max: number
  #limit: number
  #beganMs = performance.now()
  #requests = 0
  #accepted = 0
  #refused = 0
  #before: { readonly limit: number; readonly rate: number } | null = null
  #rest = 2
  #nextRest = FIRST_REST

  constructor(bounds: InFlightBounds) {
    this.#min = Math.max(1, bounds.min)
    this.#max = Math.max(this.#min, bounds.max)
    this.#limit = Math.min(this.#max, Math.max(this.#min, bounds.initial))
  }

  get limit(): number {
    return this.#limit
  }

  /** A request was answered: so many of its puts were taken, so many not. */
  answered(accepted: number, refused: number): void {
    this.#requests += 1
    this.#accepted += accepted
    this.#refused += refused
    if (this.#requests < this.#limit * 2) return
    const nowMs = performance.now()
    const tookMs = nowMs - this.#beganMs
    if (tookMs < WINDOW_MS) return
    this.#judge(this.#accepted / tookMs, this.#refused / (this.#accepted + this.#refused))
    this.#beganMs = nowMs
    this.#requests = 0
    this.#accepted = 0
    this.#refused = 0
  }

  #judge(rate: number, refusedShare: number): void {
    const before = this.#before
    this.#before = null
    if (refusedShare > TOO_MANY_REFUSED) {
      this.#set(Math.floor(this.#limit * 0.8))
      return
    }
    if (before !== null) {
      if (rate < before.rate * GAIN) {
        this.#set(before.limit)
        this.#rest = this.#nextRest
        this.#nextRest = Math.min(LONGEST_REST, this.#nextRest * 2)
        return
      }
      this.#nextRest = FIRST_REST
    }
    this.#rest -= 1
    if (this.#rest > 0 || refusedShare > FEW_REFUSED || this.#limit >= this.#max) return
    this.#before = { limit: this.#limit, rate }
    this.#set(this.#limit + Math.max(1, this.#limit >> 2))
  }

  #set(limit: number): void {
    this.#limit = Math.min(this.#max, Math.max(this.#min, limit))
  }
}
