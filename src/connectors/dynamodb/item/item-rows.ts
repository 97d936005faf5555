import type { Value } from '../../../core/batch.ts'
import { toSluiceError } from '../../../core/errors.ts'
import type { Column, NeutralType } from '../../../core/schema.ts'
import { attributeToValue } from '../../../formats/dynamodb-json/attribute-value.ts'
import type { Answer } from '../answer.ts'

const NEUTRAL: Readonly<Record<string, NeutralType>> = {
  S: 'string',
  N: 'number',
  B: 'binary',
  BOOL: 'boolean',
  L: 'list',
  M: 'map',
  SS: 'string-set',
  NS: 'number-set',
  BS: 'binary-set',
}

/** Items as rows: the first columns, then attributes as they come up. `bytes` is about what they take. */
export function itemsToRows(
  items: readonly Answer[],
  first: readonly string[],
): { columns: readonly string[]; rows: readonly (readonly Value[])[]; bytes: readonly number[] } {
  const columns = [...first]
  const at = new Map(columns.map((name, i) => [name, i]))
  const sizes: number[] = []
  const rows = items.map((item) => {
    const row: Value[] = first.map(() => undefined)
    let bytes = 2
    for (const [name, attribute] of Object.entries(item)) {
      let column = at.get(name)
      if (column === undefined) {
        column = columns.push(name) - 1
        at.set(name, column)
      }
      while (row.length < column) row.push(undefined)
      const value = valueOf(attribute, name)
      row[column] = value
      bytes += name.length + 12 + sizeOf(value)
    }
    sizes.push(bytes)
    return row
  })
  for (const row of rows) while (row.length < columns.length) row.push(undefined)
  return { columns, rows, bytes: sizes }
}

/** Types that an attribute has; none where it is nowhere. */
export interface KnownTypes {
  of(name: string): ReadonlySet<string>
}

/** Names and types of attributes, as items tell them. Bounded by the number of different names. */
export class AttributeTypes implements KnownTypes {
  readonly #types = new Map<string, Set<string>>()

  constructor(first: readonly string[]) {
    for (const name of first) this.#types.set(name, new Set())
  }

  add(items: readonly Answer[]): void {
    for (const item of items) {
      for (const [name, attribute] of Object.entries(item)) {
        const types = this.#types.get(name) ?? new Set()
        const [type] = Object.keys(attribute as object)
        if (type !== undefined) types.add(type)
        this.#types.set(name, types)
      }
    }
  }

  /** Types that an attribute has somewhere. */
  of(name: string): ReadonlySet<string> {
    return this.#types.get(name) ?? new Set()
  }

  /** A column an attribute; a type where it is the same everywhere. */
  columns(): readonly Column[] {
    return [...this.#types].map(([name, types]) => {
      const letters = [...types].filter((type) => type !== 'NULL')
      const type = letters.length === 1 ? NEUTRAL[letters[0] ?? ''] : undefined
      const nativeType = [...types].sort().join('|')
      return {
        name,
        ...(type === undefined ? {} : { type }),
        ...(nativeType === '' ? {} : { nativeType, nativeTo: 'dynamodb' as const }),
        nullable: true,
      }
    })
  }
}

function valueOf(attribute: unknown, name: string): Value {
  try {
    return attributeToValue(attribute)
  } catch (error) {
    throw toSluiceError(error).at({ column: name })
  }
}

function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length
  if (value === null || value === undefined || typeof value === 'boolean') return 4
  return value instanceof Uint8Array ? value.byteLength : value.text.length
}
