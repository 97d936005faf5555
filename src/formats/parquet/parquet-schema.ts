import type { ColumnType } from '../../core/batch.ts'
import type { Column, NeutralType } from '../../core/schema.ts'
import { broken } from './read-footer.ts'
import type { ThriftStruct } from './raw-thrift.ts'

/** Fields of parquet.thrift, SchemaElement; physical types; logical types (LogicalType) and their older names (ConvertedType). */
const ELEMENT = {
  type: 1,
  length: 2,
  repetition: 3,
  name: 4,
  children: 5,
  converted: 6,
  scale: 7,
  precision: 8,
  logical: 10,
}
const PHYSICAL = ['bool', 'int32', 'int64', 'int96', 'float', 'double', 'bytes', 'fixed'] as const
const REPEATED = 2
const REQUIRED = 0
const LOGICAL: Readonly<Record<number, string>> = {
  1: 'string',
  2: 'map',
  3: 'list',
  4: 'enum',
  5: 'decimal',
  6: 'date',
  7: 'time',
  8: 'timestamp',
  10: 'integer',
  11: 'unknown',
  12: 'json',
  13: 'bson',
  14: 'uuid',
  15: 'float16',
}
const CONVERTED: readonly string[] = [
  ...['string', 'map', 'map', 'list', 'enum', 'decimal', 'date', 'time', 'time', 'timestamp', 'timestamp'],
  ...[
    'integer',
    'integer',
    'integer',
    'integer',
    'integer',
    'integer',
    'integer',
    'integer',
    'json',
    'bson',
    'interval',
  ],
]
/** Groups in one another: bounds the stack. */
const DEEPEST = 64

/** One element of a schema with those below it. */
export interface SchemaNode {
  readonly name: string
  readonly physical: (typeof PHYSICAL)[number] | null
  /** `string`, `decimal`, `uuid` …; null where the file says no more than the physical type. */
  readonly logical: string | null
  readonly precision: number
  readonly scale: number
  readonly utc: boolean
  readonly bits: number
  readonly signed: boolean
  readonly required: boolean
  readonly repeated: boolean
  readonly children: readonly SchemaNode[]
}

/** The columns' nodes of a footer. @throws SLUICE_PARQUET */
export function schemaNodes(footer: ThriftStruct): readonly SchemaNode[] {
  const elements = footer.structs(2)
  let at = 0
  const next = (depth: number): SchemaNode => {
    const element = elements[at]
    if (element === undefined || depth > DEEPEST) throw broken('its schema makes no sense')
    at += 1
    const count = element.integer(ELEMENT.children) ?? 0
    const children: SchemaNode[] = []
    for (let i = 0; i < count; i += 1) children.push(next(depth + 1))
    return nodeOf(element, children)
  }
  return next(0).children
}

function nodeOf(element: ThriftStruct, children: readonly SchemaNode[]): SchemaNode {
  const type = element.integer(ELEMENT.type)
  const repetition = element.integer(ELEMENT.repetition)
  return {
    name: element.text(ELEMENT.name) ?? '',
    physical: children.length > 0 || type === undefined ? null : (PHYSICAL[type] ?? null),
    ...annotation(element),
    required: repetition === REQUIRED,
    repeated: repetition === REPEATED,
    children,
  }
}

/** What the logical type says, or where there is none its older name. */
function annotation(
  element: ThriftStruct,
): Pick<SchemaNode, 'logical' | 'precision' | 'scale' | 'utc' | 'bits' | 'signed'> {
  const [id = 0, field] = element.struct(ELEMENT.logical)?.entries()[0] ?? []
  const detail = typeof field?.value === 'object' && 'struct' in field.value ? field.value : null
  const converted = element.integer(ELEMENT.converted) ?? -1
  const logical = LOGICAL[id] ?? CONVERTED[converted] ?? null
  const plain = {
    logical,
    scale: element.integer(ELEMENT.scale) ?? 0,
    precision: element.integer(ELEMENT.precision) ?? 0,
    // The older names of times and timestamps mean UTC (LogicalTypes.md).
    utc: logical === 'time' || logical === 'timestamp',
    bits: convertedBits(converted),
    signed: converted < UINT_8 || converted > UINT_64,
  }
  if (detail === null) return plain
  if (logical === 'decimal')
    return { ...plain, scale: detail.integer(1) ?? plain.scale, precision: detail.integer(2) ?? plain.precision }
  if (logical === 'integer') return { ...plain, bits: detail.integer(1) ?? plain.bits, signed: detail.get(2) === true }
  return { ...plain, utc: detail.get(1) === true }
}

