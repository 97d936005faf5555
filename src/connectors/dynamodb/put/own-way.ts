import type { CsvBatch, RowsBatch } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'
import { locateRecord } from '../../../formats/csv/locate.ts'
import { recordCursor } from '../../../formats/csv/record-cursor.ts'
import { ByColumns } from '../item/by-columns.ts'
import type { SeenKeys } from './key-seen.ts'
import type { PutCounts } from './put-message.ts'
import { putAttributes, putRecord, type PutPlace } from './put-record.ts'
import type { ExtentWriter, PutWay } from './put-way.ts'
import type { PutWindow } from './put-window.ts'
import type { Attribute } from '../item/type-map.ts'
import { CsvItemEncoder } from '../item/wire-json.ts'
import { RowItemEncoder } from '../item/wire-rows.ts'

export interface OwnWayOptions {
  readonly window: PutWindow
  /** What the columns of a batch become. @throws SLUICE_USAGE, SLUICE_COLUMN_MISSING */
  readonly attributesFor: (columns: readonly string[]) => readonly Attribute[]
  /** Whether the table has a sort key. */
  readonly sorted: boolean
  /** What becomes of null. */
  readonly nulls: 'omit' | 'NULL'
  /** For `--dedupe error`. */
  readonly seen: SeenKeys | null
}

/** Rows become puts in this thread, in the order of the input, and go out by one window. */
export class OwnWay implements PutWay {
  readonly #o: OwnWayOptions
  readonly #csvEncoders = new ByColumns<CsvItemEncoder>()
  readonly #rowEncoders = new ByColumns<RowItemEncoder>()

  constructor(options: OwnWayOptions) {
    this.#o = options
  }

  get mayHavePut(): boolean {
    return this.#o.window.mayHavePut
  }

  begin(): ExtentWriter {
    const { window, seen } = this.#o
    const puts = { pending: 0, accepted: 0, superseded: 0 }
    const place = { window, seen, puts }
    let bytes = 0
    window.begin()
    return {
      write: async (batch) => {
        bytes += batch.form === 'csv' ? await this.#putCsv(batch, place) : await this.#putRows(batch, place)
      },
      written: () => window.written(),
      settled: async (): Promise<PutCounts> => {
        await window.settled(puts)
        return { accepted: puts.accepted, superseded: puts.superseded, bytes }
      },
    }
  }

  stop(reason: unknown): void {
    this.#o.window.stop(reason)
  }

  /** @returns bytes of its items */
  async #putCsv(batch: CsvBatch, place: PutPlace): Promise<number> {
    const { window } = place
    const encoder = this.#csvEncoders.get(
      batch.columns,
      () => new CsvItemEncoder(this.#o.attributesFor(batch.columns), this.#o),
    )
    const cursor = recordCursor(batch.bytes, batch.csv)
    let bytes = 0
    for (let index = 0; cursor.next() === 'row'; index += 1) {
      try {
        bytes += putRecord(cursor, encoder, place)
      } catch (error) {
        throw error instanceof SluiceError ? error.at(locateRecord(batch, index)) : error
      }
      if (window.open.isFull) await window.makeRoom()
    }
    return bytes
  }

  /** @returns bytes of its items */
  async #putRows(batch: RowsBatch, place: PutPlace): Promise<number> {
    const encoder = this.#rowEncoders.get(
      batch.columns,
      () => new RowItemEncoder(this.#o.attributesFor(batch.columns), this.#o),
    )
    const { window } = place
    let bytes = 0
    for (let index = 0; index < batch.rows.length; index += 1) {
      try {
        const { text, key } = encoder.encode(batch.rows[index] ?? [])
        bytes += putAttributes(text, key, place)
      } catch (error) {
        throw error instanceof SluiceError ? error.at(batch.places[index] ?? {}) : error
      }
      if (window.open.isFull) await window.makeRoom()
    }
    return bytes
  }
}
