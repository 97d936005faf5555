import { SluiceError, toSluiceError } from '../../../core/errors.ts'
import { backoffMs } from '../../../core/retry.ts'
import { WakeUps } from '../../../core/wake-ups.ts'
import { matchPuts, readAnswer, type BatchAnswer } from './batch-answer.ts'
import type { CapacityBudget } from './capacity.ts'
import type { DynamoClient } from '../client.ts'
import { wasRefused } from '../errors.ts'
import type { InFlightLimit } from './in-flight.ts'
import { KeyWindow, type Dedupe } from './key-window.ts'
import { Progress } from './monotonic.ts'
import { PutTrace } from './put-trace.ts'
import { aboutItem, isAboutItems } from './refused-item.ts'
import { RefusedPuts } from './refused-puts.ts'
import { PutBatch, unitsOf, type ExtentPuts, type Put } from './put-batch.ts'
import type { KeyAttribute } from '../table-info.ts'

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
  /** What several windows share where several threads put; default: its own. */
  readonly progress?: Progress | undefined
  readonly trace?: PutTrace | undefined
  /** How many windows share the bounds of memory; default: 1. */
  readonly sharers?: number | undefined
}

/** Puts and bytes that may wait for another try before no new ones are taken. */
const MOST_WAITING = 10_000
/** Bytes of puts that are not in yet: those waiting, and requests in flight (later rows with keys of those, one each, come on top). */
const MOST_BYTES = 32 * 1024 * 1024
const SPARE_BYTES = 64 * 1024
/** What no wait is longer than, so that clocks are looked at. */
const LONGEST_NAP_MS = 1000
/** Who waits for the puts of an extent sends what is there, full or not, when nothing was sent for so long. */
const QUIET_MS = 50
/** Longest pause before the next try of what was refused, while the table takes other puts. */
const LONGEST_PARTIAL_DELAY_MS = 1000

/**
 * A sliding window of BatchWriteItem requests: while one is held up, others go on. What comes back unprocessed, or with a request that failed, goes
 * into later requests after a pause that doubles, until it is in. One writer at a time, between `begin` and `written`, while others wait until the puts of
 * their extents are in; nothing counts before the server has said that it took it.
 */
export class PutWindow {
  readonly #o: PutWindowOptions
  readonly #frame: { prefix: Buffer; suffix: Buffer }
  readonly #keyWindow = new KeyWindow()
  readonly #refused: RefusedPuts
  /** Buffers of requests that are in, to be filled again: as many as were ever in flight, of SPARE_BYTES at most. */
  readonly #spare: Buffer[] = []
  #open: PutBatch
  #inFlight = 0
  #inFlightBytes = 0
  #writing = false
  readonly #progress: Progress
  readonly #trace: PutTrace
  readonly #mostWaiting: number
  readonly #mostBytes: number
  #lastSentMs = performance.now()
  #failure: SluiceError | null = null
  /** Of the writer, and of those who wait for their extents: as many as the sink has lanes. */
  readonly #changes = new WakeUps()

