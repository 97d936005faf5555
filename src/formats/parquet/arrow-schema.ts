import { Builder } from 'flatbuffers'
import type { ColumnType } from '../../core/batch.ts'

/** Numbers of the format's unions and enums (Arrow, format/Schema.fbs and Message.fbs). */
const TYPE = {
  int: 2,
  float: 3,
  binary: 4,
  utf8: 5,
  bool: 6,
  decimal: 7,
  date: 8,
  time: 9,
  timestamp: 10,
  list: 12,
  fixedBytes: 15,
}
const UNIT = { day: 0, micro: 2 }
const PRECISION = { single: 1, double: 2 }
export const HEADER = { schema: 1, recordBatch: 3 }
/** MetadataVersion.V5. */
const VERSION = 4

type Offset = number

/** The metadata of a schema's message: all columns may be null. */
export function schemaMetadata(names: readonly string[], types: readonly ColumnType[]): Uint8Array {
  const builder = new Builder(1024)
  builder.forceDefaults(true)
  const fields = types.map((type, i) => addField(builder, names[i] ?? '', type))
  const list = addOffsets(builder, fields)
  builder.startObject(2)
  builder.addFieldInt16(0, 0, 0)
  builder.addFieldOffset(1, list, 0)
  return finishMessage(builder, { kind: HEADER.schema, header: builder.endObject(), bodyBytes: 0 })
}

/** The table that every message's metadata is. `bodyBytes`: of what comes behind it. */
export function finishMessage(
  builder: Builder,
  o: { readonly kind: number; readonly header: Offset; readonly bodyBytes: number },
): Uint8Array {
  builder.startObject(4)
  builder.addFieldInt64(3, BigInt(o.bodyBytes), 0n)
  builder.addFieldOffset(2, o.header, 0)
  builder.addFieldInt16(0, VERSION, 0)
  builder.addFieldInt8(1, o.kind, 0)
  builder.finish(builder.endObject())
  return builder.asUint8Array()
}

function addField(builder: Builder, name: string, type: ColumnType): Offset {
  // "element" is what the Parquet format calls it (LogicalTypes.md, "Lists").
  const items = type.kind === 'list' ? [addField(builder, 'element', type.item)] : []
  const children = addOffsets(builder, items)
  const text = builder.createString(name)
  const own = addType(builder, type)
  builder.startObject(6)
  builder.addFieldOffset(0, text, 0)
  builder.addFieldOffset(3, own.at, 0)
  builder.addFieldOffset(5, children, 0)
  builder.addFieldInt8(1, 1, 0)
  builder.addFieldInt8(2, own.type, 0)
  return builder.endObject()
}

function addOffsets(builder: Builder, offsets: readonly Offset[]): Offset {
  builder.startVector(4, offsets.length, 4)
  for (const offset of offsets.toReversed()) builder.addOffset(offset)
  return builder.endVector()
}

interface TypeTable {
  readonly type: number
  readonly at: Offset
}

function addType(builder: Builder, type: ColumnType): TypeTable {
  switch (type.kind) {
    case 'bool':
      return table(builder, TYPE.bool)
    case 'int16':
      return integer(builder, 16)
    case 'int32':
      return integer(builder, 32)
    case 'int64':
      return integer(builder, 64)
    case 'float32':
      return table(builder, TYPE.float, () => builder.addFieldInt16(0, PRECISION.single, 0))
    case 'float64':
      return table(builder, TYPE.float, () => builder.addFieldInt16(0, PRECISION.double, 0))
    case 'utf8':
    case 'json':
      return table(builder, TYPE.utf8)
    case 'binary':
      return table(builder, TYPE.binary)
    case 'uuid':
      return table(builder, TYPE.fixedBytes, () => builder.addFieldInt32(0, 16, 0))
    case 'date':
      return table(builder, TYPE.date, () => builder.addFieldInt16(0, UNIT.day, 1))
    case 'time':
      return table(builder, TYPE.time, () => {
        builder.addFieldInt32(1, 64, 32)
        builder.addFieldInt16(0, UNIT.micro, 1)
      })
    case 'timestamp':
      return timestamp(builder, type.utc)
    case 'decimal':
      return table(builder, TYPE.decimal, () => {
        builder.addFieldInt32(0, type.precision, 0)
        builder.addFieldInt32(1, type.scale, 0)
        builder.addFieldInt32(2, 128, 128)
      })
    case 'list':
      return table(builder, TYPE.list)
  }
}

function integer(builder: Builder, bits: number): TypeTable {
  return table(builder, TYPE.int, () => {
    builder.addFieldInt32(0, bits, 0)
    builder.addFieldInt8(1, 1, 0)
  })
}

function timestamp(builder: Builder, utc: boolean): TypeTable {
  const zone = utc ? builder.createString('UTC') : 0
  return table(builder, TYPE.timestamp, () => {
    if (utc) builder.addFieldOffset(1, zone, 0)
    builder.addFieldInt16(0, UNIT.micro, 0)
  })
}

/** A type's own table, which has three fields at most. */
function table(builder: Builder, type: number, fill?: () => void): TypeTable {
  builder.startObject(3)
  fill?.()
  return { type, at: builder.endObject() }
}
