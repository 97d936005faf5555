import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { byteSize } from '../core/batch.ts'
import type { BatchForm } from '../core/batch.ts'
import { SluiceError, toSluiceError } from '../core/errors.ts'
import { START } from '../core/job.ts'
import type { Output, Partition, Receipt } from '../core/job.ts'
import { AdaptiveLimiter } from '../core/limiter.ts'
import type { Lane, Sink, Source } from '../core/ports.ts'
import { backoffMs } from '../core/retry.ts'
import { Deal } from './deal.ts'
import type { Gap } from './deal.ts'
import { ExtentBuilder } from './extent-builder.ts'
import type { LoadedExtent } from './extent-builder.ts'
import { applyMapping } from './mapping.ts'
import type { Mapping } from './mapping.ts'
import type { Progressor } from './progress.ts'

/** Lanes to begin with, and at most, where the number is left to us. */
const FIRST_LANES = 2
const MOST_LANES = 16
/** Partitions read at once: small objects want many, and each holds what it has fetched ahead. */
const MOST_READERS = 8
/** How often a sink may lose at its end what it had sealed, and have it dealt again, before that is no accident any more. */
const MOST_PASSES = 10
/** Extents that wait between readers and lanes. */
const QUEUED_EXTENTS = 1
/** Lanes that have extents as large as the sink likes them; bytes of an extent at least, however many there are. */
const WHOLE_EXTENTS = 4
const LEAST_EXTENT_BYTES = 256 * 1024

export interface JobWork {
  readonly source: Source
  readonly sink: Sink
  readonly partitions: readonly Partition[]
  readonly mapping: Mapping
  readonly form: BatchForm
  readonly lanes: number | 'auto'
  readonly retryForMs: number
  /** Memory for extents in all; null: the sink's own extent size decides. */
  readonly maxMemoryBytes: number | null
  /** Bytes that the store announced for all partitions; null where one is unknown. */
  readonly bytesTotal: number | null
  readonly progressor: Progressor
  readonly signal: AbortSignal
}

export interface Moved {
  readonly rowsRead: number
  readonly rowsWritten: number
  readonly filtered: number
  readonly superseded: number
  readonly bytesWritten: number
}

export interface JobOutcome extends Moved {
  readonly outputs: readonly Output[]
  /** Whether rows were handed to the sink, though nothing of them may count by now. */
  readonly began?: boolean
  /** What ended the job before its time; null where all is done. */
  readonly error: SluiceError | null
}

/** Bytes that will have been read: those of the partitions, or as many as came for each of those that are done. */
function estimatedTotal({ source, bytesTotal }: JobWork): number | null {
  const done = source.bytesDone?.() ?? 0
  if (bytesTotal === null || done <= 0) return bytesTotal
  return Math.round(source.bytesRead() * Math.max(1, bytesTotal / done))
}

/**
 * The one loop that every route runs: readers cut extents, free lanes take them, the sink finishes. The sink must be prepared.
 * A broken lane's work is dealt again for as long as there is progress every `retryForMs`. Never rejects: what went wrong is in the outcome,
 * after the sink was asked to abort.
 */
export async function runJob(work: JobWork): Promise<JobOutcome> {
  let deal = new Deal([], [], QUEUED_EXTENTS)
  try {
    const recovered = (await work.sink.recover?.({ signal: work.signal })) ?? []
    deal = new Deal(work.partitions, recovered, QUEUED_EXTENTS)
    work.progressor.start(() => ({
      ...countMoved(deal.receipts()),
      bytesRead: work.source.bytesRead(),
      bytesTotal: estimatedTotal(work),
      inFlight: deal.writing,
    }))
    const outputs = await moveAll(work, deal)
    const moved = countMoved(deal.receipts())
    if (work.form !== 'bytes' && moved.rowsRead !== moved.rowsWritten + moved.filtered + moved.superseded)
      throw unbalanced(moved)
    return { ...moved, outputs, error: null }
  } catch (thrown) {
    work.progressor.phase('stopping')
    const error = toSluiceError(work.signal.aborted ? work.signal.reason : thrown)
    const resumable = work.source.replayable && error.exitClass(true) === 'resumable'
    await work.sink.abort(error, { resumable, began: deal.began })
    // What is not durable by itself went with the lanes.
    const { rowsWritten } = countMoved(deal.receipts().filter((receipt) => receipt.durable))
    return { ...countMoved(deal.receipts()), rowsWritten, outputs: [], error, began: deal.began }
  } finally {
    work.progressor.stop()
  }
}