  constructor(options: PutWindowOptions) {
    this.#o = options
    const { progress, trace, sharers = 1 } = options
    this.#progress = progress ?? new Progress()
    this.#trace = trace ?? new PutTrace()
    this.#mostWaiting = MOST_WAITING / sharers
    this.#mostBytes = MOST_BYTES / sharers
    this.#frame = {
      prefix: Buffer.from(`{"RequestItems":{${JSON.stringify(options.table)}:[`),
      suffix: Buffer.from(options.capacity === null ? ']}}' : ']},"ReturnConsumedCapacity":"TOTAL"}'),
    }
    this.#open = new PutBatch(this.#frame)
    this.#refused = new RefusedPuts({ keepsOrder: options.dedupe !== 'none' })
  }

  /** Whether the table may have got an item. */
  get mayHavePut(): boolean {
    return this.#trace.mayHavePut
  }

  /** The request that is being filled. */
  get open(): PutBatch {
    return this.#open
  }

  /** Rows of an extent follow. */
  begin(): void {
    this.#writing = true
  }

  /** No row follows until the next `begin`: what is there is sent as it is. */
  written(): void {
    this.#writing = false
    this.#changes.wake()
  }

  /** A put was written into `open` from its `at` to `end`. Afterwards, where `open` is full, `makeRoom` has to be called. */
  add(key: string, end: number, extent: ExtentPuts): void {
    const open = this.#open
    const put: Put = {
      key,
      extent,
      state: 'open',
      bytes: open.bytes,
      start: open.at,
      end,
      tries: 0,
      uncertain: false,
      next: null,
      superseded: false,
    }
    extent.pending += 1
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
    if (enters || this.#o.dedupe === 'none') this.#refused.add([put], 0)
  }

  /** Sends the full request as soon as it may go. @throws what ended the window */
  async makeRoom(): Promise<void> {
    for (;;) {
      this.#throwIfOver()
      if (!this.#isCrowded()) {
        if (!this.#open.isFull) return
        if (this.#maySend()) {
          void this.#send(this.#open)
          this.#begin()
          continue
        }
      } else if (this.#sendDue()) continue
      await this.#nap()
    }
  }

  /** Waits until all puts of an extent are in, or later rows took their places; sends what nobody else does. @throws what ended the window */
  async settled(extent: ExtentPuts): Promise<void> {
    for (;;) {
      this.#throwIfOver()
      if (extent.pending === 0) return
      if (this.#maySend() && this.#isQuiet()) {
        this.#refused.fill(this.#open)
        if (this.#open.live > 0) {
          void this.#send(this.#open)
          // Empty: who writes the next extent counts on room in it.
          this.#open = this.#fresh()
          continue
        }
      }
      await this.#nap(this.#writing ? QUIET_MS : LONGEST_NAP_MS)
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

  /** Whether nobody writes, or who writes waits for its source: full requests are sent by the writer. */
  #isQuiet(): boolean {
    return !this.#writing || performance.now() - this.#lastSentMs > QUIET_MS
  }

  #fresh(): PutBatch {
    return new PutBatch(this.#frame, this.#spare.pop())
  }

  /** The next request, with what is due for another try. */
  #begin(): void {
    this.#open = this.#fresh()
    if (this.#refused.count > 0) this.#refused.fill(this.#open)
  }

  #isCrowded(): boolean {
    const { count, bytes } = this.#refused
    return count > this.#mostWaiting || bytes + this.#inFlightBytes > this.#mostBytes
  }

  #maySend(): boolean {
    if (this.#inFlight >= this.#o.limit.limit) return false
    return this.#o.capacity === null || this.#o.capacity.waitMs() === 0
  }

  /** A request of nothing but what is due for another try. @returns whether one went */
  #sendDue(): boolean {
    if (!this.#maySend()) return false
    const batch = new PutBatch(this.#frame)
    this.#refused.fill(batch)
    if (batch.live === 0) return false
    void this.#send(batch)
    return true
  }

  /** @returns when what its answer says was done; never rejects */
  #send(batch: PutBatch): Promise<void> {
    if (batch.live === 0) return Promise.resolve()
    if (this.#inFlight === 0 && this.#refused.count === 0) this.#progress.note()
    this.#lastSentMs = performance.now()
    const body = batch.finish()
    const { client, signal, capacity } = this.#o
    const estimate = capacity?.take(batch.puts.length) ?? 0
    this.#inFlight += 1
    this.#inFlightBytes += body.byteLength
    this.#trace.sent()
    const settle = (nothing: boolean, outcome: () => void): void => {
      this.#trace.settled({ nothing })
      this.#inFlight -= 1
      this.#inFlightBytes -= body.byteLength
      if (this.#failure === null) {
        try {
          outcome()
        } catch (error) {
          this.#fail(toSluiceError(error))
        }
      }
      this.#changes.wake()
    }
    return client.send('BatchWriteItem', body, { signal }).then(
      // Of an answer nothing is said that it was whole; one that took nothing at all is rare.
      (answer) => settle(false, () => this.#answered(batch, readAnswer(answer, this.#o), estimate)),
      (thrown: unknown) => {
        const error = toSluiceError(thrown)
        settle(wasRefused(error), () => this.#broke(batch.puts, error, estimate))
      },
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
    this.#o.capacity?.consumed(estimate, units ?? unitsOf(puts.filter((put) => !refused.includes(put))), accepted)
    this.#o.limit.answered(accepted, refused.length)
    if (accepted > 0) this.#progress.note()
    if (refused.length === 0) {
      if (bytes.byteLength <= SPARE_BYTES) this.#spare.push(bytes)
    } else
      this.#again(
        refused,
        new SluiceError('SLUICE_THROTTLED', `${refused.length} items came back unprocessed`, { hint: SLOW_HINT }),
      )
  }

  #accept(put: Put): void {
    put.extent.pending -= 1
    put.extent.accepted += 1
    if (this.#o.dedupe !== 'last') return
    const next = this.#keyWindow.accepted(put)
    if (next !== null) this.#refused.add([next], 0)
  }

  #broke(puts: readonly Put[], error: SluiceError, estimate: number): void {
    this.#o.signal.throwIfAborted()
    const [first] = puts
    if (isAboutItems(error) && first !== undefined) {
      if (puts.length === 1) throw aboutItem(error, first, this.#o.keys)
      this.#o.capacity?.consumed(estimate, 0, 0)
      void this.#oneByOne([...puts])
      return
    }
    if (!error.retryable) throw error
    const surelyNot = wasRefused(error)
    for (const put of puts) put.uncertain = !surelyNot
    if (surelyNot) {
      this.#o.capacity?.consumed(estimate, 0, 0)
      this.#o.limit.answered(0, puts.length)
    }
    this.#again(puts, error)
  }

  /** Sends each by itself, in their order: the others are taken, and the one that is refused is known then. */
  async #oneByOne(puts: readonly Put[]): Promise<void> {
    for (const put of puts) {
      if (this.#failure !== null) return
      const alone = new PutBatch(this.#frame)
      alone.take(put)
      await this.#send(alone)
    }
  }

  /** Tries these again after a pause, unless nothing got on for too long. */
  #again(puts: readonly Put[], error: SluiceError): void {
    const throttled = error.code === 'SLUICE_THROTTLED'
    this.#o.client.reporter.retried({ throttled })
    const tries = Math.min(...puts.map((put) => put.tries))
    const isTaking = this.#progress.sinceMs() < LONGEST_PARTIAL_DELAY_MS
    const pauseMs = Math.min(backoffMs(tries, false, jitter), isTaking ? LONGEST_PARTIAL_DELAY_MS : Infinity)
    const delayMs = Math.max(pauseMs, error.retryAfterMs ?? 0)
    if (this.#progress.sinceMs() + delayMs > this.#o.retryForMs) throw error
    const again: Put[] = []
    for (const put of puts) {
      put.tries += 1
      again.push(this.#o.dedupe === 'last' ? this.#keyWindow.refused(put) : put)
    }
    this.#refused.add(again, delayMs)
  }

  #fail(error: SluiceError): void {
    this.#failure ??= error
    this.#changes.wake()
  }

  #throwIfOver(): void {
    this.#o.signal.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
  }

  /** Until an answer is there, something is due, or capacity is. */
  #nap(longestMs = LONGEST_NAP_MS): Promise<void> {
    let ms = longestMs
    // Where no place is free, an answer comes first.
    if (this.#inFlight < this.#o.limit.limit) {
      ms = Math.min(ms, this.#refused.dueInMs())
      const forUnits = this.#o.capacity?.waitMs() ?? 0
      if (forUnits > 0) ms = Math.max(ms, forUnits)
    }
    return this.#changes.next(Math.max(1, Math.min(ms, LONGEST_NAP_MS)))
  }
}

const SLOW_HINT = "raise the table's capacity, or set --write-units, then resume"

/** Half the pause at least: what was refused at once is not sent at once. */
function jitter(): number {
  return 0.5 + Math.random() / 2
}
