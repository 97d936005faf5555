import type { Batch, CsvBatch, RowsBatch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Extent, Receipt } from '../../core/job.ts'
import type { Lane } from '../../core/ports.ts'
import { locateRecord } from '../../formats/csv/locate.ts'
import { recordCursor } from '../../formats/csv/record-cursor.ts'
import type { SeenKeys } from './key-seen.ts'
import type { PutWindow } from './put-window.ts'
import { MOST_ITEM_BYTES, checkItemSize } from './validate.ts'
import { CsvItemEncoder, PUT_BEGIN, PUT_END } from './wire-json.ts'
import { RowItemEncoder } from './wire-rows.ts'
import type { Attribute } from './type-map.ts'

export interface DynamoLaneOptions {
  readonly window: PutWindow
  /** What the columns of a batch become. @throws SLUICE_USAGE, SLUICE_COLUMN_MISSING */
  readonly attributesFor: (columns: readonly string[]) => readonly Attribute[]
  /** Whether the table has a sort key. */
  readonly sorted: boolean
  /** What becomes of null. */
  readonly nulls: 'omit' | 'NULL'
  /** For `--dedupe error`. */
  readonly seen: SeenKeys | null
  /** Makes a receipt durable. */
  readonly record: (receipt: Receipt) => Promise<void>
}

/** The one lane of a table: rows become puts in the order of the input, and an extent is sealed when each of its items is in. */
export class DynamoLane implements Lane {
  readonly #o: DynamoLaneOptions
  /** One a set of columns: files under a prefix, or keys of JSON, may differ. */
  readonly #csvEncoders = new Map<string, CsvItemEncoder>()
  readonly #rowEncoders = new Map<string, RowItemEncoder>()
  #bytes = 0

  constructor(options: DynamoLaneOptions) {
    this.#o = options
  }

  begin(): Promise<void> {
    this.#bytes = 0
    return Promise.resolve()
  }

  write(batch: Batch): Promise<void> {
    if (batch.form === 'csv') return this.#writeCsv(batch)
    if (batch.form === 'rows') return this.#writeRows(batch)
    throw new SluiceError('SLUICE_INTERNAL', `DynamoDB takes rows, not ${batch.form}`)
  }

  async seal(extent: Extent): Promise<Receipt> {
    const { window, record } = this.#o
    await window.drain()
    const { accepted, superseded } = window.takeCounts()
    const receipt: Receipt = {
      extent,
      durable: true,
      rowsWritten: accepted,
      bytesWritten: this.#bytes,
      superseded,
      state: null,
    }
    await record(receipt)
    return receipt
  }

  abort(reason: unknown): Promise<void> {
    this.#o.window.stop(reason)
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #writeCsv(batch: CsvBatch): Promise<void> {
    const { window } = this.#o
    const encoder = this.#csvEncoder(batch)
    const cursor = recordCursor(batch.bytes, batch.csv)
    for (let index = 0; cursor.next() === 'row'; index += 1) {
      const { open } = window
      try {
        const end = encoder.encode(cursor, open)
        this.#check(encoder.key, open.bytes, { start: open.at, end })
        this.#bytes += end - open.at
        window.add(encoder.key, end)
      } catch (error) {
        throw error instanceof SluiceError ? error.at(locateRecord(batch, index)) : error
      }
      if (open.isFull) await window.makeRoom()
    }
  }

  async #writeRows(batch: RowsBatch): Promise<void> {
    const { window } = this.#o
    const encoder = this.#rowEncoder(batch)
    for (let index = 0; index < batch.rows.length; index += 1) {
      const { open } = window
      try {
        const { text, key } = encoder.encode(batch.rows[index] ?? [])
        // Three bytes of UTF-8 a UTF-16 unit at most.
        open.reserve(text.length * 3 + PUT_BEGIN.byteLength + PUT_END.byteLength + 1)
        const { bytes, at } = open
        bytes[at] = open.separator
        const end = at + 1 + bytes.write(`{"PutRequest":{"Item":{${text}}}}`, at + 1)
        this.#check(key, bytes, { start: at, end })
        this.#bytes += end - at
        window.add(key, end)
      } catch (error) {
        throw error instanceof SluiceError ? error.at(batch.places[index] ?? {}) : error
      }
      if (open.isFull) await window.makeRoom()
    }
  }

  #check(key: string, bytes: Buffer, { start, end }: { start: number; end: number }): void {
    // What goes over the wire is never shorter than what DynamoDB counts.
    if (end - start > MOST_ITEM_BYTES)
      checkItemSize(bytes.toString('utf8', start + PUT_BEGIN.byteLength, end - PUT_END.byteLength + 1))
    if (this.#o.seen?.add(key) === true)
      throw new SluiceError('SLUICE_DUPLICATE_KEY', `the key comes a second time in the input`, {
        hint: 'remove the duplicate, or load with --dedupe last',
      })
  }

  #csvEncoder(batch: CsvBatch): CsvItemEncoder {
    return this.#known(
      this.#csvEncoders,
      batch,
      () => new CsvItemEncoder(this.#o.attributesFor(batch.columns), this.#o),
    )
  }

  #rowEncoder(batch: RowsBatch): RowItemEncoder {
    return this.#known(
      this.#rowEncoders,
      batch,
      () => new RowItemEncoder(this.#o.attributesFor(batch.columns), this.#o),
    )
  }

  #known<T>(encoders: Map<string, T>, batch: CsvBatch | RowsBatch, make: () => T): T {
    const name = batch.columns.join('\0')
    const found = encoders.get(name)
    if (found !== undefined) return found
    // JSON may bring ever new keys: bounded like the kinds of rows that a table has.
    if (encoders.size >= 1000) encoders.clear()
    const made = make()
    encoders.set(name, made)
    return made
  }
}
