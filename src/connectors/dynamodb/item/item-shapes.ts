import type { Answer } from '../answer.ts'
import type { KnownTypes } from './item-rows.ts'

/** Sets of names and types that are told apart; items of more are taken by the types of the whole table. */
const MOST_SHAPES = 10_000

/** The names and types of each item's attributes, one object for all items that share them: an attribute may be a number in one and text in another. */
export class ItemShapes {
  readonly #shapes = new Map<string, KnownTypes>()
  readonly #table: KnownTypes

  /** `table`: types of all attributes, for those that an item lacks. */
  constructor(table: KnownTypes) {
    this.#table = table
  }

  /** Null where there are too many. */
  of(item: Answer): KnownTypes | null {
    let name = ''
    for (const [attribute, value] of Object.entries(item)) name += `${typeOf(value)} ${attribute}\0`
    const found = this.#shapes.get(name)
    if (found !== undefined) return found
    if (this.#shapes.size >= MOST_SHAPES) return null
    const types = new Map(Object.entries(item).map(([attribute, value]) => [attribute, new Set([typeOf(value)])]))
    const shape: KnownTypes = { of: (attribute) => types.get(attribute) ?? this.#table.of(attribute) }
    this.#shapes.set(name, shape)
    return shape
  }
}

function typeOf(value: unknown): string {
  for (const type in value as object) return type
  return ''
}