async function moveAll(work: JobWork, deal: Deal): Promise<readonly Output[]> {
  for (const partition of deal.complete())
    await work.sink.endPartition?.(partition, deal.receiptsOf(partition.id), { signal: work.signal })
  for (let pass = 1; ; pass += 1) {
    await new Run(work, deal).toEnd()
    work.progressor.phase('finishing')
    const { outputs, lost } = await work.sink.finish(deal.receipts(), { signal: work.signal })
    if (lost.length === 0) return outputs
    if (!work.source.replayable) throw notReplayable()
    if (pass === MOST_PASSES)
      throw new SluiceError('SLUICE_SERVER_GONE', `the sink lost what was written ${MOST_PASSES} times`)
    deal.voided(lost)
    work.progressor.phase('copying')
  }
}

/** One pass of readers and lanes over what is outstanding. */
class Run {
  readonly #work: JobWork
  readonly #deal: Deal
  readonly #stop = new AbortController()
  readonly #signal: AbortSignal
  readonly #limiter: AdaptiveLimiter
  readonly #lanes: number
  /** Whether the number of lanes is left to us. */
  readonly #adapts: boolean
  readonly #extentBytes: number
  #lastProgressMs = performance.now()

  constructor(work: JobWork, deal: Deal) {
    this.#work = work
    this.#deal = deal
    this.#signal = AbortSignal.any([work.signal, this.#stop.signal])
    this.#lanes = laneCount(work.sink, work.lanes)
    // Lanes that write by turns bring no more by being more, and no throttle makes them fewer.
    this.#adapts = work.lanes === 'auto' && !work.sink.lanes.ordered
    const first = this.#adapts ? Math.min(work.sink.lanes.first ?? FIRST_LANES, this.#lanes) : this.#lanes
    this.#limiter = new AdaptiveLimiter({ initial: first, min: this.#adapts ? 1 : first, max: this.#lanes })
    this.#extentBytes = extentBytes(work, this.#lanes)
  }

