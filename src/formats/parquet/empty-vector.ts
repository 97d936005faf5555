import type { ColumnType, ColumnVector } from '../../core/batch.ts'

/** A vector of no values, with memory of its own. */
export function emptyVector(type: ColumnType): ColumnVector {
  const offsets = ['utf8', 'json', 'binary', 'list'].includes(type.kind) ? new Int32Array(1) : null
  const items = type.kind === 'list' ? emptyVector(type.item) : null
  return { type, length: 0, nulls: 0, validity: null, offsets, values: new Uint8Array(0), items }
}
