import type { Value } from '../../../core/batch.ts'
import { parseArray } from './array-text.ts'
import type { ArrayValue } from './array-text.ts'

/** A column's type, as far as its text is concerned. OIDs are of base types, as in pg_type.dat. */
export interface TextType {
  readonly baseTypeOid: number
  readonly element: { readonly typeOid: number } | null
}

/** A value that has no form of its own among Values: JSON has one null, and arrays that count from 1. */
export interface SpecialText {
  readonly kind: 'special'
  /** What it is, for people. */
  readonly what: string
}

export type Converter = (text: string) => Value | SpecialText

const BOOL = 16
const BYTEA = 17
const JSON_TYPE = 114
const JSONB = 3802
const TIMESTAMP = 1114
const TIMESTAMPTZ = 1184
const BOX = 603
/** int2, int4, int8, oid, float4, float8, numeric. */
const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 1700])

/** How the text of a column's values (as our sessions have it: ISO dates, hex bytea, shortest floats that are exact) becomes Values. */
export function converterOf(type: TextType): Converter {
  const { element } = type
  if (element === null) return isJson(type.baseTypeOid) ? jsonColumn : scalarConverter(type.baseTypeOid)
  const json = jsonConverter(element.typeOid)
  const delimiter = element.typeOid === BOX ? ';' : ','
  return (text) => {
    const array = parseArray(text, delimiter)
    if (array === null) return text
    if (text.startsWith('['))
      return special(`an array whose first index is not 1 (${text.slice(0, text.indexOf('='))})`)
    const what = isJson(element.typeOid) ? mergedByJson(array) : null
    return what === null ? { kind: 'json', text: arrayJson(array, json) } : special(what)
  }
}

/** Whether values of this column may be special. */
export function mayBeSpecial({ element, baseTypeOid }: TextType): boolean {
  return element !== null || isJson(baseTypeOid)
}

function special(what: string): SpecialText {
  return { kind: 'special', what }
}

function isJson(oid: number): boolean {
  return oid === JSON_TYPE || oid === JSONB
}

/** NULL is JSON's null everywhere else: whoever reads it can't know which it was. */
function jsonColumn(text: string): Value | SpecialText {
  return text.trim() === 'null' ? special("JSON's null, which is not NULL,") : { kind: 'json', text: onOneLine(text) }
}

/** What of an array of json would be something else, as JSON is nested. */
function mergedByJson(array: readonly ArrayValue[]): string | null {
  if (array.some((item) => typeof item === 'object' && item !== null)) return 'an array of json of several dimensions'
  const hasNull = array.some((item) => typeof item === 'string' && item.trim() === 'null')
  return hasNull ? "an array that holds JSON's null, which is not NULL," : null
}

function scalarConverter(oid: number): (text: string) => Value {
  if (NUMBERS.has(oid)) return numberOf
  switch (oid) {
    case BOOL:
      return (text) => (text === 't' ? true : text === 'f' ? false : text)
    case BYTEA:
      return (text) => (text.startsWith('\\x') ? new Uint8Array(Buffer.from(text.slice(2), 'hex')) : text)
    case JSON_TYPE:
    case JSONB:
      return (text) => ({ kind: 'json', text: onOneLine(text) })
    case TIMESTAMP:
    case TIMESTAMPTZ:
      return isoTime
    default:
      return (text) => text
  }
}

/** NaN and the infinities are no numbers of JSON. */
function numberOf(text: string): Value {
  const last = text.charCodeAt(text.length - 1)
  return last >= 48 && last <= 57 ? { kind: 'number', text } : text
}

/** `2020-01-02 03:04:05.5+05:30` as ISO 8601 has it, +00 as Z; infinity and years before Christ stay as they are. */
function isoTime(text: string): string {
  const parts = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?:([+-]\d\d)(:\d\d(?::\d\d)?)?)?$/.exec(text)
  if (parts === null) return text
  const [, date, time, hours, minutes] = parts
  const zone = hours === undefined ? '' : hours === '+00' && minutes === undefined ? 'Z' : hours + (minutes ?? ':00')
  return `${date}T${time}${zone}`
}

/** An element as JSON text. */
function jsonConverter(oid: number): (text: string) => string {
  const convert = scalarConverter(oid)
  return (text) => {
    const value = convert(text)
    if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value)
    if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'))
    return value === null || value === undefined ? 'null' : value.text
  }
}

function arrayJson(array: readonly ArrayValue[], json: (text: string) => string): string {
  const items = array.map((item) =>
    item === null ? 'null' : typeof item === 'string' ? json(item) : arrayJson(item, json),
  )
  return `[${items.join(',')}]`
}

/** A json value keeps the line ends that it was written with; outside its strings they mean nothing, and inside none can be. */
function onOneLine(text: string): string {
  return /[\n\r]/.test(text) ? text.replace(/[ \t]*[\n\r]+[ \t\n\r]*/g, ' ') : text
}
