import { Worker } from 'node:worker_threads'
import type { CredentialSource } from '../../../aws/credentials.ts'
import type { CsvBatch, RowsBatch } from '../../../core/batch.ts'
import { SluiceError, toSluiceError } from '../../../core/errors.ts'
import type { Reporter } from '../../../core/ports.ts'
import { siblingModule } from '../../../core/sibling-module.ts'
import { WakeUps } from '../../../core/wake-ups.ts'
import { locateRecord } from '../../../formats/csv/locate.ts'
import { recordCursor } from '../../../formats/csv/record-cursor.ts'
import { ByColumns } from '../item/by-columns.ts'
import { divideRows } from './divide-rows.ts'
import { ItemPack } from './item-pack.ts'
import { KeyDivision } from './key-division.ts'
import { PutTrace } from './put-trace.ts'
import { lowerLastBlock } from './put-message.ts'
import type {
  FromPutThread,
  PutCounts,
  PutThreadData,
  SharedCells,
  StaleCredentials,
  ToPutThread,
} from './put-message.ts'
import type { ExtentWriter } from './put-way.ts'
import type { ThreadsWay } from './put-ways.ts'
import { fromThreadError, toThreadError, type ThreadError } from './thread-error.ts'
import type { KeyAttribute } from '../table-info.ts'
import type { Attribute } from '../item/type-map.ts'
import { RowItemEncoder, type Emptiness } from '../item/wire-rows.ts'

export interface PutCrewOptions {
  /** One a thread. */
  readonly threads: readonly PutThreadData[]
  readonly credentials: CredentialSource
  readonly reporter: Reporter
  readonly signal: AbortSignal
  /** What the columns of a batch become. @throws SLUICE_USAGE, SLUICE_COLUMN_MISSING */
  readonly attributesFor: (columns: readonly string[]) => readonly Attribute[]
}

/** Blocks of CSV, of 256 KiB each (formats/csv/blocks.ts) unless a row is longer, that are in the hands of threads at most: none waits for the next one. */
const MOST_BLOCKS = 4

/** A block's memory, used again when all threads are done with it. */
interface Slot {
  bytes: Uint8Array
  block: number
  batch: CsvBatch | RowsBatch | null
  /** Threads that have rows of it in hand. */
  pending: number
}

interface BadRow {
  readonly block: number
  /** Of CSV where it begins; else its index. */
  readonly row: number
  readonly batch: CsvBatch | RowsBatch
  readonly error: ThreadError
}

interface ExtentState {
  /** Threads that have puts of it under way. */
  left: number
  counts: PutCounts
}

interface Columns {
  readonly id: number
  /** Of the keys, the partition key's first. */
  readonly keys: readonly number[]
}

/**
 * Threads that put items, each the rows whose keys are its own, so that the order of the rows of a key is that of the input. This one finds where rows
 * begin and whose they are; the threads do the rest. One extent is written at a time, while others wait until theirs are in.
 */
export class PutCrew implements ThreadsWay {
  /** All threads have begun. @throws what kept them from it */
  readonly ready: Promise<void>
  readonly #o: PutCrewOptions
  readonly #workers: readonly Worker[]
  readonly #slots: Slot[] = []
  readonly #extents = new Map<number, ExtentState>()
  readonly #columns = new ByColumns<Columns>()
  #columnSets = 0
  readonly #shared: SharedCells
  readonly #trace: PutTrace
  readonly #keys: readonly KeyAttribute[]
  readonly #emptiness: Emptiness & { readonly sorted: boolean }
  readonly #division: KeyDivision
  readonly #rowEncoders = new ByColumns<RowItemEncoder>()
  readonly #changes = new WakeUps()
  readonly #onAbort: () => void
  #begun = 0
  #blocks = 0
  #extent = -1
  #bad: BadRow | null = null
  #failure: SluiceError | null = null
  #ended: Promise<unknown> | null = null

