import type { BatchForm } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Extent, Json, Receipt } from '../../core/job.ts'
import type { CopyOptions } from '../../core/options.ts'
import type { Abortable, FinishResult, Lane, Sink, SinkPlan } from '../../core/ports.ts'
import type { Column, Schema } from '../../core/schema.ts'
import type { SinkRequest } from '../connector.ts'
import { CapacityBudget } from './put/capacity.ts'
import { openDynamoClient, type DynamoClient } from './client.ts'
import { ExtentOrder } from './put/extent-order.ts'
import { InFlightLimit } from './put/in-flight.ts'
import { SeenKeys } from './put/key-seen.ts'
import { DynamoLane } from './put/lane.ts'
import { OwnWay } from './put/own-way.ts'
import { PutCrew } from './put/put-crew.ts'
import { inFlightOf, MOST_IN_FLIGHT, threadsData, threadsFor } from './put/put-threads.ts'
import { PutWays } from './put/put-ways.ts'
import { PutWindow } from './put/put-window.ts'
import { loadableTable, schemaWithKeys } from './table.ts'
import { indexKeysOf, keysOf, type TableInfo } from './table-info.ts'
import { attributeOf, type Attribute } from './item/type-map.ts'
import { findDynamoTarget, type DynamoTarget } from './url.ts'

/**
 * Source bytes of an extent: each lane holds one, and what is in their hands is written again after a kill. Parsed rows take some ten times their
 * source's bytes, hence fewer of them.
 */
const CSV_EXTENT_BYTES = 2 * 1024 * 1024
const ROWS_EXTENT_BYTES = 128 * 1024
/** One writes while the others wait for the last puts of their extents, which may have to be tried many times. */
const LANES = 6

/** @throws SLUICE_USAGE */
export async function createDynamoSink(request: SinkRequest): Promise<Sink> {
  const target = await findDynamoTarget(request.url, request)
  return new DynamoSink(request, target)
}

/** Loads a table by BatchWriteItem. What an extent's receipt says is in the table, and is not written again. */
class DynamoSink implements Sink {
  /** They feed one window of requests, by turns in the order of the input; it has tried again by itself. */
  readonly lanes = { max: LANES, ordered: true, final: true }
  readonly wantsTypes = true
  readonly anyColumns = true
  readonly inPlace = true
  readonly #request: SinkRequest
  readonly #target: DynamoTarget
  readonly #client: DynamoClient
  #plan: SinkPlan | null = null
  #table: TableInfo | null = null
  #typed = false
  /** Whether an earlier run or this one made the table. */
  #created: boolean
  /** What all lanes share, from the first one on. */
  #writing: { readonly ways: PutWays; readonly order: ExtentOrder } | null = null

  constructor(request: SinkRequest, target: DynamoTarget) {
    const { concurrency } = request.options
    this.#request = request
    this.#created = request.context.recorded.some(saysCreated)
    this.#target = target
    const most = typeof concurrency === 'number' ? concurrency : MOST_IN_FLIGHT
    this.#client = openDynamoClient(request, target, { maxConnections: most + 1 })
  }

  /** As CSV, values that have types of their own (PostgreSQL's) would be text. */
  get forms(): readonly BatchForm[] {
    return this.#typed ? ['rows'] : ['csv', 'rows']
  }

