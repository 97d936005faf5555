import type { ColumnVector } from '../../core/batch.ts'

/** Values that are looked at, spread over the row group. */
const SAMPLE = 2048
/** Above this share of different values in the sample a dictionary would be nearly as long as the column: of 10,000 values in all it is 0.9. */
const MOST_DIFFERENT = 0.9
/** Bytes of a value, by kind; texts have offsets. */
const WIDTHS: Readonly<Record<string, number>> = {
  int16: 2,
  int32: 4,
  int64: 8,
  float32: 4,
  float64: 8,
  date: 4,
  time: 8,
  timestamp: 8,
  decimal: 16,
  uuid: 16,
}

/**
 * Whether a dictionary is worth its price for a column of a row group: not where nearly every value is another one (ids, measurements), which costs
 * most of the time that writing takes and is thrown away in the end.
 */
export function dictionaryPays(vector: ColumnVector): boolean {
  const bytes = Buffer.from(vector.values.buffer, vector.values.byteOffset, vector.values.byteLength)
  const width = WIDTHS[vector.type.kind]
  const { offsets, length } = vector
  if (length === 0 || vector.items !== null || (width === undefined && offsets === null)) return true
  const step = Math.max(1, Math.floor(length / SAMPLE))
  const seen = new Set<string>()
  let looked = 0
  for (let i = 0; i < length && looked < SAMPLE; i += step) {
    if (vector.validity !== null && (((vector.validity[i >>> 3] ?? 0) >>> (i & 7)) & 1) === 0) continue
    const [start, end] = offsets === null ? [i * (width ?? 0), (i + 1) * (width ?? 0)] : [offsets[i], offsets[i + 1]]
    seen.add(bytes.toString('latin1', start, end))
    looked += 1
  }
  return seen.size <= looked * MOST_DIFFERENT
}