  constructor(options: PutCrewOptions) {
    this.#o = options
    const [first] = options.threads
    if (first === undefined) throw new SluiceError('SLUICE_INTERNAL', 'a crew of no threads')
    this.#shared = first.shared
    this.#trace = new PutTrace(first.shared.trace)
    this.#emptiness = { nulls: first.nulls, sorted: first.keys.length > 1 }
    this.#keys = first.keys
    this.#division = new KeyDivision(first.keys, options.threads.length)
    this.#workers = startThreads(options.threads)
    for (const worker of this.#workers) this.#listen(worker)
    this.#onAbort = () => this.stop(options.signal.reason)
    options.signal.addEventListener('abort', this.#onAbort, { once: true })
    this.ready = this.#until(() => this.#begun === this.#workers.length)
    // Who does not wait for it is told by what comes next.
    this.ready.catch(() => undefined)
  }

  get isReady(): boolean {
    return this.#begun === this.#workers.length
  }

  get mayHavePut(): boolean {
    return this.#trace.mayHavePut
  }

  begin(): ExtentWriter {
    this.#extent += 1
    const extent = this.#extent
    const state = { left: this.#workers.length, counts: { accepted: 0, superseded: 0, bytes: 0 } }
    this.#extents.set(extent, state)
    this.#tellAll({ kind: 'begin' })
    return {
      write: (batch) => this.#write(batch),
      written: () => this.#tellAll({ kind: 'written', extent }),
      settled: async () => {
        await this.#until(() => state.left === 0 && this.#bad === null)
        this.#extents.delete(extent)
        return state.counts
      },
    }
  }

  /** Hands a block's rows to the threads. */
  async #write(batch: CsvBatch | RowsBatch): Promise<void> {
    const slot = await this.#freeSlot()
    slot.batch = batch
    slot.block = this.#blocks
    this.#blocks += 1
    if (batch.form === 'csv') this.#writeCsv(batch, slot)
    else this.#writeRows(batch, slot)
  }

  #writeCsv(batch: CsvBatch, slot: Slot): void {
    const { id, keys } = this.#columnsOf(batch)
    if (slot.bytes.byteLength < batch.bytes.byteLength)
      slot.bytes = new Uint8Array(new SharedArrayBuffer(batch.bytes.byteLength))
    slot.bytes.set(batch.bytes)
    const { csv } = batch
    const bytes = slot.bytes.subarray(0, batch.bytes.byteLength)
    for (const [i, starts] of divideRows(batch, {
      division: this.#division,
      keys,
      threads: this.#workers.length,
    }).entries()) {
      if (starts.length === 0) continue
      slot.pending += 1
      const rows = { kind: 'csv', block: slot.block, columns: id, csv, bytes, starts } as const
      this.#workers[i]?.postMessage(rows, [starts.buffer])
    }
  }

  /** Parsed rows become items here; a bad one among them counts like those that threads find. */
  #writeRows(batch: RowsBatch, slot: Slot): void {
    const encoder = this.#rowEncoders.get(
      batch.columns,
      () => new RowItemEncoder(this.#o.attributesFor(batch.columns), this.#emptiness),
    )
    const packs = this.#workers.map(() => new ItemPack())
    for (let row = 0; row < batch.rows.length; row += 1)
      try {
        const { text, key } = encoder.encode(batch.rows[row] ?? [])
        packs[this.#division.ofKey(key)]?.add(text, key, row)
      } catch (error) {
        if (!(error instanceof SluiceError)) throw error
        lowerLastBlock(this.#shared, slot.block)
        this.#noteBad({ block: slot.block, row, error: toThreadError(error) })
        break
      }
    for (const [i, pack] of packs.entries()) {
      if (pack.isEmpty) continue
      slot.pending += 1
      const message = pack.message(slot.block)
      this.#workers[i]?.postMessage(message, [message.bytes.buffer])
    }
    this.#tellBad()
  }

  /** Ends the threads; who waits gets the reason. */
  stop(reason: unknown): void {
    this.#fail(toSluiceError(reason))
  }

  /** Ends the threads, their connections and timers, if nothing has. */
  async close(): Promise<void> {
    this.stop(new SluiceError('SLUICE_INTERNAL', 'the threads were ended'))
    await this.#ended
  }

  async #freeSlot(): Promise<Slot> {
    // After a bad row nothing more is handed out.
    await this.#until(() => this.#bad === null && (this.#slots.length < MOST_BLOCKS || this.#idleSlot() !== null))
    const idle = this.#idleSlot()
    if (idle !== null) return idle
    const slot: Slot = { bytes: new Uint8Array(0), block: -1, batch: null, pending: 0 }
    this.#slots.push(slot)
    return slot
  }

  #idleSlot(): Slot | null {
    return this.#slots.find((slot) => slot.pending === 0) ?? null
  }

