import type { ColumnVector } from '../../src/core/batch.ts'

/**
 * A vector's values one by one, read as Arrow says and in no hurry: integers and decimals (their unscaled integer) as BigInt, numbers, texts,
 * bytes as hexadecimal digits, arrays.
 */
export function vectorValues(vector: ColumnVector): unknown[] {
  const { validity, length, nulls } = vector
  const isThere = (i: number): boolean => validity === null || (((validity[i >> 3] ?? 0) >> (i & 7)) & 1) === 1
  const values = Array.from({ length }, (_, i) => (isThere(i) ? valueAt(vector, i) : null))
  const missing = values.filter((value) => value === null).length
  if (missing !== nulls) throw new Error(`${missing} values are missing, ${nulls} are said to be`)
  const isMiscounted = vector.offsets !== null && vector.offsets.length !== length + 1
  if (isMiscounted) throw new Error(`${vector.offsets?.length} offsets for ${length} values`)
  return values
}

function valueAt({ type, values, offsets, items }: ColumnVector, i: number): unknown {
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength)
  const [from, to] = [offsets?.[i] ?? 0, offsets?.[i + 1] ?? 0]
  switch (type.kind) {
    case 'bool':
      return ((view.getUint8(i >> 3) >> (i & 7)) & 1) === 1
    case 'int16':
      return BigInt(view.getInt16(2 * i, true))
    case 'int32':
    case 'date':
      return BigInt(view.getInt32(4 * i, true))
    case 'int64':
    case 'time':
    case 'timestamp':
      return view.getBigInt64(8 * i, true)
    case 'float32':
      return view.getFloat32(4 * i, true)
    case 'float64':
      return view.getFloat64(8 * i, true)
    case 'decimal':
      return (view.getBigInt64(16 * i + 8, true) << 64n) | view.getBigUint64(16 * i, true)
    case 'uuid':
      return Buffer.from(values.subarray(16 * i, 16 * i + 16)).toString('hex')
    case 'binary':
      return Buffer.from(values.subarray(from, to)).toString('hex')
    case 'list':
      return items === null ? undefined : vectorValues(items).slice(from, to)
    default:
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(values.subarray(from, to))
  }
}
