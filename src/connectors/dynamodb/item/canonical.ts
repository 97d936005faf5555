import type { Value } from '../../../core/batch.ts'
import { plainJson } from '../../../formats/typed-json.ts'
import type { KnownTypes } from './item-rows.ts'
import { type JsonNode, parseJson } from './json-wire.ts'
import { canonicalNumber } from './number.ts'

/**
 * Where a table has sets: `tags`, `address.tags`, `[]` for the members of a list. Their order means nothing, and in plain JSON an array does not
 * tell whether it was one. Bounded by the number of different paths.
 */
export class SetPaths {
  readonly #paths = new Set<string>()

  learn(value: unknown, path: string): void {
    if (typeof value !== 'object' || value === null) return
    for (const [type, content] of Object.entries(value)) {
      if (type === 'SS' || type === 'NS' || type === 'BS') this.#paths.add(path)
      else if (type === 'L' && Array.isArray(content)) for (const member of content) this.learn(member, `${path}[]`)
      else if (type === 'M' && typeof content === 'object' && content !== null)
        for (const [name, member] of Object.entries(content)) this.learn(member, `${path}.${name}`)
    }
  }

  has(path: string): boolean {
    return this.#paths.has(path)
  }
}

export interface CanonicalContext {
  /** Types that attributes have: of the item that the row is compared with where it is known, else anywhere in the table. */
  readonly types: KnownTypes
  readonly sets: SetPaths
  /** Whether the row is the table's own, from which sets are learned. */
  readonly own: boolean
}

/**
 * A row in the one form that both sides of a comparison share: names in order, a text for each value that is there. Numbers by value, nested
 * values as plain JSON with names and sets in order, binary as base64; NULL is missing.
 */
export function canonicalRow(
  columns: readonly string[],
  row: readonly Value[],
  context: CanonicalContext,
): readonly (readonly [string, string])[] {
  const entries: [string, string][] = []
  for (const [i, name] of columns.entries()) {
    const value = row[i]
    if (value !== undefined && value !== null) entries.push([name, canonicalText(value, name, context)])
  }
  return entries.sort(([a], [b]) => (a < b ? -1 : 1))
}

function canonicalText(value: Exclude<Value, null | undefined>, name: string, context: CanonicalContext): string {
  if (typeof value === 'string') return context.own ? value : textAs(value, name, context)
  if (typeof value === 'boolean') return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value.kind === 'number') return numberText(value.text)
  if (value.kind === 'json') return nodeText(parseJson(value.text), name, context.sets)
  if (context.own) context.sets.learn(JSON.parse(value.text), name)
  return nodeText(parseJson(plainJson(value.text)), name, context.sets)
}

/** Text of a format without types, by what the table makes of the attribute. */
function textAs(text: string, name: string, { types, sets }: CanonicalContext): string {
  const known = types.of(name)
  if (known.has('S')) return text
  try {
    if (known.has('N')) return numberText(text)
    if (['L', 'M', 'SS', 'NS', 'BS'].some((type) => known.has(type))) return nodeText(parseJson(text), name, sets)
  } catch {
    // No value of the table's type: the text differs from all that the table has.
  }
  return text
}

/** As canonicalNumber; what DynamoDB could not hold, by its own text. */
function numberText(text: string): string {
  try {
    return canonicalNumber(text)
  } catch {
    return text
  }
}

function nodeText(node: JsonNode, path: string, sets: SetPaths): string {
  switch (node.kind) {
    case 'string':
      return JSON.stringify(node.text)
    case 'number':
      return numberText(node.text)
    case 'array': {
      const members = node.items.map((item) => nodeText(item, `${path}[]`, sets))
      return `[${(sets.has(path) ? members.sort() : members).join(',')}]`
    }
    case 'object':
      return `{${node.entries
        .map(([name, value]) => `${JSON.stringify(name)}:${nodeText(value, `${path}.${name}`, sets)}`)
        .sort()
        .join(',')}}`
    default:
      return node.kind
  }
}
