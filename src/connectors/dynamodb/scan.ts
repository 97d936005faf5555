import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { SluiceError } from '../../core/errors.ts'
import type { Abortable } from '../../core/ports.ts'
import { type Answer, answerOf, type DynamoCalls, listOf, numberOf } from './answer.ts'

/** Pages of a segment that are fetched before they are asked for: each up to 1 MB on the wire, some 4 MB as objects. */
const PAGES_AHEAD = 2
/** Segments behind the one in hand that are begun already. With the pages of each that bounds what is held: (3 + 1) × (2 + 1) pages. */
const SEGMENTS_AHEAD = 3
/** Bytes of a strongly consistent read unit (AWS, "Read and write capacity"): what is counted where a server tells no capacity. */
const UNIT_BYTES = 4096
/** Items of the first page where units are counted, and nothing is known of their size. */
const FIRST_LIMIT = 100

/** One answer of Scan. */
export interface ScanPage {
  readonly items: readonly Answer[]
  /** Where the next page begins; null at the segment's end. */
  readonly next: Answer | null
}

/** Keeps to read units a second, one request at a time: what a page did cost is waited out before the next. */
export class ReadBudget {
  readonly #unitsPerSecond: number
  #freeAtMs = 0
  #unitsPerItem: number | null = null
  #tail: Promise<unknown> = Promise.resolve()
  #units = 0

  constructor(unitsPerSecond: number) {
    this.#unitsPerSecond = unitsPerSecond
  }

  /** Units consumed so far. */
  get units(): number {
    return this.#units
  }

  /** Runs a request when its turn has come; `limit` is how many items cost no more than a second's units. */
  run(request: (limit: number) => Promise<{ page: ScanPage; units: number }>, o: Abortable): Promise<ScanPage> {
    const turn = this.#tail.then(() => this.#run(request, o))
    this.#tail = turn.catch(() => undefined)
    return turn
  }

  async #run(request: (limit: number) => Promise<{ page: ScanPage; units: number }>, o: Abortable): Promise<ScanPage> {
    const waitMs = this.#freeAtMs - performance.now()
    if (waitMs > 0) await delay(waitMs, undefined, { signal: o.signal }).catch(() => o.signal.throwIfAborted())
    o.signal.throwIfAborted()
    const limit =
      this.#unitsPerItem === null ? FIRST_LIMIT : Math.max(1, Math.floor(this.#unitsPerSecond / this.#unitsPerItem))
    const { page, units } = await request(limit)
    this.#units += units
    this.#freeAtMs = Math.max(this.#freeAtMs, performance.now()) + (units / this.#unitsPerSecond) * 1000
    if (page.items.length > 0) this.#unitsPerItem = units / page.items.length
    return page
  }
}

export interface TableScanOptions {
  readonly table: string
  readonly segments: number
  /** `--read-units`. */
  readonly budget: ReadBudget | null
}

/**
 * A parallel Scan, strongly consistent: what was written before it is seen. Segments are read in any order; whichever is read, the next ones
 * are begun, so that their first pages are there when they are asked for.
 */
export class TableScan {
  readonly #client: DynamoCalls
  readonly #o: TableScanOptions
  readonly #begun = new Map<number, SegmentReader>()
  /** Segments that somebody reads or has read in this pass: nothing is begun ahead for them. */
  readonly #taken = new Set<number>()
  /** The segment that an item was the first of, by eight bytes of its digest; an entry a segment. */
  readonly #firsts = new Map<bigint, number>()
  readonly #stop = new AbortController()

  constructor(client: DynamoCalls, o: TableScanOptions) {
    this.#client = client
    this.#o = o
  }