  get extentBytes(): { target: number; exact: boolean } {
    return { target: this.#plan?.form === 'rows' ? ROWS_EXTENT_BYTES : CSV_EXTENT_BYTES, exact: false }
  }

  /** Finds or makes the table, and checks that rows can have its key. */
  async meet(schema: Schema, o: Abortable): Promise<Schema> {
    const { options, context } = this.#request
    const warn = (message: string): void => context.warn(message)
    const wanted = { table: this.#target.table, options, schema, warn }
    const { table, created } = await loadableTable(this.#client, wanted, o)
    if (created) await context.record({ kind: 'created', table: table.name })
    this.#created ||= created
    this.#table = table
    this.#typed = schema.typed === true
    return schemaWithKeys(table, schema)
  }

  async prepare(plan: SinkPlan, o: Abortable): Promise<void> {
    const { options, context } = this.#request
    if (this.#table === null) await this.meet(plan.schema, o)
    this.#plan = plan
    this.#attributesFor(plan.schema.columns.map((column) => column.name))
    if (options.dedupe === 'error' && context.resumed)
      context.warn('--dedupe error: keys that were written before this run are not known to it')
  }

  recover(): Promise<readonly Receipt[]> {
    // Of another state of the source, whose rows may be others.
    if (this.#plan?.restarts === true) return Promise.resolve([])
    return Promise.resolve(this.#request.context.recorded.flatMap(sealedReceipt))
  }

  openLane(o: Abortable): Promise<Lane> {
    const { context } = this.#request
    this.#writing ??= { ways: this.#openWays(o.signal), order: new ExtentOrder(o.signal) }
    const lane = new DynamoLane({
      ...this.#writing,
      record: (receipt) => context.record({ kind: 'sealed', receipt: receiptJson(receipt) }),
    })
    return Promise.resolve(lane)
  }

  finish(receipts: readonly Receipt[]): Promise<FinishResult> {
    const sum = (of: (receipt: Receipt) => number): number =>
      receipts.reduce((total, receipt) => total + of(receipt), 0)
    const output = {
      url: this.#target.url,
      rows: sum((receipt) => receipt.rowsWritten),
      bytes: sum((receipt) => receipt.bytesWritten),
      etag: null,
    }
    return Promise.resolve({ outputs: [output], lost: [] })
  }

  /** What is in stays: puts are by key, and a resume writes what is missing. A job that can't be resumed says what it leaves. */
  abort(
    _reason: unknown,
    { resumable, began }: { readonly resumable: boolean; readonly began?: boolean },
  ): Promise<void> {
    const { context } = this.#request
    const table = this.#target.url
    const before = context.recorded.flatMap(sealedReceipt).length > 0
    const put = before || (began === true && this.#writing?.ways.mayHavePut === true)
    if (resumable || this.#table === null) return Promise.resolve()
    if (this.#created)
      context.warn(
        `the table ${table}, which this job made, stays ${put ? 'with what was put so far' : 'and is empty'}: sluice table delete ${table}`,
      )
    else if (put) context.warn(`what was put so far stays in ${table}: the same rows, loaded again, replace it`)
    return Promise.resolve()
  }

  async close(): Promise<void> {
    await this.#writing?.ways.close()
    await this.#client.close()
  }

  /** One window of requests in this thread, and threads with one each, where they are wanted. */
  #openWays(signal: AbortSignal): PutWays {
    const { options, retryForMs } = this.#request
    const table = this.#ready()
    const { concurrency, writeUnits, dedupe = 'last' } = options
    const puts = {
      table: table.name,
      keys: keysOf(table),
      dedupe,
      retryForMs,
      nulls: this.#nulls(),
      concurrency: typeof concurrency === 'number' ? concurrency : null,
      writeUnits: typeof writeUnits === 'number' ? writeUnits : null,
    }
    const attributesFor = (columns: readonly string[]): readonly Attribute[] => this.#attributesFor(columns)
    const own = new OwnWay({
      window: new PutWindow({
        ...puts,
        client: this.#client,
        limit: new InFlightLimit(inFlightOf(puts.concurrency, { sharers: 1, index: 0 })),
        capacity: puts.writeUnits === null ? null : new CapacityBudget(puts.writeUnits),
        signal,
      }),
      attributesFor,
      sorted: table.sortKey !== null,
      nulls: puts.nulls,
      seen: dedupe === 'error' ? new SeenKeys() : null,
    })
    const { count, when } = threadsFor(options)
    const startThreads = (): PutCrew =>
      new PutCrew({
        threads: threadsData({ ...puts, target: this.#target, signRequest: options.signRequest }, count),
        credentials: this.#client.credentials,
        reporter: this.#request.reporter,
        signal,
        attributesFor,
      })
    const onNoThreads = (error: SluiceError): void => {
      if (!signal.aborted) this.#request.reporter.warn(`${error.message}: one thread writes alone`)
    }
    return new PutWays({ own, startThreads, threads: when, onNoThreads })
  }

  #ready(): TableInfo {
    if (this.#table === null) throw new SluiceError('SLUICE_INTERNAL', 'the sink was not prepared')
    return this.#table
  }

  /** In CSV nothing is there; in a format with types of its own a null says so. */
  #nulls(): 'omit' | 'NULL' {
    const { empty } = this.#request.options
    if (this.#plan?.schema.typed === true || this.#plan?.schema.fixed === true)
      return empty === 'omit' ? 'omit' : 'NULL'
    return empty === 'null' || empty === 'string' ? 'NULL' : 'omit'
  }

  #attributesFor(names: readonly string[]): readonly Attribute[] {
    const { schema } = this.#plan ?? { schema: { columns: [] } }
    const keys = keysOf(this.#ready())
    const indexKeys = indexKeysOf(this.#ready())
    const typed = this.#plan?.schema.typed === true
    const explicit = explicitNames(this.#request.options)
    return names.map((name) => {
      const column: Column = schema.columns.find((one) => one.name === name) ?? { name }
      return attributeOf(column, { keys, indexKeys, typed, explicit: explicit.has(name.toLowerCase()) })
    })
  }
}

/** Columns that `--type` names, by the old or the new name of a renamed one; without case, as the mapping may match them. */
function explicitNames({ type = [], rename = [] }: CopyOptions): ReadonlySet<string> {
  const lower = (text: string): string => text.toLowerCase()
  const names = new Set(type.map((text) => lower(text.slice(0, text.indexOf('=')))))
  for (const text of rename) {
    const at = text.indexOf('=')
    if (names.has(lower(text.slice(0, at)))) names.add(lower(text.slice(at + 1)))
  }
  return names
}

function receiptJson(receipt: Receipt): Json {
  const { extent, rowsWritten, bytesWritten, superseded = 0 } = receipt
  return {
    extent: { ...extent, start: { ...extent.start }, end: { ...extent.end } },
    rowsWritten,
    bytesWritten,
    superseded,
  }
}

function saysCreated(entry: Json): boolean {
  return typeof entry === 'object' && entry !== null && 'kind' in entry && entry.kind === 'created'
}

function sealedReceipt(entry: Json): Receipt[] {
  if (typeof entry !== 'object' || entry === null || !('kind' in entry) || entry.kind !== 'sealed') return []
  const { receipt } = entry as { readonly receipt?: Json }
  if (typeof receipt !== 'object' || receipt === null || !('extent' in receipt)) return []
  const { extent, rowsWritten, bytesWritten, superseded } = receipt as unknown as Omit<Receipt, 'extent'> & {
    readonly extent: Extent
  }
  return [{ extent, durable: true, rowsWritten, bytesWritten, superseded, state: null }]
}
