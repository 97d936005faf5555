import { SluiceError, toSluiceError } from '../../core/errors.ts'
import { backoffMs } from '../../core/retry.ts'
import { readAnswer, type BatchAnswer } from './batch-answer.ts'
import type { CapacityBudget } from './capacity.ts'
import type { DynamoClient } from './client.ts'
import { wasRefused } from './errors.ts'
import type { InFlightLimit } from './in-flight.ts'
import { KeyWindow, type Dedupe } from './key-window.ts'
import { PutBatch, type Put } from './put-batch.ts'
import type { KeyAttribute } from './table-info.ts'

export interface PutWindowOptions {
  readonly client: Pick<DynamoClient, 'send' | 'reporter'>
  readonly table: string
  /** The partition key first. */
  readonly keys: readonly KeyAttribute[]
  readonly limit: InFlightLimit
  /** For `--write-units`. */
  readonly capacity: CapacityBudget | null
  readonly dedupe: Dedupe
  readonly retryForMs: number
  readonly signal: AbortSignal
}

/** Puts that were refused and wait for their next try. */
interface Refused {
  readonly dueMs: number
  readonly puts: Put[]
}

/** Puts and bytes that may wait for another try before no new ones are taken. */
const MOST_WAITING = 10_000
/** Bytes of puts that are not in yet: those waiting, and requests in flight (later rows with keys of those, one each, come on top). */
const MOST_BYTES = 32 * 1024 * 1024
const SPARE_BYTES = 64 * 1024
/** What no wait is longer than, so that clocks are looked at. */
const LONGEST_NAP_MS = 1000

/**
 * A sliding window of BatchWriteItem requests: while one is held up, others go on. What comes back unprocessed, or with a request that failed, goes
 * into later requests after a pause that doubles, until it is in. One writer at a time; nothing counts before the server has said that it took it.
 */
export class PutWindow {
  readonly #o: PutWindowOptions
  readonly #frame: { prefix: Buffer; suffix: Buffer }
  readonly #keyWindow = new KeyWindow()
  readonly #refused: Refused[] = []
  /** Buffers of requests that are in, to be filled again: as many as were ever in flight, of SPARE_BYTES at most. */
  readonly #spare: Buffer[] = []
  #open: PutBatch
  #waiting = 0
  #waitingBytes = 0
  #inFlight = 0
  #inFlightBytes = 0
  #accepted = 0
  #lastProgressMs = performance.now()
  #failure: SluiceError | null = null
  #wake: (() => void) | null = null