  /** Pages of a segment, from its beginning or behind a key. */
  async *segment(index: number, from: Answer | null, o: Abortable): AsyncGenerator<ScanPage, void, undefined> {
    const begun = from === null ? this.#begun.get(index) : undefined
    if (from === null) this.#begun.delete(index)
    // Read again: a new pass over the table.
    if (this.#taken.has(index)) this.#taken.clear()
    this.#taken.add(index)
    const reader = begun ?? this.#begin(index, from)
    const last = Math.min(this.#o.segments, index + 1 + SEGMENTS_AHEAD)
    const onAbort = (): void => reader.stop(o.signal.reason)
    o.signal.addEventListener('abort', onAbort)
    try {
      for (let page = await reader.next(); page !== null; page = await reader.next()) {
        o.signal.throwIfAborted()
        for (let next = index + 1; from === null && next < last; next += 1)
          if (!this.#begun.has(next) && !this.#taken.has(next)) this.#begun.set(next, this.#begin(next, null))
        yield page
      }
    } finally {
      o.signal.removeEventListener('abort', onAbort)
      reader.stop(new Error('no longer wanted'))
    }
  }

  /** All pages, segment after segment. */
  async *pages(o: Abortable): AsyncGenerator<ScanPage, void, undefined> {
    for (let index = 0; index < this.#o.segments; index += 1) yield* this.segment(index, null, o)
  }

  /** Breaks off what was begun. */
  close(): void {
    this.#stop.abort(new Error('the scan is over'))
    for (const reader of this.#begun.values()) reader.stop(new Error('the scan is over'))
    this.#begun.clear()
  }

  #begin(index: number, from: Answer | null): SegmentReader {
    return new SegmentReader((key, signal) => this.#fetch(index, key, signal), from)
  }

  async #fetch(index: number, key: Answer | null, signal: AbortSignal): Promise<ScanPage> {
    const { table, segments, budget } = this.#o
    const o = { signal: AbortSignal.any([signal, this.#stop.signal]) }
    const request = async (limit: number | null): Promise<{ page: ScanPage; units: number }> => {
      const body = {
        TableName: table,
        ConsistentRead: true,
        Segment: index,
        TotalSegments: segments,
        ...(key === null ? {} : { ExclusiveStartKey: key }),
        ...(limit === null ? {} : { Limit: limit, ReturnConsumedCapacity: 'TOTAL' }),
      }
      const answer = answerOf(await this.#client.call('Scan', body, o), 'items')
      const page = { items: listOf(answer['Items']), next: nextKey(answer['LastEvaluatedKey']) }
      if (key === null && segments > 1) this.#checkSegment(index, page)
      return { page, units: limit === null ? 0 : unitsOf(answer, page) }
    }
    return budget === null ? (await request(null)).page : budget.run(request, o)
  }

  /** An item is in one segment. Some servers that are not AWS's pass over Segment, and give all items for each: each would come many times. @throws SLUICE_PROTOCOL */
  #checkSegment(index: number, { items: [first] }: ScanPage): void {
    if (first === undefined) return
    const digest = createHash('sha1').update(JSON.stringify(first)).digest().readBigUInt64BE()
    const other = this.#firsts.get(digest)
    if (other !== undefined && other !== index)
      throw new SluiceError('SLUICE_PROTOCOL', 'the server gives the same items for several segments of a Scan', {
        hint: 'it does not know parallel Scans: use a later version of it',
      })
    this.#firsts.set(digest, index)
  }
}

/** Where the next page begins. Some servers say that there is none by null, or by an empty key. */
function nextKey(key: unknown): Answer | null {
  if (key === undefined || key === null) return null
  const answer = answerOf(key, 'key')
  return Object.keys(answer).length === 0 ? null : answer
}

function unitsOf(answer: Answer, page: ScanPage): number {
  const consumed = answer['ConsumedCapacity']
  const told =
    typeof consumed === 'object' && consumed !== null ? numberOf(answerOf(consumed, 'units')['CapacityUnits']) : null
  return told ?? Math.max(1, Math.ceil(Buffer.byteLength(JSON.stringify(page.items)) / UNIT_BYTES))
}

/** Fetches the pages of one segment, up to PAGES_AHEAD before they are taken. */
class SegmentReader {
  readonly #fetch: (key: Answer | null, signal: AbortSignal) => Promise<ScanPage>
  readonly #stop = new AbortController()
  readonly #pages: Promise<ScanPage | null>[] = []
  #last: Promise<ScanPage | null>

  constructor(fetch: (key: Answer | null, signal: AbortSignal) => Promise<ScanPage>, from: Answer | null) {
    this.#fetch = fetch
    this.#last = this.#guard(fetch(from, this.#stop.signal))
    this.#pages.push(this.#last)
    this.#ahead()
  }

  /** The next page; null behind the last. */
  async next(): Promise<ScanPage | null> {
    const page = await (this.#pages.shift() ?? null)
    this.#ahead()
    return page
  }

  stop(reason: unknown): void {
    this.#stop.abort(reason)
  }

  #ahead(): void {
    while (this.#pages.length < PAGES_AHEAD) {
      this.#last = this.#guard(
        this.#last.then((page) =>
          page?.next === undefined || page.next === null ? null : this.#fetch(page.next, this.#stop.signal),
        ),
      )
      this.#pages.push(this.#last)
    }
  }

  /** A page that nobody takes any more may fail unheard. */
  #guard(page: Promise<ScanPage | null>): Promise<ScanPage | null> {
    page.catch(() => undefined)
    return page
  }
}
