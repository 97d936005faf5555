import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import { toSluiceError, type SluiceError } from '../../../core/errors.ts'
import type { ExtentWriter, PutWay } from './put-way.ts'

/** A way by threads, once they have begun. */
export interface ThreadsWay extends PutWay {
  /** Rejects with what keeps them from it. */
  readonly ready: Promise<void>
  readonly isReady: boolean
  close(): Promise<void>
}

export interface PutWaysOptions {
  readonly own: PutWay
  readonly startThreads: () => ThreadsWay
  /** `never`: `--workers 0`; `always`: from the first row on; `busy`: once this thread has no time left. */
  readonly threads: 'never' | 'always' | 'busy'
  /** Told once where threads that nobody asked for can't begin: then this thread writes alone. */
  readonly onNoThreads: (error: SluiceError) => void
}

/** Extents that this thread writes before it looks whether it is too busy: 2 MiB each, some 0.2 s, as long as it takes to start a thread. */
const FIRST_EXTENTS = 6
/** Share of its time above which this thread is what holds up the load, and not the table. */
const BUSY = 0.9

/**
 * Which way extents go: this thread's own, or threads. It changes once at most, between two extents, when all puts of the first way are in: else a later
 * row might overtake an earlier one of its key.
 */
export class PutWays {
  readonly #o: PutWaysOptions
  #threads: ThreadsWay | null = null
  #triesThreads: boolean
  #stopped = false
  #began = 0
  /** Extents of the own way that are not in yet. */
  readonly #unsettled = new Set<Promise<unknown>>()
  #since: EventLoopUtilization

  constructor(options: PutWaysOptions) {
    this.#o = options
    this.#since = performance.eventLoopUtilization()
    this.#triesThreads = options.threads === 'busy'
    if (options.threads === 'always') this.#threads = options.startThreads()
  }

  /** Whether the table may have got an item by now. */
  get mayHavePut(): boolean {
    return this.#o.own.mayHavePut || this.#threads?.mayHavePut === true
  }

  /** Begins an extent; one at a time is written. @throws what keeps threads from their work */
  async begin(): Promise<ExtentWriter> {
    this.#began += 1
    if (this.#o.threads === 'always') await this.#threads?.ready
    else if (this.#triesThreads && this.#isBusy()) this.#tryThreads()
    const threads = this.#threads
    if (threads?.isReady !== true) return this.#beginOwn()
    await Promise.all(this.#unsettled)
    return threads.begin()
  }

  stop(reason: unknown): void {
    this.#stopped = true
    this.#o.own.stop(reason)
    this.#threads?.stop(reason)
  }

  async close(): Promise<void> {
    this.#stopped = true
    await this.#threads?.close()
  }

  #tryThreads(): void {
    this.#triesThreads = false
    const failed = (thrown: unknown): void => {
      const error = toSluiceError(thrown)
      if (!this.#stopped && error.code === 'SLUICE_THREADS') this.#o.onNoThreads(error)
    }
    try {
      this.#threads = this.#o.startThreads()
      this.#threads.ready.catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  #beginOwn(): ExtentWriter {
    const writer = this.#o.own.begin()
    return {
      write: (batch) => writer.write(batch),
      written: () => writer.written(),
      settled: () => {
        const settled = writer.settled()
        const over = settled.finally(() => this.#unsettled.delete(over))
        // Whoever waits for it is told.
        over.catch(() => undefined)
        this.#unsettled.add(over)
        return settled
      },
    }
  }

  #isBusy(): boolean {
    if (this.#began % FIRST_EXTENTS !== 0) return false
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, this.#since)
    this.#since = now
    return utilization > BUSY
  }
}
