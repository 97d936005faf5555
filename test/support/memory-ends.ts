import type { Batch, BatchForm, RowsBatch } from '../../src/core/batch.ts'
import type { SluiceError } from '../../src/core/errors.ts'
import { START, type Extent, type Partition, type Position, type Receipt } from '../../src/core/job.ts'
import type { FinishResult, Lane, Sink, Source, SourceReadOptions } from '../../src/core/ports.ts'

/** Bytes that a row of a memory source stands for. */
export const ROW_BYTES = 10

export const memoryPosition = (row: number): Position => ({ byte: row * ROW_BYTES, row, line: row })

/** The one value of a row. */
export const memoryRow = (partition: string, row: number): string => `${partition}:${row}`

/** Rows `[from, until)` of a partition as one batch. */
export function memoryBatch(partition: string, from: number, until: number): RowsBatch {
  const numbers = Array.from({ length: until - from }, (_, i) => from + i)
  return {
    form: 'rows',
    columns: ['name'],
    rows: numbers.map((row) => [memoryRow(partition, row)]),
    places: numbers.map((row) => ({ row: row + 1, line: row + 1, byte: row * ROW_BYTES })),
    sourceBytes: numbers.length * ROW_BYTES,
    filtered: 0,
    start: memoryPosition(from),
    end: memoryPosition(until),
    mayEnd: true,
  }
}

/** Rows by partition. For the engine's tests only: what it does to the contract is checked with real sources and sinks elsewhere. */
export class MemorySource implements Source {
  readonly forms: readonly BatchForm[] = ['rows']
  readonly replayable: boolean
  readonly partitions: readonly Partition[]
  readonly #rows: readonly number[]
  readonly #batchRows: number
  readonly #step: () => Promise<void>
  /** Reads that are open now. */
  reading = 0
  #read = 0

  constructor(rows: readonly number[], o: { batchRows: number; replayable?: boolean; step?: () => Promise<void> }) {
    this.#rows = rows
    this.#batchRows = o.batchRows
    this.replayable = o.replayable ?? true
    this.#step = o.step ?? (() => Promise.resolve())
    this.partitions = rows.map((count, i) => ({
      id: `p${i}`,
      url: `memory:p${i}`,
      bytes: count * ROW_BYTES,
      state: null,
    }))
  }

  describe(): ReturnType<Source['describe']> {
    return Promise.resolve({ columns: [{ name: 'name' }], named: true })
  }

  plan(): Promise<readonly Partition[]> {
    return Promise.resolve(this.partitions)
  }

