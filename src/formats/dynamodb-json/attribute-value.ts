import type { Value } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import { base64Bytes, jsonNumber, typedValue } from '../typed-json.ts'
import { typedFromJson } from './typed-from-json.ts'

/** JSON.stringify escapes half of a surrogate pair, and nothing else of that kind. */
const LONE_SURROGATE = /\\ud[89a-f][0-9a-f]{2}/

/**
 * A typed value of DynamoDB's JSON as a Value: S, N, B, BOOL and NULL have a plain form, the others keep their types as text. Numbers keep
 * their own text.
 *
 * @throws SLUICE_JSON, SLUICE_ENCODING (half of a surrogate pair, which no UTF-8 holds)
 */
export function attributeToValue(attribute: unknown): Value {
  const { type, content } = typedValue(attribute)
  switch (type) {
    case 'S': {
      const text = String(content)
      if (/\p{Surrogate}/u.test(text)) throw halfPair()
      return text
    }
    case 'N': {
      const text = String(content)
      if (jsonNumber(text) === null) throw new SluiceError('SLUICE_JSON', `"${text.slice(0, 60)}" is no number`)
      return { kind: 'number', text }
    }
    case 'B':
      return base64Bytes(String(content))
    case 'BOOL':
      return content === true
    case 'NULL':
      return null
    default: {
      checkInner(type, content, 1)
      const text = JSON.stringify(attribute)
      if (LONE_SURROGATE.test(text)) throw halfPair()
      return { kind: 'typed-json', text }
    }
  }
}

/** A Value as DynamoDB's JSON, on one line. JSON without types becomes maps, lists, texts and numbers. */
export function valueToAttribute(value: Exclude<Value, undefined>): string {
  if (typeof value === 'string') return `{"S":${JSON.stringify(value)}}`
  if (value === null) return '{"NULL":true}'
  if (typeof value === 'boolean') return value ? '{"BOOL":true}' : '{"BOOL":false}'
  if (value instanceof Uint8Array)
    return `{"B":"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')}"}`
  if (value.kind === 'number')
    return jsonNumber(value.text) === null
      ? `{"S":${JSON.stringify(value.text)}}`
      : `{"N":${JSON.stringify(value.text)}}`
  return value.kind === 'json' ? typedFromJson(value.text) : value.text
}

/** Checks what is inside of lists, maps and sets. */
function checkInner(type: string, content: unknown, depth: number): void {
  if (depth > 100) throw new SluiceError('SLUICE_JSON', 'nested deeper than 100 levels')
  const members = Array.isArray(content) ? (content as readonly unknown[]) : Object.values(content as object)
  for (const member of members) {
    if (type === 'L' || type === 'M') {
      const inner = typedValue(member)
      if (typeof inner.content === 'object') checkInner(inner.type, inner.content, depth + 1)
      else if (typeof inner.content === 'string' && inner.type !== 'S')
        checkScalar(inner.type === 'N' ? 'N' : 'B', inner.content)
    } else if (type === 'NS' || type === 'BS') checkScalar(type === 'NS' ? 'N' : 'B', String(member))
  }
}

function checkScalar(type: 'N' | 'B', text: string): void {
  if (type === 'B') base64Bytes(text)
  else if (jsonNumber(text) === null) throw new SluiceError('SLUICE_JSON', `"${text.slice(0, 60)}" is no number`)
}

function halfPair(): SluiceError {
  return new SluiceError('SLUICE_ENCODING', 'half of a surrogate pair in a string')
}
