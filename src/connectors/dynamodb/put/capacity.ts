import { monotonicMs } from './monotonic.ts'

const NS_PER_MS = 1e6
/** What was not used is saved for so long at most. */
const SAVED_MS = 1000

/**
 * Keeps to a number of capacity units a second, counted as the server says that they were consumed: what a request will cost is estimated by what puts
 * cost so far, and put right when its answer is there. What was not used is saved for one second at most; nothing is before the first request, though DynamoDB bears
 * bursts: what puts cost is known from the first answers on only, and whatever was saved would go out before at a guess (items of 3 KB cost three times
 * that; a load of four seconds' units was over in two, measured). So a load takes its units' time and the start's, some 0.4 s. Threads that share a cell share the units: who
 * has something to send takes them.
 */
export class CapacityBudget {
  readonly #msPerUnit: number
  /**
   * When all that was taken so far is paid for, in nanoseconds of the steady clock: before now where units are saved, after it where too many were taken; 0
   * until somebody has something to send.
   */
  readonly #paidNs: BigInt64Array
  #unitsPerPut = 1

  /** `cell`: of a SharedArrayBuffer, zero at first, where several threads have one budget. */
  constructor(unitsPerSecond: number, cell: BigInt64Array = new BigInt64Array(1)) {
    this.#msPerUnit = 1000 / unitsPerSecond
    this.#paidNs = cell
  }

  /** How long to wait until a request may go, in milliseconds; 0: now. */
  waitMs(nowMs: number = monotonicMs()): number {
    let paid = Atomics.load(this.#paidNs, 0)
    const earliest = toNs(paid === 0n ? nowMs : nowMs - SAVED_MS)
    while (paid < earliest) {
      const before = Atomics.compareExchange(this.#paidNs, 0, paid, earliest)
      paid = before === paid ? earliest : before
    }
    const aheadMs = Number(paid - toNs(nowMs)) / NS_PER_MS
    return aheadMs <= 0 ? 0 : Math.max(1, Math.ceil(aheadMs))
  }

  /** A request with so many puts goes: takes what it is thought to cost. @returns that, for `consumed` */
  take(puts: number): number {
    const estimate = puts * this.#unitsPerPut
    this.#add(estimate)
    return estimate
  }

  /** A request that was thought to cost `estimate` did cost `units`, for `puts` puts that were accepted. */
  consumed(estimate: number, units: number, puts: number): void {
    this.#add(units - estimate)
    if (puts > 0) this.#unitsPerPut = this.#unitsPerPut * 0.9 + (units / puts) * 0.1
  }

  #add(units: number): void {
    Atomics.add(this.#paidNs, 0, toNs(units * this.#msPerUnit))
  }
}

function toNs(ms: number): bigint {
  return BigInt(Math.round(ms * NS_PER_MS))
}
