import { DateUnit, Type, tableFromIPC } from 'apache-arrow'
import type { Data } from 'apache-arrow'
import type { Value } from '../../core/batch.ts'
import { broken } from './read-footer.ts'
import type { SchemaNode } from './parquet-schema.ts'
import { clockText, dateText, int96Text, stampText, unitsPerDay } from './time-text.ts'
import { decimalText, doubleText, floatText, halfText, intervalText, uuidText } from './value-text.ts'

/** Months, days and milliseconds, 32 bits each. */
const INTERVAL_BYTES = 12

/** The value at a place, and its JSON text where it lies inside another. */
type Getter = (at: number) => Value
/** Leaves of the Parquet schema in order: Arrow's leaves are the same, one by one. */
type Leaves = Iterator<SchemaNode>

/** What Arrow's types have besides, each some of it: the class of a type is known by its id only. */
interface Details {
  readonly unit: number
  readonly timezone: string | null | undefined
  readonly precision: number
  readonly scale: number
  readonly bitWidth: number
  readonly byteWidth: number
}

function detailsOf(data: Data): Details {
  return data.type as unknown as Details
}

/** Rows of an Arrow IPC stream. @throws SLUICE_PARQUET where a column is of a type that has no values here */
export function arrowRows(stream: Uint8Array, leaves: readonly SchemaNode[]): Value[][] {
  const rows: Value[][] = []
  for (const batch of tableFromIPC(stream).batches) {
    const next = leaves[Symbol.iterator]()
    const getters = batch.data.children.map((child) => getterOf(child, next))
    for (let at = 0; at < batch.numRows; at += 1) rows.push(getters.map((get) => get(at)))
  }
  return rows
}

function getterOf(data: Data, leaves: Leaves): Getter {
  const get = presentGetter(data, leaves)
  if (data.nullCount === 0 || data.typeId === Type.Null) return get
  const { nullBitmap, offset } = data
  return (at) => {
    const bit = at + offset
    return ((nullBitmap[bit >> 3] ?? 0) >> (bit & 7)) & 1 ? get(at) : null
  }
}

function presentGetter(data: Data, leaves: Leaves): Getter {
  if (data.typeId === Type.Struct || data.typeId === Type.List || data.typeId === Type.Map)
    return nestedGetter(data, leaves)
  const leaf: SchemaNode | undefined = leaves.next().value
  const { values } = data
  const type = detailsOf(data)
  const { unit } = type
  switch (data.typeId) {
    case Type.Null:
      return () => null
    case Type.Bool: {
      const { offset } = data
      return (at) => ((Number(values[(at + offset) >> 3] ?? 0) >> ((at + offset) & 7)) & 1) === 1
    }
    case Type.Int:
      return (at) => ({ kind: 'number', text: String(values[at]) })
    case Type.Float:
      return floatGetter(data)
    case Type.Utf8:
      return utf8Getter(data, leaf?.logical === 'json')
    case Type.Binary:
      return bytesGetter(data)
    case Type.FixedSizeBinary:
      return fixedGetter(data, leaf)
    case Type.Date:
      return (at) => dateText(unit === DateUnit.DAY ? Number(values[at]) : Number(values[at]) / 86_400_000)
    case Type.Time:
      return timeGetter(data, leaf)
    case Type.Timestamp:
      return (at) => stampText(BigInt(values[at] ?? 0), unit, Boolean(type.timezone))
    case Type.Decimal:
      return (at) => ({ kind: 'number', text: decimalText(values, at, type) })
    default:
      throw broken(`column ${leaf?.name ?? ''} is of a type that sluice does not read (${Type[data.typeId] ?? '?'})`)
  }
}

/** A time of UTC that was moved past midnight (DuckDB's TIMETZ) is that of the day before or after. */
function timeGetter(data: Data, leaf: SchemaNode | undefined): Getter {
  const { values } = data
  const { unit } = detailsOf(data)
  const day = unitsPerDay(unit)
  return (at) => {
    const value = BigInt(values[at] ?? 0)
    if (value >= 0n && value <= day) return clockText(value, unit)
    if (leaf?.utc === true) return clockText(((value % day) + day) % day, unit)
    throw broken(`column ${leaf?.name ?? ''} has a time that no day has (${value})`)
  }
}

