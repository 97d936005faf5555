import { randomUUID } from 'node:crypto'
import type { Batch, BatchForm } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import { START, type Json, type Partition, type Position } from '../../core/job.ts'
import type { Abortable, DescribeOptions, Source, SourceReadOptions } from '../../core/ports.ts'
import type { Column, Schema } from '../../core/schema.ts'
import type { EndpointRequest } from '../connector.ts'
import { type Answer, answerOf, listOf } from './answer.ts'
import { type DynamoClient, openDynamoClient } from './client.ts'
import { AttributeTypes, itemsToRows } from './item/item-rows.ts'
import { ReadBudget, TableScan } from './scan.ts'
import { ScanKeys } from './scan-keys.ts'
import { describeTable } from './table.ts'
import { keysOf, type TableInfo } from './table-info.ts'
import { type DynamoTarget, findDynamoTarget } from './url.ts'

/** A segment of about this many bytes: a few seconds of one reader. */
const SEGMENT_BYTES = 64 * 1024 * 1024
/** The size that a table tells is up to six hours old: a new one says 0. */
const LEAST_SEGMENTS = 16
/** AWS allows 1,000,000 (API Reference, Scan); a partition costs us some hundred bytes. */
const MOST_SEGMENTS = 100_000
/** Items that the columns are told by where not every one must be known. */
const SAMPLE_ITEMS = 1000
/** More segments at once than this only share one thread's time. */
const READERS = 4

/** How many segments a table of that size is read in. */
export function segmentCount(bytes: number | null): number {
  return Math.min(MOST_SEGMENTS, Math.max(LEAST_SEGMENTS, Math.ceil((bytes ?? 0) / SEGMENT_BYTES)))
}

/** `--read-units` as a budget. */
export function readBudget(request: EndpointRequest): ReadBudget | null {
  const { readUnits = 'auto' } = request.options
  return readUnits === 'auto' ? null : new ReadBudget(readUnits)
}

/** @throws SLUICE_USAGE */
export async function createDynamoSource(request: EndpointRequest): Promise<Source> {
  return new DynamoSource(request, await findDynamoTarget(request.url, request))
}

/**
 * A table by parallel Scan; its segments are the partitions. Reading goes on behind any page that was given out whole, in this run or a later one.
 * No snapshot: an item that is written while the Scan runs may come as it was or as it is.
 */
class DynamoSource implements Source {
  readonly forms: readonly BatchForm[] = ['rows']
  readonly replayable = true
  readonly unordered = true
  readonly readers = READERS
  readonly #request: EndpointRequest
  readonly #target: DynamoTarget
  readonly #client: DynamoClient
  readonly #budget: ReadBudget | null
  #table: TableInfo | null = null
  #columns: readonly Column[] | null = null
  #scan: { readonly segments: number; readonly scan: TableScan } | null = null
  #bytes = 0

  constructor(request: EndpointRequest, target: DynamoTarget) {
    this.#request = request
    this.#target = target
    this.#client = openDynamoClient(request, target)
    this.#budget = readBudget(request)
  }