/** Of ConvertedType; then INT_8 to INT_64. */
const UINT_8 = 11
const UINT_64 = 14
const INT_64 = 18

function convertedBits(converted: number): number {
  return converted < UINT_8 || converted > INT_64 ? 0 : 8 << ((converted - UINT_8) % 4)
}

/** The leaves below nodes, in the order in which their column chunks lie. */
export function leavesOf(nodes: readonly SchemaNode[]): readonly SchemaNode[] {
  return nodes.flatMap((node) => (node.children.length === 0 ? [node] : leavesOf(node.children)))
}

/** A column as sluice names its type; `nativeType` is Parquet's own. */
export function columnOf(node: SchemaNode): Column {
  const layout = layoutOfNode(node)
  return {
    name: node.name,
    type: neutralOf(node),
    nativeType: nativeName(node),
    nativeTo: 'parquet',
    nullable: !node.required,
    ...(layout === null ? {} : { layout }),
  }
}

function neutralOf(node: SchemaNode): NeutralType {
  if (node.repeated || node.logical === 'list') return 'list'
  if (node.children.length > 0) return node.logical === 'map' ? 'map' : 'json'
  switch (node.logical) {
    case 'string':
    case 'enum':
    case 'uuid':
    case 'interval':
    case 'unknown':
      return 'string'
    case 'date':
    case 'time':
    case 'json':
    case 'integer':
      return node.logical
    case 'decimal':
    case 'float16':
      return 'number'
    case 'timestamp':
      return node.utc ? 'timestamptz' : 'timestamp'
    default:
      return neutralOfPhysical(node)
  }
}

function neutralOfPhysical({ physical }: SchemaNode): NeutralType {
  switch (physical) {
    case 'bool':
      return 'boolean'
    case 'int32':
    case 'int64':
      return 'integer'
    case 'float':
    case 'double':
      return 'number'
    case 'int96':
      return 'timestamp'
    default:
      return 'binary'
  }
}

function nativeName(node: SchemaNode): string {
  if (node.logical === 'decimal') return `decimal(${node.precision},${node.scale})`
  if (node.logical === 'integer' && node.bits > 0) return `${node.signed ? 'int' : 'uint'}${node.bits}`
  if (node.repeated || node.logical === 'list') return 'list'
  return node.logical ?? node.physical ?? 'struct'
}

/** How its values would lie in columns; null where that is not simple. */
function layoutOfNode(node: SchemaNode): ColumnType | null {
  if (node.logical === 'list') {
    const item = elementLayout(node)
    return item === null ? null : { kind: 'list', item }
  }
  if (node.repeated || node.children.length > 0) return null
  switch (node.logical) {
    case 'string':
    case 'enum':
      return { kind: 'utf8' }
    case 'json':
    case 'uuid':
    case 'date':
    case 'time':
      return { kind: node.logical }
    case 'timestamp':
      return { kind: 'timestamp', utc: node.utc }
    case 'decimal':
      return node.precision <= 38 ? { kind: 'decimal', precision: node.precision, scale: node.scale } : null
    case 'integer':
      return node.signed ? { kind: node.bits <= 16 ? 'int16' : node.bits === 32 ? 'int32' : 'int64' } : null
    case null:
      return layoutOfPhysical(node)
    default:
      return null
  }
}

/** Three levels as the format has them: the list, its repeated group, the element (LogicalTypes.md, "Lists"). Old writers have two. */
function elementLayout(list: SchemaNode): ColumnType | null {
  const [group] = list.children
  const [element, another] = group?.children ?? []
  const isElement = another !== undefined || group?.name === 'array' || group?.name === `${list.name}_tuple`
  return element === undefined || isElement ? null : layoutOfNode(element)
}

function layoutOfPhysical({ physical }: SchemaNode): ColumnType | null {
  switch (physical) {
    case 'bool':
    case 'int32':
    case 'int64':
      return { kind: physical }
    case 'float':
      return { kind: 'float32' }
    case 'double':
      return { kind: 'float64' }
    case 'bytes':
    case 'fixed':
      return { kind: 'binary' }
    default:
      return null
  }
}