function floatGetter(data: Data): Getter {
  const { values } = data
  const { precision } = detailsOf(data)
  const text = precision === 0 ? halfText : precision === 1 ? floatText : doubleText
  return (at) => {
    const shown = text(Number(values[at]))
    return /[NI]/.test(shown) ? shown : { kind: 'number', text: shown }
  }
}

function utf8Getter(data: Data, json: boolean): Getter {
  const bytes = bytesGetter(data)
  return (at) => {
    const { buffer, byteOffset, byteLength } = bytes(at)
    const text = Buffer.from(buffer, byteOffset, byteLength).toString('utf8')
    return json ? { kind: 'json', text } : text
  }
}

function bytesGetter({ values, valueOffsets }: Data): (at: number) => Uint8Array {
  // A copy: a view would keep the whole batch in memory for as long as one value is.
  return (at) => Uint8Array.from(values.subarray(valueOffsets[at] ?? 0, valueOffsets[at + 1] ?? 0) as Uint8Array)
}

function fixedGetter(data: Data, leaf: SchemaNode | undefined): Getter {
  const { values } = data
  const width = detailsOf(data).byteWidth
  const get = (at: number): Uint8Array => Uint8Array.from(values.subarray(at * width, (at + 1) * width) as Uint8Array)
  if (leaf?.physical === 'int96') return (at) => int96Text(get(at))
  if (leaf?.logical === 'interval' && width === INTERVAL_BYTES) return (at) => intervalText(get(at))
  return leaf?.logical === 'uuid' ? (at) => uuidText(get(at)) : get
}

function nestedGetter(data: Data, leaves: Leaves): Getter {
  if (data.typeId === Type.Struct) {
    const json = structJson(data, leaves)
    return (at) => ({ kind: 'json', text: json(at) })
  }
  const [child] = data.children
  if (child === undefined) throw broken('a list without elements')
  return data.typeId === Type.Map
    ? mapGetter(data, entryJson(child, leaves))
    : listGetter(data, getterOf(child, leaves))
}

function mapGetter({ valueOffsets }: Data, entry: (at: number) => string): Getter {
  return (at) => {
    const entries: string[] = []
    for (let i = valueOffsets[at] ?? 0; i < (valueOffsets[at + 1] ?? 0); i += 1) entries.push(entry(i))
    return { kind: 'json', text: `{${entries.join(',')}}` }
  }
}

function listGetter({ valueOffsets, children }: Data, get: Getter): Getter {
  const isText = children[0]?.typeId === Type.Utf8
  return (at) => {
    const items: string[] = []
    let documents: number[] | undefined
    for (let i = valueOffsets[at] ?? 0; i < (valueOffsets[at + 1] ?? 0); i += 1) {
      const value = get(i)
      if (isText && typeof value === 'object' && value !== null && 'kind' in value) {
        documents ??= []
        if (value.text.trim() === 'null') documents.push(items.length)
      }
      items.push(jsonOf(value))
    }
    const text = `[${items.join(',')}]`
    return documents === undefined ? { kind: 'json', text } : { kind: 'json', text, documents }
  }
}

function elementJson(data: Data, leaves: Leaves): (at: number) => string {
  const get = getterOf(data, leaves)
  return (at) => jsonOf(get(at))
}

function structJson(data: Data, leaves: Leaves): (at: number) => string {
  const fields = data.type.children.map((field: { name: string }, i: number) => {
    const child = data.children[i]
    if (child === undefined) throw broken('a struct without its fields')
    return { key: JSON.stringify(field.name), get: elementJson(child, leaves) }
  })
  return (at) =>
    `{${fields.map(({ key, get }: { key: string; get: (at: number) => string }) => `${key}:${get(at)}`).join(',')}}`
}

/** One entry of a map; a key that is no text is written as one, since JSON has no other keys. */
function entryJson(entries: Data, leaves: Leaves): (at: number) => string {
  const [keys, values] = entries.children
  if (keys === undefined) throw broken('a map without keys')
  const key = elementJson(keys, leaves)
  const value = values === undefined ? () => 'null' : elementJson(values, leaves)
  return (at) => {
    const text = key(at)
    return `${text.startsWith('"') ? text : JSON.stringify(text)}:${value(at)}`
  }
}

function jsonOf(value: Value): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'boolean') return String(value)
  if (value instanceof Uint8Array) return `"${Buffer.from(value).toString('base64')}"`
  return value.text
}