  #columnsOf({ columns }: CsvBatch): Columns {
    return this.#columns.get(columns, () => {
      const attributes = this.#o.attributesFor(columns)
      const id = this.#columnSets
      this.#columnSets += 1
      this.#tellAll({ kind: 'columns', id, attributes })
      const keys = this.#keys.map((key) => attributes.findIndex((attribute) => attribute.name === key.name))
      // A key that is not there at all is an error in whatever thread.
      return { id, keys: keys.filter((column) => column >= 0) }
    })
  }

  #tellAll(message: ToPutThread): void {
    for (const worker of this.#workers) worker.postMessage(message)
  }

  #listen(worker: Worker): void {
    worker.on('message', (message: FromPutThread) => {
      this.#take(worker, message)
      this.#changes.wake()
    })
    worker.on('error', (error) => this.#fail(this.#died(error.message, error)))
    worker.on('exit', (code) => this.#fail(this.#died(`exit code ${code}`)))
  }

  #died(how: string, cause?: Error): SluiceError {
    return this.isReady ? died(how, cause) : notStarted(this.#workers.length, { how, cause })
  }

  #take(worker: Worker, message: FromPutThread): void {
    switch (message.kind) {
      case 'ready':
        this.#begun += 1
        break
      case 'done':
        this.#done(message.block)
        break
      case 'bad':
        this.#noteBad(message)
        break
      case 'settled':
        this.#settle(message.extent, message.counts)
        break
      case 'failed':
        this.#fail(fromThreadError(message.error))
        break
      case 'credentials':
        void this.#giveCredentials(worker, message.stale)
        break
      case 'retried':
        for (let i = 0; i < message.retries; i += 1) this.#o.reporter.retried({ throttled: i < message.throttles })
        break
    }
  }

  #done(block: number): void {
    const slot = this.#slots.find((one) => one.block === block)
    if (slot !== undefined) slot.pending -= 1
    this.#tellBad()
  }

  /** Of several bad rows the first of the input counts, in whatever order threads come upon them. */
  #noteBad({ block, row, error }: Omit<BadRow, 'batch'>): void {
    const batch = this.#slots.find((slot) => slot.block === block)?.batch ?? null
    if (batch === null) return
    const first = this.#bad === null || block < this.#bad.block || (block === this.#bad.block && row < this.#bad.row)
    if (first) this.#bad = { block, row, batch, error }
  }

  /** Once no thread can find an earlier one. */
  #tellBad(): void {
    const bad = this.#bad
    if (bad === null || this.#slots.some((slot) => slot.pending > 0 && slot.block <= bad.block)) return
    this.#fail(badRow(bad))
  }

  #settle(extent: number, counts: PutCounts): void {
    const state = this.#extents.get(extent)
    if (state === undefined) return
    const { accepted, superseded, bytes } = state.counts
    state.left -= 1
    state.counts = {
      accepted: accepted + counts.accepted,
      superseded: superseded + counts.superseded,
      bytes: bytes + counts.bytes,
    }
  }

  async #giveCredentials(worker: Worker, stale: StaleCredentials | null): Promise<void> {
    const { credentials } = this.#o
    try {
      let found = await credentials.get()
      // Another thread may have had them renewed already.
      if (stale !== null && found?.accessKeyId === stale.accessKeyId && found.sessionToken === stale.sessionToken) {
        credentials.invalidate()
        found = await credentials.get()
      }
      if (found === null) throw new SluiceError('SLUICE_INTERNAL', 'a thread asked for credentials where none are used')
      worker.postMessage({ kind: 'credentials', credentials: found } satisfies ToPutThread)
    } catch (error) {
      worker.postMessage({ kind: 'no-credentials', error: toThreadError(toSluiceError(error)) } satisfies ToPutThread)
    }
  }

  #fail(error: SluiceError): void {
    // A row that is surely bad says more than what befell the others while it was looked for.
    this.#failure ??= this.#bad === null ? error : badRow(this.#bad)
    this.#o.signal.removeEventListener('abort', this.#onAbort)
    this.#ended ??= Promise.all(this.#workers.map((worker) => worker.terminate()))
    Atomics.store(this.#shared.lastBlock, 0, -1)
    this.#changes.wake()
  }

  async #until(condition: () => boolean): Promise<void> {
    for (;;) {
      if (this.#o.signal.aborted) this.stop(this.#o.signal.reason)
      this.#o.signal.throwIfAborted()
      if (this.#failure !== null) throw this.#failure
      if (condition()) return
      await this.#changes.next()
    }
  }
}

function badRow({ batch, row, error }: BadRow): SluiceError {
  const found = fromThreadError(error)
  if (batch.form === 'rows') return found.at(batch.places[row] ?? {})
  const cursor = recordCursor(batch.bytes, batch.csv)
  let index = 0
  while (cursor.next() === 'row' && cursor.start < row) index += 1
  return found.at(locateRecord(batch, index))
}

/** @throws SLUICE_THREADS: then none is left */
function startThreads(threads: readonly PutThreadData[]): readonly Worker[] {
  const workers: Worker[] = []
  try {
    for (const data of threads)
      workers.push(new Worker(siblingModule('put-thread', import.meta.url), { workerData: data }))
    return workers
  } catch (error) {
    for (const worker of workers) void worker.terminate()
    throw notStarted(threads.length, { how: error instanceof Error ? error.message : String(error), cause: error })
  }
}

function notStarted(count: number, { how, cause }: { how: string; cause: unknown }): SluiceError {
  const threads = count === 1 ? 'the thread that writes' : `the ${count} threads that write`
  return new SluiceError('SLUICE_THREADS', `${threads} to DynamoDB cannot be started: ${how}`, { cause })
}

function died(how: string, cause?: Error): SluiceError {
  return new SluiceError('SLUICE_INTERNAL', `a thread that writes to DynamoDB ended: ${how}`, {
    hint: '--workers 0 does without threads; resume goes on from here',
    cause,
  })
}