  constructor(options: PutWindowOptions) {
    this.#o = options
    this.#frame = {
      prefix: Buffer.from(`{"RequestItems":{${JSON.stringify(options.table)}:[`),
      suffix: Buffer.from(options.capacity === null ? ']}}' : ']},"ReturnConsumedCapacity":"TOTAL"}'),
    }
    this.#open = new PutBatch(this.#frame)
  }

  /** The request that is being filled. */
  get open(): PutBatch {
    return this.#open
  }

  /** Puts that are in, and puts that later rows took the place of, since this was asked last. */
  takeCounts(): { readonly accepted: number; readonly superseded: number } {
    const accepted = this.#accepted
    this.#accepted = 0
    return { accepted, superseded: this.#keyWindow.takeSuperseded() }
  }

  /** A put was written into `open` from its `at` to `end`. Afterwards, where `open` is full, `makeRoom` has to be called. */
  add(key: string, end: number): void {
    const open = this.#open
    const put: Put = {
      key,
      state: 'open',
      bytes: open.bytes,
      start: open.at,
      end,
      tries: 0,
      uncertain: false,
      next: null,
      superseded: false,
    }
    const fits = open.fits(end - open.at)
    const enters = this.#mayEnter(put)
    if (fits && enters) {
      open.at = end
      open.puts.push(put)
      return
    }
    put.bytes = Buffer.from(open.bytes.subarray(open.at, end))
    put.start = 0
    put.end = end - open.at
    put.state = 'waiting'
    // What may not enter waits behind the put before it, as that one's `next`.
    if (enters || this.#o.dedupe === 'none') this.#queue([put], 0)
  }

  /** Sends the full request as soon as it may go. @throws what ended the window */
  async makeRoom(): Promise<void> {
    for (;;) {
      this.#throwIfOver()
      if (!this.#isCrowded()) {
        if (!this.#open.isFull) return
        if (this.#maySend()) {
          this.#send(this.#open)
          this.#begin()
          continue
        }
      } else if (this.#sendDue()) continue
      await this.#nap()
    }
  }

  /** Sends the rest, and waits until all is in. @throws what ended the window */
  async drain(): Promise<void> {
    for (;;) {
      this.#throwIfOver()
      if (this.#open.live === 0 && this.#waiting === 0 && this.#inFlight === 0) {
        this.#open = new PutBatch(this.#frame)
        return
      }
      if (this.#maySend()) {
        this.#fill(this.#open)
        if (this.#open.live > 0) {
          this.#send(this.#open)
          this.#open = new PutBatch(this.#frame)
          continue
        }
      }
      await this.#nap()
    }
  }

  /** Nothing more is sent; who waits gets the reason. */
  stop(reason: unknown): void {
    this.#fail(toSluiceError(reason))
  }

  #mayEnter(put: Put): boolean {
    switch (this.#o.dedupe) {
      case 'last':
        return this.#keyWindow.enter(put, this.#open)
      case 'none':
        return !this.#open.puts.some((other) => other.key === put.key)
      case 'error':
        return true
    }
  }

  /** The next request, with what is due for another try. */
  #begin(): void {
    this.#open = new PutBatch(this.#frame, this.#spare.pop())
    if (this.#refused.length > 0) this.#fill(this.#open)
  }

  /** Takes into a request what is due, in the order in which it fell due. */
  #fill(batch: PutBatch): void {
    const nowMs = performance.now()
    for (let i = 0; i < this.#refused.length && !batch.isFull; i += 1) {
      const group = this.#refused[i] as Refused
      if (group.dueMs > nowMs) continue
      const left: Put[] = []
      for (const put of group.puts) {
        if (put.superseded) this.#unqueue(put)
        else if (batch.isFull || !batch.fits(put.end - put.start) || this.#clashes(put, batch)) left.push(put)
        else {
          this.#unqueue(put)
          batch.take(put)
        }
      }
      group.puts.length = 0
      group.puts.push(...left)
    }
    for (let i = this.#refused.length - 1; i >= 0; i -= 1)
      if (this.#refused[i]?.puts.length === 0) this.#refused.splice(i, 1)
  }

  /** Keys are told apart on the way in, save where order is not kept. */
  #clashes(put: Put, batch: PutBatch): boolean {
    return this.#o.dedupe === 'none' && batch.puts.some((other) => other.key === put.key)
  }

  #unqueue(put: Put): void {
    this.#waiting -= 1
    this.#waitingBytes -= put.end - put.start
  }

  #queue(puts: Put[], delayMs: number): void {
    for (const put of puts) {
      put.state = 'waiting'
      this.#waitingBytes += put.end - put.start
    }
    this.#waiting += puts.length
    this.#refused.push({ dueMs: performance.now() + delayMs, puts })
  }

  #isCrowded(): boolean {
    return this.#waiting > MOST_WAITING || this.#waitingBytes + this.#inFlightBytes > MOST_BYTES
  }

  #maySend(): boolean {
    if (this.#inFlight >= this.#o.limit.limit) return false
    return this.#o.capacity === null || this.#o.capacity.waitMs() === 0
  }

  /** A request of nothing but what is due for another try. @returns whether one went */
  #sendDue(): boolean {
    if (!this.#maySend()) return false
    const batch = new PutBatch(this.#frame)
    this.#fill(batch)
    if (batch.live === 0) return false
    this.#send(batch)
    return true
  }

  #send(batch: PutBatch): void {
    if (batch.live === 0) return
    if (this.#inFlight === 0 && this.#waiting === 0) this.#lastProgressMs = performance.now()
    const body = batch.finish()
    const { client, signal, capacity } = this.#o
    const estimate = capacity?.take(batch.puts.length) ?? 0
    this.#inFlight += 1
    this.#inFlightBytes += body.byteLength
    const settle = (outcome: () => void): void => {
      this.#inFlight -= 1
      this.#inFlightBytes -= body.byteLength
      if (this.#failure === null) {
        try {
          outcome()
        } catch (error) {
          this.#fail(toSluiceError(error))
        }
      }
      this.#wakeUp()
    }
    client.send('BatchWriteItem', body, { signal }).then(
      (answer) => settle(() => this.#answered(batch, readAnswer(answer, this.#o), estimate)),
      (error: unknown) => settle(() => this.#broke(batch.puts, toSluiceError(error), estimate)),
    )
  }

  #answered({ puts, bytes }: PutBatch, answer: BatchAnswer, estimate: number): void {
    const { unprocessed, units } = answer
    const back = unprocessed === null ? null : matchPuts(puts, unprocessed)
    const refused: Put[] = []
    for (const put of puts) {
      if (back?.has(put) === true) {
        put.uncertain = false
        refused.push(put)
      } else this.#accept(put)
    }
    const accepted = puts.length - refused.length
    if (units !== null) this.#o.capacity?.consumed(estimate, units, accepted)
    this.#o.limit.answered(accepted, refused.length)
    if (accepted > 0) this.#lastProgressMs = performance.now()
    if (refused.length === 0) {
      if (bytes.byteLength <= SPARE_BYTES) this.#spare.push(bytes)
    } else
      this.#again(
        refused,
        new SluiceError('SLUICE_THROTTLED', `${refused.length} items came back unprocessed`, { hint: SLOW_HINT }),
      )
  }

  #accept(put: Put): void {
    this.#accepted += 1
    if (this.#o.dedupe !== 'last') return
    const next = this.#keyWindow.accepted(put)
    if (next !== null) this.#queue([next], 0)
  }

  #broke(puts: readonly Put[], error: SluiceError, estimate: number): void {
    this.#o.signal.throwIfAborted()
    if (!error.retryable) throw error
    const surelyNot = wasRefused(error)
    for (const put of puts) put.uncertain = !surelyNot
    if (surelyNot) {
      this.#o.capacity?.consumed(estimate, 0, 0)
      this.#o.limit.answered(0, puts.length)
    }
    this.#again(puts, error)
  }

  /** Tries these again after a pause, unless nothing got on for too long. */
  #again(puts: readonly Put[], error: SluiceError): void {
    const throttled = error.code === 'SLUICE_THROTTLED'
    this.#o.client.reporter.retried({ throttled })
    const tries = Math.min(...puts.map((put) => put.tries))
    const delayMs = Math.max(backoffMs(tries, false, jitter), error.retryAfterMs ?? 0)
    if (performance.now() + delayMs - this.#lastProgressMs > this.#o.retryForMs) throw error
    const again: Put[] = []
    for (const put of puts) {
      put.tries += 1
      again.push(this.#o.dedupe === 'last' ? this.#keyWindow.refused(put) : put)
    }
    this.#queue(again, delayMs)
  }

  #fail(error: SluiceError): void {
    this.#failure ??= error
    this.#wakeUp()
  }

  #throwIfOver(): void {
    this.#o.signal.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
  }

  /** Until an answer is there, something is due, or capacity is. */
  #nap(): Promise<void> {
    const nowMs = performance.now()
    let ms = LONGEST_NAP_MS
    // Where no place is free, an answer comes first.
    if (this.#inFlight < this.#o.limit.limit) {
      for (const group of this.#refused) ms = Math.min(ms, group.dueMs - nowMs)
      const forUnits = this.#o.capacity?.waitMs(nowMs) ?? 0
      if (forUnits > 0) ms = Math.max(Math.min(ms, LONGEST_NAP_MS), forUnits)
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wakeUp(), Math.max(1, Math.min(ms, LONGEST_NAP_MS)))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #wakeUp(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}

const SLOW_HINT = "raise the table's capacity, or set --write-units, then resume"

/** Half the pause at least: what was refused at once is not sent at once. */
function jitter(): number {
  return 0.5 + Math.random() / 2
}

/** The puts that came back. @throws SLUICE_PROTOCOL where one came back that was not sent */
function matchPuts(puts: readonly Put[], keys: readonly string[]): Set<Put> {
  const byKey = new Map(puts.map((put) => [put.key, put]))
  const back = new Set<Put>()
  for (const key of keys) {
    const put = byKey.get(key)
    if (put === undefined)
      throw new SluiceError('SLUICE_PROTOCOL', 'an item came back unprocessed that was not in the request')
    back.add(put)
  }
  return back
}
