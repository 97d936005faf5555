import type { ColumnType, Value } from '../../core/batch.ts'
import { plainJson } from '../typed-json.ts'
import { daysOf, doubleOf, floatOf, integerOf, microsOf, stampOf, unitsOf } from './exact-text.ts'
import type { Misfit } from './exact-text.ts'
import { jsonElements } from './json-elements.ts'
import type { VectorBuilder } from './vector-builder.ts'

const UUID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i
const JSON_SIMPLE = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

/** Adds a value to its column; null where it fits, else why it does not (nothing is added then). `typed`: a text is a text, not JSON or a number. */
export function addValue(to: VectorBuilder, value: Value, typed: boolean): Misfit | null {
  if (value === null || value === undefined) {
    to.addNull()
    return null
  }
  const { type } = to
  switch (type.kind) {
    case 'utf8':
      to.addText(textOf(value))
      return null
    case 'binary':
      if (!(value instanceof Uint8Array)) return 'no'
      to.addBytes(value)
      return null
    case 'json':
      return addJson(to, value, typed)
    case 'bool':
      return addBool(to, value)
    case 'uuid':
      return addUuid(to, textOf(value))
    case 'list':
      return addList(to, value)
    case 'float32':
    case 'float64':
      return addFloat(to, type.kind === 'float64' ? doubleOf(textOf(value)) : floatOf(textOf(value)))
    default:
      return addInteger(to, integerValue(type, textOf(value)))
  }
}

function integerValue(type: ColumnType, text: string): bigint | Misfit {
  switch (type.kind) {
    case 'int16':
      return integerOf(text, 16)
    case 'int32':
      return integerOf(text, 32)
    case 'decimal':
      return unitsOf(text, type.precision, type.scale)
    case 'date': {
      const days = daysOf(text)
      return typeof days === 'number' ? BigInt(days) : days
    }
    case 'time':
      return microsOf(text)
    case 'timestamp':
      return stampOf(text, type.utc)
    default:
      return integerOf(text, 64)
  }
}

function addInteger(to: VectorBuilder, value: bigint | Misfit): Misfit | null {
  if (typeof value === 'string') return value
  to.addInteger(value)
  return null
}

function addFloat(to: VectorBuilder, value: number | Misfit): Misfit | null {
  if (typeof value === 'string') return value
  to.addFloat(value)
  return null
}

function addBool(to: VectorBuilder, value: Value): Misfit | null {
  const isTrue = value === true || value === 'true' || value === 't'
  if (!isTrue && value !== false && value !== 'false' && value !== 'f') return 'no'
  to.addBool(isTrue)
  return null
}

function addUuid(to: VectorBuilder, text: string): Misfit | null {
  if (!UUID.test(text)) return 'no'
  to.addBytes(Buffer.from(text.replaceAll('-', ''), 'hex'))
  return null
}

function addJson(to: VectorBuilder, value: Exclude<Value, null | undefined>, typed: boolean): Misfit | null {
  if (typeof value === 'string' && !typed && !isJson(value)) return 'no'
  if (typeof value === 'string' && typed) to.addText(JSON.stringify(value))
  else if (value instanceof Uint8Array) to.addText(JSON.stringify(textOf(value)))
  else if (typeof value === 'object' && value.kind === 'number' && !JSON_SIMPLE.test(value.text))
    to.addText(JSON.stringify(value.text))
  else to.addText(textOf(value))
  return null
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function addList(to: VectorBuilder, value: Exclude<Value, null | undefined>): Misfit | null {
  const elements = jsonElements(textOf(value))
  if (elements === null || to.items === null) return 'no'
  const { items } = to
  const values = elements.map((element) => elementValue(element, items.type))
  for (const element of values) {
    const misfit = addValue(items, element, false)
    // Elements that are in already belong to no list then: the job ends with the error that follows.
    if (misfit !== null) return misfit === 'special' ? 'no' : misfit
  }
  to.addList()
  return null
}

function elementValue(element: string, type: ColumnType): Value {
  if (element === 'null') return null
  if (type.kind === 'json' || type.kind === 'list') return { kind: 'json', text: element }
  if (!element.startsWith('"')) return { kind: 'json', text: element }
  const text: unknown = JSON.parse(element)
  if (typeof text !== 'string') return element
  return type.kind === 'binary' ? Buffer.from(text, 'base64') : text
}

/** A value's text: binary in base64, nested values as JSON. */
function textOf(value: Exclude<Value, null | undefined>): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  return value.kind === 'typed-json' ? plainJson(value.text) : value.text
}
