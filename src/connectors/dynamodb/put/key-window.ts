import type { Put, PutBatch } from './put-batch.ts'

export type Dedupe = 'last' | 'error' | 'none'

/**
 * Which puts are under way, by key: a later row with the same key takes the place of one that was not sent, and waits for one that was. So the
 * table ends with the last row of the input, and no request has equal keys. As many entries as puts are under way.
 */
export class KeyWindow {
  readonly #latest = new Map<string, Put>()

  /**
   * A put is about to be taken into the request that is being filled. @returns whether it may; where not, it waits behind one that was sent, in whose
   * `next` it is, and has to have its bytes to itself.
   */
  enter(put: Put, open: PutBatch): boolean {
    const before = this.#latest.get(put.key)
    if (before === undefined) {
      this.#latest.set(put.key, put)
      return true
    }
    if (before.state !== 'sent' && !before.uncertain) {
      this.#supersede(before)
      if (before.state === 'open') open.superseded += 1
      this.#latest.set(put.key, put)
      return true
    }
    if (before.next !== null) this.#supersede(before.next)
    before.next = put
    return false
  }

  /** The server took it. @returns the put that waited for that, if one did */
  accepted(put: Put): Put | null {
    const { next } = put
    if (next === null) this.#latest.delete(put.key)
    else this.#latest.set(put.key, next)
    put.next = null
    return next
  }

  /** The server did not take it. @returns what is to be sent now: a later row instead of it, where there is one and it surely is not in */
  refused(put: Put): Put {
    const { next } = put
    if (next === null || put.uncertain) return put
    this.#supersede(put)
    put.next = null
    this.#latest.set(put.key, next)
    return next
  }

  #supersede(put: Put): void {
    put.superseded = true
    put.extent.superseded += 1
    put.extent.pending -= 1
  }
}
