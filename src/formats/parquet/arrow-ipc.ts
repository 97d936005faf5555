import {
  Binary,
  Bool,
  DateDay,
  Decimal,
  Field,
  FixedSizeBinary,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  List,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimeMicrosecond,
  TimestampMicrosecond,
  Utf8,
  makeData,
  tableToIPC,
} from 'apache-arrow'
import type { Data, DataType } from 'apache-arrow'
import type { ColumnType, ColumnVector } from '../../core/batch.ts'

/** The bytes of an Arrow IPC stream with one record batch: the vectors' buffers as they lie, copied once. */
export function toArrowStream(names: readonly string[], vectors: readonly ColumnVector[], rows: number): Uint8Array {
  const fields = vectors.map((vector, i) => new Field(names[i] ?? '', arrowType(vector.type), true))
  const schema = new Schema(fields)
  const data = makeData({
    type: new Struct(fields),
    length: rows,
    nullCount: 0,
    children: vectors.map((vector) => arrowData(vector)),
  })
  return tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream')
}

function arrowType(type: ColumnType): DataType {
  switch (type.kind) {
    case 'bool':
      return new Bool()
    case 'int16':
      return new Int16()
    case 'int32':
      return new Int32()
    case 'int64':
      return new Int64()
    case 'float32':
      return new Float32()
    case 'float64':
      return new Float64()
    case 'utf8':
    case 'json':
      return new Utf8()
    case 'binary':
      return new Binary()
    case 'uuid':
      return new FixedSizeBinary(16)
    case 'date':
      return new DateDay()
    case 'time':
      return new TimeMicrosecond()
    case 'timestamp':
      return new TimestampMicrosecond(type.utc ? 'UTC' : null)
    case 'decimal':
      return new Decimal(type.scale, type.precision, 128)
    case 'list':
      // "element" is what the Parquet format calls it (LogicalTypes.md, "Lists").
      return new List(new Field('element', arrowType(type.item), true))
  }
}

function arrowData(vector: ColumnVector): Data {
  const type = arrowType(vector.type)
  const { length, nulls, validity, offsets, items } = vector
  return makeData({
    type,
    length,
    nullCount: nulls,
    ...(validity === null ? {} : { nullBitmap: validity }),
    ...(offsets === null ? {} : { valueOffsets: offsets }),
    ...(items === null ? { data: valuesOf(vector) } : { child: arrowData(items) }),
  })
}

/** The values' bytes as numbers of the type's width, which Arrow's library wants. */
function valuesOf({ type, values }: ColumnVector): ArrayBufferView {
  const { buffer, byteOffset, byteLength } = values
  switch (type.kind) {
    case 'int16':
      return new Int16Array(buffer, byteOffset, byteLength / 2)
    case 'int32':
    case 'date':
      return new Int32Array(buffer, byteOffset, byteLength / 4)
    case 'float32':
      return new Float32Array(buffer, byteOffset, byteLength / 4)
    case 'float64':
      return new Float64Array(buffer, byteOffset, byteLength / 8)
    case 'int64':
    case 'time':
    case 'timestamp':
      return new BigInt64Array(buffer, byteOffset, byteLength / 8)
    case 'decimal':
      return new Uint32Array(buffer, byteOffset, byteLength / 4)
    default:
      return values
  }
}