  async toEnd(): Promise<void> {
    const wake = (): void => this.#deal.wakeAll()
    this.#signal.addEventListener('abort', wake)
    this.#work.progressor.onThrottled(() => this.#limiter.throttled())
    try {
      const tasks = [
        ...Array.from({ length: this.#readerCount() }, () => this.#read()),
        ...Array.from({ length: this.#lanes }, (_, index) => this.#runLane(index)),
      ]
      await Promise.all(tasks.map((task) => task.catch((error: unknown) => this.#stop.abort(error))))
    } finally {
      this.#signal.removeEventListener('abort', wake)
    }
    this.#signal.throwIfAborted()
  }

  #readerCount(): number {
    const { sink, source, lanes, partitions } = this.#work
    if (sink.lanes.ordered || sink.lanes.alternating === true) return 1
    const wanted =
      lanes === 'auto' ? (source.readers ?? this.#lanes) : source.readers === undefined ? this.#lanes : lanes
    return Math.min(wanted, MOST_READERS, Math.max(1, partitions.length))
  }

  async #read(): Promise<void> {
    for (;;) {
      const gap = await this.#deal.takeGap(this.#signal)
      if (gap === null) return
      await this.#readGap(gap)
      if (this.#deal.gapRead(gap)) await this.#endPartition(gap.partition)
    }
  }

  async #endPartition(partition: Partition): Promise<void> {
    await this.#work.sink.endPartition?.(partition, this.#deal.receiptsOf(partition.id), { signal: this.#signal })
  }

  async #readGap(gap: Gap): Promise<void> {
    const { source, mapping, form, sink } = this.#work
    const builder = new ExtentBuilder(
      gap.partition,
      { targetBytes: () => this.#targetBytes(), exact: sink.extentBytes.exact, rows: sink.extentBytes.rows },
      { nextSequence: () => this.#deal.nextSequence(gap.partition.id), start: gap.from ?? START },
    )
    const options = { form, from: gap.from, until: gap.until, signal: this.#signal }
    for await (const batch of source.read(gap.partition, options))
      for (const extent of builder.add(applyMapping(mapping, batch, gap.partition.url))) await this.#offer(extent)
    for (const extent of builder.finish(gap.last)) await this.#offer(extent)
  }

  /** More lanes than usual, where their number is left to us, have smaller extents, so that all together hold no more. */
  #targetBytes(): number {
    if (!this.#adapts || this.#work.sink.extentBytes.exact) return this.#extentBytes
    const share = Math.max(LEAST_EXTENT_BYTES, Math.floor((this.#extentBytes * WHOLE_EXTENTS) / this.#limiter.limit))
    return Math.min(this.#extentBytes, share)
  }

  async #offer(extent: LoadedExtent): Promise<void> {
    await this.#deal.offer(extent, this.#signal)
    if (this.#work.sink.lanes.alternating === true) await this.#deal.idle(this.#signal)
  }

  /** A lane is opened when its first extent is there (before, where extents have an order: so they begin in it), and opened anew after it broke. */
  async #runLane(index: number): Promise<void> {
    let lane: Lane | null = null
    let sealed: Receipt[] = []
    // In a row, of this lane: lanes that break together do not make each other wait longer.
    let failures = 0
    try {
      if (this.#work.sink.lanes.ordered) lane = await this.#work.sink.openLane({ signal: this.#signal })
      for (;;) {
        const loaded = await this.#deal.take(this.#signal, () => index < this.#limiter.limit)
        if (loaded === null) break
        try {
          lane ??= await this.#work.sink.openLane({ signal: this.#signal })
          const receipt = await this.#writeOrTell(lane, loaded)
          failures = 0
          if (!receipt.durable) sealed.push(receipt)
        } catch (thrown) {
          await lane?.abort(thrown)
          lane = null
          await this.#dealAgain(loaded, { sealed, thrown, failures })
          failures += 1
          sealed = []
        }
      }
      await lane?.close()
    } catch (thrown) {
      await lane?.abort(thrown)
      throw thrown
    }
  }

  async #writeOrTell(lane: Lane, loaded: LoadedExtent): Promise<Receipt> {
    try {
      return await this.#write(lane, loaded)
    } catch (error) {
      const url = this.#deal.partition(loaded.extent.partition)?.url
      throw error instanceof SluiceError && error.where.row !== undefined ? error.at({ url }) : error
    }
  }

  async #write(lane: Lane, loaded: LoadedExtent): Promise<Receipt> {
    const beganMs = performance.now()
    await lane.begin(loaded.extent)
    for (const batch of loaded.batches) {
      await lane.write(batch)
      this.#signal.throwIfAborted()
    }
    const receipt = await lane.seal(loaded.extent)
    this.#lastProgressMs = performance.now()
    this.#limiter.completed(
      loaded.batches.reduce((sum, batch) => sum + byteSize(batch), 0),
      performance.now() - beganMs,
    )
    const complete = this.#deal.sealed(receipt)
    const partition = this.#deal.partition(receipt.extent.partition)
    if (complete && partition !== undefined) await this.#endPartition(partition)
    return receipt
  }

  /** @throws the error, where it can't be helped by trying again */
  async #dealAgain(
    loaded: LoadedExtent,
    { sealed, thrown, failures }: { sealed: readonly Receipt[]; thrown: unknown; failures: number },
  ): Promise<void> {
    const error = toSluiceError(thrown)
    const { sink, source, retryForMs, progressor } = this.#work
    const isSealed = this.#deal.receiptsOf(loaded.extent.partition).some((receipt) => receipt.extent === loaded.extent)
    if (
      this.#signal.aborted ||
      !error.retryable ||
      sink.lanes.ordered ||
      sink.lanes.final === true ||
      isSealed ||
      (sealed.length > 0 && !source.replayable)
    )
      throw error
    const waitMs = Math.max(backoffMs(failures, error.code === 'SLUICE_THROTTLED'), error.retryAfterMs ?? 0)
    if (performance.now() + waitMs - this.#lastProgressMs > retryForMs) throw error
    progressor.waiting(error, waitMs)
    this.#deal.voided(sealed.map((receipt) => receipt.extent))
    this.#deal.putBack(loaded)
    await delay(waitMs, undefined, { signal: this.#signal })
  }
}

function laneCount(sink: Sink, wanted: number | 'auto'): number {
  if (sink.lanes.ordered) return sink.lanes.max
  return Math.max(1, Math.min(sink.lanes.max, wanted === 'auto' ? MOST_LANES : wanted))
}

/** As the sink likes it, but within `--max-memory`: each reader and lane holds an extent, the queue one more. */
function extentBytes(work: JobWork, lanes: number): number {
  const { target, exact } = work.sink.extentBytes
  if (exact || work.maxMemoryBytes === null) return target
  const held = Math.min(lanes, MOST_READERS, work.partitions.length) + lanes + QUEUED_EXTENTS + 1
  return Math.max(LEAST_EXTENT_BYTES, Math.min(target, Math.floor(work.maxMemoryBytes / 2 / held)))
}

export function countMoved(receipts: readonly Receipt[]): Moved {
  let [rowsRead, rowsWritten, filtered, superseded, bytesWritten] = [0, 0, 0, 0, 0]
  for (const receipt of receipts) {
    rowsRead += receipt.extent.rows + receipt.extent.filtered
    filtered += receipt.extent.filtered
    rowsWritten += receipt.rowsWritten
    superseded += receipt.superseded ?? 0
    bytesWritten += receipt.bytesWritten
  }
  return { rowsRead, rowsWritten, filtered, superseded, bytesWritten }
}

function unbalanced(moved: Moved): SluiceError {
  return new SluiceError(
    'SLUICE_COUNTS',
    `${moved.rowsRead} rows were read, but ${moved.rowsWritten} written and ${moved.filtered + moved.superseded} skipped`,
  )
}

function notReplayable(): SluiceError {
  return new SluiceError('SLUICE_NOT_REPLAYABLE', 'rows were lost on the way, and the source can be read only once')
}