  async *read(partition: Partition, o: SourceReadOptions): AsyncGenerator<Batch> {
    this.reading += 1
    try {
      const count = this.#rows[this.partitions.findIndex((one) => one.id === partition.id)] ?? 0
      const until = o.until?.row ?? count
      for (let row = o.from?.row ?? 0; row < until; row += this.#batchRows) {
        await this.#step()
        o.signal.throwIfAborted()
        const batch = memoryBatch(partition.id, row, Math.min(until, row + this.#batchRows))
        this.#read += batch.sourceBytes
        yield batch
      }
    } finally {
      this.reading -= 1
    }
  }

  bytesRead(): number {
    return this.#read
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** Where a memory sink is asked whether to fail. `commit` comes after the rows of a durable extent are in: its answer is lost. */
export type MemoryStep = 'open' | 'begin' | 'write' | 'seal' | 'commit' | 'finish' | 'end-partition'

interface MemorySinkOptions {
  /** Whether a sealed extent is durable at once, with a ledger as PostgreSQL's, or all are at `finish`. */
  readonly durable: boolean
  readonly lanes: number
  readonly extentBytes: number
  readonly ordered?: boolean
  readonly fault?: (step: MemoryStep) => SluiceError | null
  /** Which lanes' transactions are lost at `finish`. */
  readonly loses?: () => boolean
  readonly step?: () => Promise<void>
  /** What earlier runs left. */
  readonly recovered?: readonly Receipt[]
}

interface MemoryTransaction {
  readonly receipts: Receipt[]
  readonly rows: string[]
}

/** A table in memory. */
export class MemorySink implements Sink {
  readonly forms: readonly BatchForm[] = ['rows']
  readonly lanes: { max: number; ordered: boolean }
  readonly extentBytes: { target: number; exact: boolean }
  readonly table: string[] = []
  readonly ended: string[] = []
  readonly aborts: { reason: unknown; resumable: boolean }[] = []
  readonly #o: MemorySinkOptions
  readonly #ledger = new Set<string>()
  readonly #open = new Set<MemoryTransaction>()
  openLanes = 0
  finishes = 0

  constructor(o: MemorySinkOptions) {
    this.#o = o
    this.lanes = { max: o.lanes, ordered: o.ordered ?? false }
    this.extentBytes = { target: o.extentBytes, exact: false }
  }

  prepare(): Promise<void> {
    return Promise.resolve()
  }

  recover(): Promise<readonly Receipt[]> {
    return Promise.resolve(this.#o.recovered ?? [])
  }

  async openLane(): Promise<Lane> {
    await this.#at('open')
    this.openLanes += 1
    const transaction: MemoryTransaction = { receipts: [], rows: [] }
    this.#open.add(transaction)
    let pending: string[] = []
    let known = false
    return {
      begin: async (extent) => {
        await this.#at('begin')
        known = this.#ledger.has(keyOf(extent))
      },
      write: async (batch) => {
        await this.#at('write')
        if (batch.form === 'rows')
          pending.push(...batch.rows.flatMap(([value]) => (typeof value === 'string' ? [value] : [])))
      },
      seal: async (extent) => {
        await this.#at('seal')
        const receipt = {
          extent,
          durable: this.#o.durable,
          rowsWritten: extent.rows,
          bytesWritten: extent.bytes,
          state: null,
        }
        if (!this.#o.durable) {
          transaction.rows.push(...pending)
          transaction.receipts.push(receipt)
        } else if (!known) {
          this.#ledger.add(keyOf(extent))
          this.table.push(...pending)
        }
        pending = []
        if (this.#o.durable) await this.#at('commit')
        return receipt
      },
      abort: () => {
        this.openLanes -= 1
        this.#open.delete(transaction)
        return Promise.resolve()
      },
      close: () => {
        this.openLanes -= 1
        return Promise.resolve()
      },
    }
  }

  async endPartition(partition: Partition): Promise<void> {
    await this.#at('end-partition')
    this.ended.push(partition.id)
  }

  async finish(receipts: readonly Receipt[]): Promise<FinishResult> {
    this.finishes += 1
    await this.#at('finish')
    const lost: Extent[] = []
    for (const transaction of this.#open) {
      if (transaction.receipts.length > 0 && this.#o.loses?.() === true)
        lost.push(...transaction.receipts.map((receipt) => receipt.extent))
      else this.table.push(...transaction.rows)
    }
    this.#open.clear()
    const rows = receipts.reduce((sum, receipt) => sum + receipt.rowsWritten, 0)
    return { outputs: lost.length > 0 ? [] : [{ url: 'memory:', rows, bytes: 0, etag: null }], lost }
  }

  abort(reason: unknown, o: { readonly resumable: boolean }): Promise<void> {
    this.aborts.push({ reason, resumable: o.resumable })
    this.#open.clear()
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #at(step: MemoryStep): Promise<void> {
    await this.#o.step?.()
    const error = this.#o.fault?.(step) ?? null
    if (error !== null) throw error
  }
}

/** A receipt of an earlier run. */
export function memoryReceipt(partition: string, from: number, until: number, o: { last: boolean }): Receipt {
  const extent: Extent = {
    partition,
    sequence: from,
    start: from === 0 ? START : memoryPosition(from),
    end: memoryPosition(until),
    rows: until - from,
    filtered: 0,
    bytes: (until - from) * ROW_BYTES,
    last: o.last,
  }
  return { extent, durable: true, rowsWritten: extent.rows, bytesWritten: extent.bytes, state: null }
}

const keyOf = (extent: Extent): string => `${extent.partition} ${extent.start.row} ${extent.end.row}`
