import type { Batch } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'
import type { Extent, Receipt } from '../../../core/job.ts'
import type { Lane } from '../../../core/ports.ts'
import type { ExtentOrder } from './extent-order.ts'
import type { ExtentWriter } from './put-way.ts'
import type { PutWays } from './put-ways.ts'

export interface DynamoLaneOptions {
  readonly ways: PutWays
  readonly order: ExtentOrder
  /** Makes a receipt durable. */
  readonly record: (receipt: Receipt) => Promise<void>
}

/**
 * One of the lanes of a table, which write by turns: rows become puts in the order of the input, and an extent is sealed, in that order, too, when
 * each of its items is in, while a later one is written already.
 */
export class DynamoLane implements Lane {
  readonly #o: DynamoLaneOptions
  #writer: ExtentWriter | null = null

  constructor(options: DynamoLaneOptions) {
    this.#o = options
  }

  async begin(): Promise<void> {
    await this.#o.order.begin()
    this.#writer = await this.#o.ways.begin()
  }

  write(batch: Batch): Promise<void> {
    if (batch.form !== 'csv' && batch.form !== 'rows')
      throw new SluiceError('SLUICE_INTERNAL', `DynamoDB takes rows, not ${batch.form}`)
    return this.#begun().write(batch)
  }

  async seal(extent: Extent): Promise<Receipt> {
    const { order, record } = this.#o
    const writer = this.#begun()
    writer.written()
    const sealBefore = order.written()
    const { accepted, superseded, bytes } = await writer.settled()
    await sealBefore.done
    const receipt: Receipt = {
      extent,
      durable: true,
      rowsWritten: accepted,
      bytesWritten: bytes,
      superseded,
      state: null,
    }
    await record(receipt)
    sealBefore.next()
    return receipt
  }

  abort(reason: unknown): Promise<void> {
    this.#o.ways.stop(reason)
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #begun(): ExtentWriter {
    if (this.#writer === null) throw new SluiceError('SLUICE_INTERNAL', 'an extent that was not begun')
    return this.#writer
  }
}
