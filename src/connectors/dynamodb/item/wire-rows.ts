import type { Value } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'
import { shellQuote } from '../../../core/shell-quote.ts'
import { nodeToWire, textToWire } from './attribute-text.ts'
import { parseJson } from './json-wire.ts'
import { checkNumber } from './number.ts'
import type { IndexKey, KeyType } from '../table-info.ts'
import { lackingKey, type Attribute, type AttributeKind } from './type-map.ts'
import { badIndexKey, checkIndexKey, checkTyped, joinKeys, keyText, missingKey, nameless } from './validate.ts'

/** An item's attributes as they go over the wire, without the braces, and its key. */
export interface WireItem {
  readonly text: string
  readonly key: string
}

/** What becomes of a value that is not there: the attribute is left out, or NULL. */
export interface Emptiness {
  /** Of null. */
  readonly nulls: 'omit' | 'NULL'
}

/** What has to be escaped in JSON text. */
// oxlint-disable-next-line no-control-regex
const NEEDS_ESCAPE = /["\\\u0000-\u001f\ud800-\udfff]/

interface Slot {
  readonly attribute: Attribute
  /** `"name":` */
  readonly name: string
  /** `"name":{"S":"` and the like, for text that needs no look. */
  readonly plain: string
}

/** Writes parsed rows of one set of columns as items. */
export class RowItemEncoder {
  readonly #slots: readonly Slot[]
  readonly #nulls: 'omit' | 'NULL'
  readonly #missing: 'partition' | 'sort' | null

  constructor(attributes: readonly Attribute[], o: Emptiness & { readonly sorted: boolean }) {
    this.#slots = attributes.map((attribute) => ({
      attribute,
      name: `${JSON.stringify(attribute.name)}:`,
      plain: `${JSON.stringify(attribute.name)}:{"${attribute.kind === 'any' ? 'S' : attribute.kind}":"`,
    }))
    this.#nulls = o.nulls
    this.#missing = lackingKey(attributes, o.sorted)
  }

  /** @throws SLUICE_VALUE with the column */
  encode(row: readonly Value[]): WireItem {
    if (this.#missing !== null) throw missingKey(this.#missing)
    let text = ''
    let partition = ''
    let sort: string | null = null
    for (let i = 0; i < this.#slots.length; i += 1) {
      const slot = this.#slots[i] as Slot
      const value = row[i]
      const { attribute } = slot
      if (attribute.key !== null) {
        const key = keyOf(value, attribute)
        if (attribute.key === 'partition') partition = key
        else sort = key
      }
      const written = this.#attribute(value, slot)
      if (written !== '') text = text === '' ? written : `${text},${written}`
    }
    return { text, key: sort === null ? partition : joinKeys(partition, sort) }
  }

  #attribute(value: Value, slot: Slot): string {
    const { kind, name, index } = slot.attribute
    const plain = typeof value === 'string' && (kind === 'S' || kind === 'any') && name !== '' && index === undefined
    if (plain && !NEEDS_ESCAPE.test(value)) return `${slot.plain}${value}"}`
    if (value === undefined || (value === null && this.#nulls === 'omit')) return ''
    if (slot.attribute.name === '') throw nameless()
    try {
      if (index !== undefined) checkIndexValue(value, slot.attribute, index)
      if (value === null) return `${slot.name}{"NULL":true}`
      return slot.name + valueToWire(value, kind)
    } catch (error) {
      throw error instanceof SluiceError ? error.at({ column: name }) : error
    }
  }
}

/** @throws SLUICE_VALUE */
function valueToWire(value: Exclude<Value, null | undefined>, kind: AttributeKind): string {
  if (typeof value === 'string') return textToWire(value, kind)
  if (typeof value === 'boolean') {
    if (kind === 'any' || kind === 'BOOL' || kind === 'json') return `{"BOOL":${value}}`
    return textToWire(String(value), kind)
  }
  if (value instanceof Uint8Array) {
    const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
    return textToWire(text, kind === 'any' || kind === 'json' ? 'B' : kind)
  }
  if (value.kind === 'number') return textToWire(value.text, kind === 'any' || kind === 'json' ? 'N' : kind)
  if (value.kind === 'json') return kind === 'S' ? textToWire(value.text, 'S') : nodeToWire(parseJson(value.text), kind)
  return typedToWire(value.text, kind)
}

function typedToWire(text: string, kind: AttributeKind): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new SluiceError('SLUICE_VALUE', 'a value that is no JSON', { cause: error })
  }
  checkTyped(value)
  const [type] = Object.keys(value as object)
  if (kind !== 'any' && kind !== 'json' && kind !== type)
    throw new SluiceError('SLUICE_VALUE', `a value of the type ${type ?? ''} where ${kind} is wanted`)
  return JSON.stringify(value, /"\s*\+/.test(text) ? asSent : undefined)
}

