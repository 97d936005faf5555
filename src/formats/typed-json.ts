import { SluiceError } from '../core/errors.ts'

/** Types that a value in DynamoDB's JSON names (AWS, DynamoDB API Reference, AttributeValue). */
export type AttributeType = 'S' | 'N' | 'B' | 'BOOL' | 'NULL' | 'L' | 'M' | 'SS' | 'NS' | 'BS'

/** A value of one type, taken apart: `{"SS":["a"]}` is `SS` and `["a"]`. */
export interface TypedValue {
  readonly type: AttributeType
  readonly content: unknown
}

/** How many values of a type that plain JSON does not have became another one: `SS`, `NS`, `BS` and `B`. */
export type LostTypes = Map<AttributeType, number>

const TYPES: ReadonlySet<string> = new Set(['S', 'N', 'B', 'BOOL', 'NULL', 'L', 'M', 'SS', 'NS', 'BS'])
/** What DynamoDB takes as a number; RFC 8259's numbers and, besides, a plus sign, leading zeros and a bare point. */
const NUMBER = /^([+-]?)0*(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/
const JSON_NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
/** Deepest nesting: DynamoDB itself takes 32 levels; bounds the stack. */
const DEEPEST = 100

/**
 * Takes a typed value apart and checks its shape, not the values inside.
 *
 * @throws SLUICE_JSON
 */
export function typedValue(value: unknown): TypedValue {
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
  const [name = '', content] = entries[0] ?? []
  if (entries.length !== 1 || !isType(name) || !fits(name, content)) throw malformed(value)
  return { type: name, content }
}

/**
 * The plain JSON of a TypedJsonText: binary in base64, sets as arrays, numbers bare and exact. What lost its type is counted into `lost`.
 *
 * @throws SLUICE_JSON where the text is no typed value
 */
export function plainJson(text: string, lost?: LostTypes): string {
  return plainText(parseJson(text), { lost, depth: 0 })
}

/** Counts a value that lost its type. */
export function countLost(lost: LostTypes | undefined, type: AttributeType): void {
  lost?.set(type, (lost.get(type) ?? 0) + 1)
}

/** A number as JSON has it, by the text that DynamoDB's JSON has; null where it is none. Exact at any length. */
export function jsonNumber(text: string): string | null {
  if (JSON_NUMBER.test(text)) return text
  const [, sign = '', whole = '', fraction = '', exponent] = NUMBER.exec(text) ?? []
  if (!/\d/.test(text.replace(/[eE].*$/, '')) || !NUMBER.test(text)) return null
  return `${sign === '-' ? '-' : ''}${whole === '' ? '0' : whole}${fraction === '' ? '' : `.${fraction}`}${exponent === undefined ? '' : `e${exponent}`}`
}

/** Bytes of a base64 text. @throws SLUICE_JSON where it is none: Node itself would pass over what is wrong in it */
export function base64Bytes(text: string): Uint8Array {
  if (!BASE64.test(text)) throw new SluiceError('SLUICE_JSON', 'a binary value that is no base64')
  return Buffer.from(text, 'base64')
}

/** @throws SLUICE_JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new SluiceError('SLUICE_JSON', 'not JSON', { cause: error })
  }
}

function plainText(value: unknown, o: { lost: LostTypes | undefined; depth: number }): string {
  if (o.depth > DEEPEST) throw new SluiceError('SLUICE_JSON', `nested deeper than ${DEEPEST} levels`)
  const { type, content } = typedValue(value)
  const inner = { lost: o.lost, depth: o.depth + 1 }
  if (type === 'SS' || type === 'NS' || type === 'BS' || type === 'B') countLost(o.lost, type)
  if (type === 'S' || type === 'B') return JSON.stringify(content)
  if (type === 'N') return numberText(content)
  if (type === 'NULL') return 'null'
  if (type === 'BOOL') return String(content)
  if (type === 'M')
    return `{${Object.entries(content as object)
      .map(([name, member]) => `${JSON.stringify(name)}:${plainText(member, inner)}`)
      .join(',')}}`
  const members = content as readonly unknown[]
  if (type === 'L') return `[${members.map((member) => plainText(member, inner)).join(',')}]`
  return `[${members.map((member) => (type === 'NS' ? numberText(member) : JSON.stringify(member))).join(',')}]`
}

function numberText(content: unknown): string {
  const number = jsonNumber(String(content))
  if (number === null) throw new SluiceError('SLUICE_JSON', `"${String(content).slice(0, 60)}" is no number`)
  return number
}

function isType(name: string): name is AttributeType {
  return TYPES.has(name)
}

function fits(type: AttributeType, content: unknown): boolean {
  switch (type) {
    case 'S':
    case 'N':
    case 'B':
      return typeof content === 'string'
    case 'BOOL':
      return typeof content === 'boolean'
    case 'NULL':
      return content === true
    case 'M':
      return typeof content === 'object' && content !== null && !Array.isArray(content)
    case 'L':
      return Array.isArray(content)
    case 'SS':
    case 'NS':
    case 'BS':
      return Array.isArray(content) && content.every((member) => typeof member === 'string')
  }
}

function malformed(value: unknown): SluiceError {
  const text = JSON.stringify(value) ?? 'nothing'
  return new SluiceError(
    'SLUICE_JSON',
    `${text.length > 60 ? `${text.slice(0, 60)}…` : text} is no typed value of DynamoDB's JSON`,
    { hint: 'a value looks like {"S":"text"} or {"N":"1"}; for plain JSON say --source-format jsonl' },
  )
}