  async describe(o: DescribeOptions): Promise<Schema> {
    const table = await this.#describeTable(o)
    const keys = keysOf(table).map((key) => key.name)
    const { columns } = this.#request.options
    if (columns !== undefined)
      return { columns: columns.map((name) => ({ name, nullable: !keys.includes(name) })), named: true, typed: true }
    if (this.#columns === null) {
      const types = new AttributeTypes(keys)
      if (o.everyColumn === true) await this.#lookAtAll(table, types, o)
      else types.add(await this.#sample(o))
      this.#columns = types.columns()
    }
    return { columns: this.#columns, named: true, typed: true }
  }

  async plan(o: Abortable): Promise<readonly Partition[]> {
    const table = await this.#describeTable(o)
    const segments = segmentCount(table.bytes)
    const scan = randomUUID()
    return Array.from({ length: segments }, (_, segment) => ({
      id: `segment-${segment}`,
      url: this.#target.url,
      bytes: null,
      rows: table.items === null || table.items === 0 ? null : Math.round(table.items / segments),
      state: { segment, segments, scan },
    }))
  }

  async *read(partition: Partition, o: SourceReadOptions): AsyncGenerator<Batch, void, undefined> {
    if (o.form !== 'rows') throw new SluiceError('SLUICE_INTERNAL', `a Scan gives rows, not ${o.form}`)
    const { segment, segments, scan: id } = segmentState(partition.state)
    const keys = new ScanKeys(this.#request.spoolDir, id)
    const first = this.#request.options.columns ?? (this.#columns ?? []).map((column) => column.name)
    const from = o.from ?? START
    if (o.until !== undefined && from.row >= o.until.row) return
    const after = from.row === 0 ? null : keys.find(segment, from.row)
    // All of it was given out before.
    if (from.row > 0 && after === null) return
    let at = from
    try {
      for await (const page of this.#scanOf(segments).segment(segment, after, o)) {
        if (page.items.length > 0) {
          const batch = batchOf(itemsToRows(page.items, first), at)
          at = batch.end
          this.#bytes += batch.sourceBytes
          if (this.#request.resumable === true) keys.add(segment, at.row, page.next)
          yield batch
          o.signal.throwIfAborted()
        }
        if (o.until !== undefined && at.row >= o.until.row) return
      }
    } catch (error) {
      throw error instanceof SluiceError
        ? error.at({ url: this.#target.url, partition: `${segment + 1}/${segments}` })
        : error
    }
  }

  bytesRead(): number {
    return this.#bytes
  }

  async close(): Promise<void> {
    this.#scan?.scan.close()
    await this.#client.close()
  }

  async #describeTable(o: Abortable): Promise<TableInfo> {
    this.#table ??= await describeTable(this.#client, this.#target.table, o)
    return this.#table
  }

  /** One scanner for all segments: what one reader begins ahead another may take. */
  #scanOf(segments: number): TableScan {
    if (this.#scan?.segments !== segments) {
      this.#scan?.scan.close()
      this.#scan = { segments, scan: this.#newScan(segments) }
    }
    return this.#scan.scan
  }

  #newScan(segments: number): TableScan {
    return new TableScan(this.#client, { table: this.#target.table, segments, budget: this.#budget })
  }

  async #sample(o: Abortable): Promise<readonly Answer[]> {
    const body = { TableName: this.#target.table, Limit: SAMPLE_ITEMS, ConsistentRead: true }
    return listOf(answerOf(await this.#client.call('Scan', body, o), 'items')['Items'])
  }

  async #lookAtAll(table: TableInfo, types: AttributeTypes, o: Abortable): Promise<void> {
    this.#request.reporter.warn(
      `${this.#target.url} is read twice: once for the names of all its attributes; --columns saves that`,
    )
    const scan = this.#newScan(segmentCount(table.bytes))
    try {
      for await (const page of scan.pages(o)) types.add(page.items)
    } finally {
      scan.close()
    }
  }
}

function batchOf(
  { columns, rows, bytes }: ReturnType<typeof itemsToRows>,
  start: Position,
): Extract<Batch, { form: 'rows' }> {
  let byte = start.byte
  const places = rows.map((_, i) => {
    const place = { row: start.row + i + 1, line: start.line + i + 1, byte }
    byte += bytes[i] ?? 0
    return place
  })
  const end = { byte, row: start.row + rows.length, line: start.line + rows.length }
  return { form: 'rows', columns, rows, places, start, end, mayEnd: true, sourceBytes: byte - start.byte, filtered: 0 }
}

/** @throws SLUICE_STATE */
function segmentState(state: Json): { segment: number; segments: number; scan: string } {
  if (typeof state === 'object' && state !== null && !Array.isArray(state)) {
    const { segment, segments, scan } = state as { readonly [key: string]: Json }
    if (typeof segment === 'number' && typeof segments === 'number' && typeof scan === 'string')
      return { segment, segments, scan }
  }
  throw new SluiceError('SLUICE_STATE', 'the recorded segments of the Scan make no sense')
}
