import { SluiceError } from '../../core/errors.ts'
import type { Extent, Json, Partition, Receipt } from '../../core/job.ts'

/** What was written of a partition, all its extents together. */
export interface SealedRows {
  readonly rows: number
  readonly filtered: number
  /** Bytes of source data. */
  readonly bytes: number
  readonly rowsWritten: number
  readonly bytesWritten: number
}

export const NOTHING_SEALED: SealedRows = { rows: 0, filtered: 0, bytes: 0, rowsWritten: 0, bytesWritten: 0 }

/** One receipt that stands for all of a partition. */
export function wholeReceipt(partition: Partition, sealed: SealedRows): Receipt {
  const { rows, filtered, bytes, rowsWritten, bytesWritten } = sealed
  const start = { byte: 0, row: 0, line: 0 }
  const extent: Extent = { partition: partition.id, sequence: 0, start, end: start, rows, filtered, bytes, last: true }
  return { extent, durable: true, rowsWritten, bytesWritten, state: null }
}

/** Receipts of a finished output. Where the source is planned anew and has other partitions by now, the first stands for all that they do not. */
export function wholeReceipts(partitions: readonly Partition[], sealed: ReadonlyMap<string, SealedRows>): Receipt[] {
  const known = new Set(partitions.map((partition) => partition.id))
  const others = [...sealed].filter(([id]) => !known.has(id)).map(([, rows]) => rows)
  return partitions.map((partition, index) => {
    const own = sealed.get(partition.id) ?? NOTHING_SEALED
    return wholeReceipt(partition, index === 0 ? [own, ...others].reduce(added) : own)
  })
}

/** `[[partition, rows, filtered, bytes, rowsWritten, bytesWritten], …]` */
export function sealedToJson(receipts: readonly Receipt[]): Json {
  const sums = new Map<string, SealedRows>()
  for (const { extent, rowsWritten, bytesWritten } of receipts) {
    const { rows, filtered, bytes } = extent
    const sum = sums.get(extent.partition) ?? NOTHING_SEALED
    sums.set(extent.partition, added(sum, { rows, filtered, bytes, rowsWritten, bytesWritten }))
  }
  return [...sums].map(([id, sum]) => [id, sum.rows, sum.filtered, sum.bytes, sum.rowsWritten, sum.bytesWritten])
}

/** @throws SLUICE_STATE */
export function sealedFromJson(json: Json): Map<string, SealedRows> {
  const sums = new Map<string, SealedRows>()
  for (const entry of Array.isArray(json) ? json : []) {
    const [id, ...counts]: readonly Json[] = Array.isArray(entry) ? entry : []
    const [rows = 0, filtered = 0, bytes = 0, rowsWritten = 0, bytesWritten = 0] = counts.filter(
      (count) => typeof count === 'number',
    )
    if (typeof id !== 'string') throw new SluiceError('SLUICE_STATE', 'the record of a finished output is damaged')
    sums.set(id, { rows, filtered, bytes, rowsWritten, bytesWritten })
  }
  return sums
}

function added(a: SealedRows, b: SealedRows): SealedRows {
  return {
    rows: a.rows + b.rows,
    filtered: a.filtered + b.filtered,
    bytes: a.bytes + b.bytes,
    rowsWritten: a.rowsWritten + b.rowsWritten,
    bytesWritten: a.bytesWritten + b.bytesWritten,
  }
}