/** Numbers inside of a typed value as they are sent. What is called N and is no text is an attribute of that name. */
function asSent(name: string, value: unknown): unknown {
  if (name === 'N' && typeof value === 'string') return checkNumber(value)
  const isSet = name === 'NS' && Array.isArray(value)
  return isSet ? value.map((member) => (typeof member === 'string' ? checkNumber(member) : (member as unknown))) : value
}

function keyOf(value: Value, { name, kind, key, converts }: Attribute): string {
  const role = key ?? 'partition'
  const type: KeyType = kind === 'N' || kind === 'B' ? kind : 'S'
  try {
    if (value === undefined || value === null) throw missingKey(role)
    const text = keyValue(value, { type, converts })
    if (text === null)
      throw new SluiceError('SLUICE_VALUE', `the ${role} key is not of the type ${type}`, {
        hint: typeHint(value, { name, type }),
      })
    // What most keys are: a short text.
    if (type === 'S' && text !== '' && text.length < 300) return text
    return keyText(text, { type, key: role })
  } catch (error) {
    throw error instanceof SluiceError ? error.at({ column: name }) : error
  }
}

/** DynamoDB's own JSON, read as if it was plain, has maps for keys. */
function typeHint(value: Value, { name, type }: { readonly name: string; readonly type: KeyType }): string {
  const isPlain = typeof value !== 'object' || value === null || value instanceof Uint8Array || value.kind === 'number'
  return !isPlain && /^\s*\{\s*"(?:S|N|B)"\s*:\s*"[^]*"\s*\}\s*$/.test(value.text)
    ? "it looks like DynamoDB's own JSON: --source-format dynamodb-json"
    : `${shellQuote(['--type', `${name}=${type}`])} converts it`
}

/** @throws SLUICE_VALUE for what DynamoDB would refuse, with no word about the row */
function checkIndexValue(value: Exclude<Value, undefined>, { name, converts }: Attribute, key: IndexKey): void {
  if (value === null) throw badIndexKey(`is NULL, and a key of the index ${key.index} cannot be`)
  const text = keyValue(value, { type: key.type, converts })
  if (text === null)
    throw new SluiceError('SLUICE_VALUE', `the key of the index ${key.index} is not of the type ${key.type}`, {
      hint: typeHint(value, { name, type: key.type }),
    })
  checkIndexKey(text, key)
}

/** Text of a value that a key of the type can have; null where it is of another type. */
function keyValue(
  value: Exclude<Value, null | undefined>,
  o: { readonly type: KeyType; readonly converts: boolean },
): string | null {
  const { type, converts } = o
  if (typeof value === 'string') return type === 'S' || converts ? value : null
  if (typeof value === 'boolean') return null
  if (value instanceof Uint8Array) return type === 'B' ? Buffer.from(value).toString('base64') : null
  return value.kind === 'number' && (type === 'N' || (type === 'S' && converts)) ? value.text : null
}
