import type { ColumnType } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import { TYPE, readThrift, thriftStruct, writeThrift } from './raw-thrift.ts'
import type { ThriftStruct } from './raw-thrift.ts'

/** Fields of parquet.thrift: FileMetaData, SchemaElement, LogicalType, ConvertedType. */
const SCHEMA = 2
const CONVERTED_TYPE = 6
const LOGICAL_TYPE = 10
const LOGICAL = { json: 12, uuid: 14 }
const CONVERTED_JSON = 19

/** Says in a footer's schema what Arrow's types do not: which texts are JSON and which 16 bytes are UUIDs. */
export function patchSchema(footer: Uint8Array, types: readonly ColumnType[]): Uint8Array {
  const file = readThrift(footer)
  const elements = file.structs(SCHEMA)
  let at = 1
  for (const type of types) at = patchColumn(elements, at, type)
  if (at !== elements.length)
    throw new SluiceError('SLUICE_INTERNAL', 'a Parquet schema of another shape than its columns')
  return writeThrift(file)
}

/** Elements lie depth first; a list is three of them: the list, its repeated group, its element. Returns where the next column begins. */
function patchColumn(elements: readonly ThriftStruct[], at: number, type: ColumnType): number {
  if (type.kind === 'list') return patchColumn(elements, at + 2, type.item)
  const element = elements[at]
  if (type.kind === 'json')
    element?.set(CONVERTED_TYPE, TYPE.i32, CONVERTED_JSON).set(LOGICAL_TYPE, TYPE.struct, logical(LOGICAL.json))
  if (type.kind === 'uuid') element?.set(LOGICAL_TYPE, TYPE.struct, logical(LOGICAL.uuid))
  return at + 1
}

function logical(id: number): ThriftStruct {
  return thriftStruct([id, TYPE.struct, thriftStruct()])
}
