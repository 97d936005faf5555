import { SluiceError } from '../../../core/errors.ts'
import { parseJson, toWire, type JsonNode } from './json-wire.ts'
import { checkNumber, shown } from './number.ts'
import type { AttributeKind } from './type-map.ts'
import { checkBase64, checkSet } from './validate.ts'

/** Text of a column of a kind, as DynamoDB writes it: `{"N":"1"}`. @throws SLUICE_VALUE */
export function textToWire(text: string, kind: AttributeKind): string {
  switch (kind) {
    case 'S':
    case 'any':
      return `{"S":${JSON.stringify(text)}}`
    case 'N':
      return `{"N":"${checkNumber(text)}"}`
    case 'ttl':
      return `{"N":"${checkSeconds(text)}"}`
    case 'B':
      return `{"B":"${checkBase64(text)}"}`
    case 'BOOL':
      return `{"BOOL":${booleanOf(text)}}`
    case 'NULL':
      if (text === '') return '{"NULL":true}'
      throw new SluiceError('SLUICE_VALUE', `${shown(text)} is not empty, and the column is to be NULL`)
    default:
      return nodeToWire(parseJson(text), kind)
  }
}

/** A JSON value in a column of a kind. @throws SLUICE_VALUE */
export function nodeToWire(node: JsonNode, kind: AttributeKind): string {
  if (kind === 'json' || kind === 'any') return toWire(node)
  if (kind === 'SS' || kind === 'NS' || kind === 'BS') return setToWire(node, kind)
  if ((kind === 'L' && node.kind === 'array') || (kind === 'M' && node.kind === 'object')) return toWire(node)
  throw new SluiceError('SLUICE_VALUE', `a JSON ${node.kind} where ${NAMES[kind] ?? kind} is wanted`)
}

const NAMES: Readonly<Partial<Record<AttributeKind, string>>> = { L: 'a list', M: 'a map' }

function setToWire(node: JsonNode, kind: 'SS' | 'NS' | 'BS'): string {
  const wanted = kind === 'NS' ? 'number' : 'string'
  if (node.kind !== 'array') throw new SluiceError('SLUICE_VALUE', `a JSON ${node.kind} where a set is wanted`)
  const members = node.items.map((item) => {
    if ((item.kind === 'string' || item.kind === 'number') && (item.kind === wanted || kind === 'NS')) return item.text
    throw new SluiceError('SLUICE_VALUE', `a JSON ${item.kind} in a set of ${wanted}s`)
  })
  return `{"${kind}":${JSON.stringify(checkSet(kind, members))}}`
}

function booleanOf(text: string): 'true' | 'false' {
  const lower = text.toLowerCase()
  if (lower === 'true' || lower === 'false') return lower
  throw new SluiceError('SLUICE_VALUE', `${shown(text)} is neither true nor false`, {
    hint: 'mend the value, or load it as text: --type column=S',
  })
}

function checkSeconds(text: string): string {
  if (/^\d{1,12}$/.test(text)) return text
  throw new SluiceError('SLUICE_VALUE', `${shown(text)} is no time to live: whole seconds since 1970`)
}
