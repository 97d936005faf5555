import type { Put, PutBatch } from './put-batch.ts'

/** Puts of one answer that wait for their next try. */
interface Group {
  readonly dueMs: number
  readonly puts: Put[]
}

/** Puts that wait for another try, or for their turn; who adds them looks to their bound. */
export class RefusedPuts {
  readonly #groups: Group[] = []
  readonly #keepsOrder: boolean
  #count = 0
  #bytes = 0

  /** `keepsOrder`: keys were told apart on the way in. */
  constructor(o: { readonly keepsOrder: boolean }) {
    this.#keepsOrder = o.keepsOrder
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#bytes
  }

  add(puts: Put[], delayMs: number): void {
    for (const put of puts) {
      put.state = 'waiting'
      this.#bytes += put.end - put.start
    }
    this.#count += puts.length
    this.#groups.push({ dueMs: performance.now() + delayMs, puts })
  }

  /** Until the first is due, in milliseconds; 0 or less: one is; Infinity: none waits. */
  dueInMs(): number {
    let first = Number.POSITIVE_INFINITY
    for (const { dueMs } of this.#groups) first = Math.min(first, dueMs)
    return first - performance.now()
  }

  /** Moves into a request what is due and fits, in the order in which it fell due. */
  fill(batch: PutBatch): void {
    const nowMs = performance.now()
    for (let i = 0; i < this.#groups.length && !batch.isFull; i += 1) {
      const group = this.#groups[i] as Group
      if (group.dueMs > nowMs) continue
      const left: Put[] = []
      for (const put of group.puts) {
        if (put.superseded) this.#forget(put)
        else if (batch.isFull || !batch.fits(put.end - put.start) || this.#clashes(put, batch)) left.push(put)
        else {
          this.#forget(put)
          batch.take(put)
        }
      }
      group.puts.length = 0
      group.puts.push(...left)
    }
    for (let i = this.#groups.length - 1; i >= 0; i -= 1)
      if (this.#groups[i]?.puts.length === 0) this.#groups.splice(i, 1)
  }

  #clashes(put: Put, batch: PutBatch): boolean {
    return !this.#keepsOrder && batch.puts.some((other) => other.key === put.key)
  }

  #forget(put: Put): void {
    this.#count -= 1
    this.#bytes -= put.end - put.start
  }
}
