import { SluiceError } from '../../../core/errors.ts'
import { isTooDeep, tooDeep } from './json-wire.ts'
import { canonicalNumber, checkNumber, shown } from './number.ts'
import type { IndexKey, KeyType } from '../table-info.ts'

/** AWS, "Service, account, and table quotas": bytes of an item, names and values; of a partition key; of a sort key. */
export const MOST_ITEM_BYTES = 400 * 1024
const MOST_KEY_BYTES = { partition: 2048, sort: 1024 } as const

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** @throws SLUICE_VALUE */
export function checkBase64(text: string): string {
  if (BASE64.test(text)) return text
  throw new SluiceError('SLUICE_VALUE', `${shown(text)} is not base64`, {
    hint: 'mend the value, or say --type column=binary:hex or column=S',
  })
}

/** What two values of a key have in common exactly if DynamoDB takes them for the same key. @throws SLUICE_VALUE */
export function keyText(text: string, o: { readonly type: KeyType; readonly key: 'partition' | 'sort' }): string {
  if (text === '') throw new SluiceError('SLUICE_VALUE', `the ${o.key} key is empty`, { hint: KEY_HINT })
  if (o.type === 'N') return canonicalNumber(text)
  const bytes = o.type === 'B' ? Buffer.from(checkBase64(text), 'base64') : null
  const length = bytes?.byteLength ?? (text.length * 3 > MOST_KEY_BYTES[o.key] ? Buffer.byteLength(text) : 0)
  if (length > MOST_KEY_BYTES[o.key])
    throw new SluiceError(
      'SLUICE_VALUE',
      `the ${o.key} key has ${length} bytes, and DynamoDB takes ${MOST_KEY_BYTES[o.key]}`,
    )
  return bytes?.toString('base64') ?? text
}

const KEY_HINT = 'leave such rows out with --skip-if-empty, or mend them'

/** @throws SLUICE_VALUE */
export function missingKey(key: 'partition' | 'sort'): SluiceError {
  return new SluiceError('SLUICE_VALUE', `the ${key} key has no value`, { hint: KEY_HINT })
}

/** What DynamoDB refuses of a key of an index, save its type. @throws SLUICE_VALUE */
export function checkIndexKey(text: string, { type, index, mostBytes }: IndexKey): void {
  if (type === 'N') return
  if (text === '') throw badIndexKey(`is empty, and a key of the index ${index} cannot be`)
  const bytes = Buffer.byteLength(text, type === 'B' ? 'base64' : 'utf8')
  if (bytes > mostBytes) throw badIndexKey(`has ${bytes} bytes, and a key of the index ${index} takes ${mostBytes}`)
}

/** @throws SLUICE_VALUE */
export function badIndexKey(why: string): SluiceError {
  return new SluiceError('SLUICE_VALUE', `the attribute ${why}`, {
    hint: 'mend the value; an item without the attribute is only left out of the index (--empty omit, --null TEXT)',
  })
}

/** Both keys as one text; no two different pairs give the same. */
export function joinKeys(partition: string, sort: string): string {
  return `${partition.length} ${partition}${sort}`
}

/** The two that were joined. */
export function splitKeys(joined: string): readonly [string, string] {
  const at = joined.indexOf(' ') + 1
  const end = at + Number.parseInt(joined, 10)
  return [joined.slice(at, end), joined.slice(end)]
}

/** AWS, "Naming rules": an attribute's name has one character at least. */
export function nameless(): SluiceError {
  return new SluiceError('SLUICE_VALUE', 'an attribute has an empty name, which DynamoDB does not take', {
    hint: 'give it a name in the source; --rename, where it is a column',
  })
}

/** A set's members are of one type, one at least, each once. @throws SLUICE_VALUE */
export function checkSet(type: 'SS' | 'NS' | 'BS', members: readonly string[]): readonly string[] {
  if (members.length === 0)
    throw new SluiceError('SLUICE_VALUE', 'the set is empty, which DynamoDB does not take', {
      hint: 'leave the value out, or load it as a list: --type column=list',
    })
  const alike = new Set<string>()
  for (const member of members) {
    const own =
      type === 'NS'
        ? canonicalNumber(member)
        : type === 'BS'
          ? Buffer.from(checkBase64(member), 'base64').toString('base64')
          : member
    if (alike.has(own)) throw new SluiceError('SLUICE_VALUE', `the set has ${shown(member)} twice`)
    alike.add(own)
  }
  return type === 'NS' ? members.map(checkNumber) : members
}

type Typed = Readonly<Record<string, unknown>>

/** Checks a value that says its own types, all the way down, as DynamoDB would. @throws SLUICE_VALUE */
export function checkTyped(value: unknown, level = 1): void {
  const [[type, content] = ['', undefined], ...more] = isObject(value) ? Object.entries(value) : []
  if (type === '' || more.length > 0) throw notTyped(value)
  if ((type === 'L' || type === 'M') && isTooDeep(level)) throw tooDeep()
  if (type === 'L' && Array.isArray(content)) for (const item of content) checkTyped(item, level + 1)
  else if (type === 'M' && isObject(content)) for (const item of Object.values(content)) checkTyped(item, level + 1)
  else if ((type === 'SS' || type === 'NS' || type === 'BS') && isTexts(content)) checkSet(type, content)
  else if (!isScalar(type, content)) throw notTyped(value)
}

/** @throws SLUICE_VALUE */
function isScalar(type: string, content: unknown): boolean {
  if (type === 'BOOL') return typeof content === 'boolean'
  if (type === 'NULL') return content === true
  if (typeof content !== 'string') return false
  if (type === 'N') checkNumber(content)
  else if (type === 'B') checkBase64(content)
  return type === 'N' || type === 'B' || type === 'S'
}

/** @throws SLUICE_VALUE where an item, given as its JSON on the wire, is larger than DynamoDB takes */
export function checkItemSize(wire: string): void {
  const item: unknown = JSON.parse(wire)
  const bytes = isObject(item) ? membersBytes(item) : 0
  if (bytes > MOST_ITEM_BYTES)
    throw new SluiceError('SLUICE_VALUE', `the item has ${bytes} bytes, and DynamoDB takes ${MOST_ITEM_BYTES} (400 KB)`)
}

/** AWS, "DynamoDB item sizes and formats": names and values in UTF-8; half a byte a digit; lists and maps 3 and 1 an element. */
function typedBytes(value: unknown): number {
  const [[type, content] = ['', undefined]] = isObject(value) ? Object.entries(value) : []
  if (type === 'L' && Array.isArray(content))
    return 3 + content.reduce<number>((sum, item) => sum + 1 + typedBytes(item), 0)
  if (type === 'M' && isObject(content)) return 3 + Object.keys(content).length + membersBytes(content)
  if (isTexts(content)) return content.reduce((sum, text) => sum + scalarBytes(type.slice(0, 1), text), 0)
  return typeof content === 'string' ? scalarBytes(type, content) : 1
}

function membersBytes(members: Typed): number {
  return Object.entries(members).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + typedBytes(value), 0)
}

function scalarBytes(type: string, text: string): number {
  if (type === 'N') return Math.ceil(canonicalNumber(text).replace(/e.*$|-/g, '').length / 2) + 1
  return Buffer.byteLength(text, type === 'B' ? 'base64' : 'utf8')
}

function isObject(value: unknown): value is Typed {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function notTyped(value: unknown): SluiceError {
  return new SluiceError('SLUICE_VALUE', `${shown(JSON.stringify(value) ?? '')} is no value of DynamoDB's JSON`)
}
