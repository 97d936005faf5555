/**
 * Keeps to a number of capacity units a second, counted as the server says that they were consumed: what a request will cost is estimated by what puts
 * cost so far, and put right when its answer is there. What was not used is saved for one second at most.
 */
export class CapacityBudget {
  readonly #unitsPerSecond: number
  /** Units that may be used now; below 0 where more was consumed than estimated. */
  #saved = 0
  #atMs: number
  #unitsPerPut = 1

  constructor(unitsPerSecond: number, nowMs: number = performance.now()) {
    this.#unitsPerSecond = unitsPerSecond
    this.#atMs = nowMs
  }

  /** How long to wait until a request may go, in milliseconds; 0: now. */
  waitMs(nowMs: number = performance.now()): number {
    const passed = ((nowMs - this.#atMs) / 1000) * this.#unitsPerSecond
    this.#saved = Math.min(this.#unitsPerSecond, this.#saved + passed)
    this.#atMs = nowMs
    return this.#saved > 0 ? 0 : Math.max(1, Math.ceil((-this.#saved / this.#unitsPerSecond) * 1000))
  }

  /** A request with so many puts goes: takes what it is thought to cost. @returns that, for `consumed` */
  take(puts: number): number {
    const estimate = puts * this.#unitsPerPut
    this.#saved -= estimate
    return estimate
  }

  /** A request that was thought to cost `estimate` did cost `units`, for `puts` puts that were accepted. */
  consumed(estimate: number, units: number, puts: number): void {
    this.#saved += estimate - units
    if (puts > 0) this.#unitsPerPut = this.#unitsPerPut * 0.9 + (units / puts) * 0.1
  }
}
