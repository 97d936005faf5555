import type { RowsBatch, Value } from '../core/batch.ts'
import type { Column, NeutralType, Schema } from '../core/schema.ts'
import { TypeInferrer } from './infer-types.ts'

/** What a column's values are like. */
export interface ColumnFacts {
  readonly name: string
  readonly type: NeutralType
  readonly nulls: number
  readonly min: string | null
  readonly max: string | null
  /** Longest value, in characters. */
  readonly longest: number
  readonly precision: number | null
  readonly scale: number | null
}

interface Facts {
  readonly inferrer: TypeInferrer
  nulls: number
  longest: number
  text: { min: string; max: string } | null
  number: { min: string; max: string } | null
  integerDigits: number
  scale: number
}

/** Characters of a minimum or maximum that are kept. */
const KEPT_CHARACTERS = 200

/** Profiles columns in one pass, in memory that grows with their number only. */
export class ColumnProfiler {
  readonly #typed: boolean
  readonly #facts = new Map<string, Facts>()

  constructor(schema: Schema) {
    this.#typed = schema.typed === true
    for (const column of schema.columns) this.#factsOf(column.name)
  }

  add(batch: RowsBatch): void {
    for (const [i, name] of batch.columns.entries()) {
      const facts = this.#factsOf(name)
      facts.inferrer.addValues(batch.rows.map((row) => row[i]))
      for (const row of batch.rows) note(facts, row[i])
    }
  }

  /** Names with inferred types. */
  columns(): readonly Column[] {
    return [...this.#facts].map(([name, facts]) => ({ ...facts.inferrer.result()[0], name }))
  }

  result(): readonly ColumnFacts[] {
    return [...this.#facts].map(([name, facts]) => {
      const type = facts.inferrer.result()[0]?.type ?? 'string'
      const numeric = type === 'integer' || type === 'number'
      const range = numeric ? facts.number : facts.text
      return {
        name,
        type,
        nulls: facts.nulls,
        min: range?.min ?? null,
        max: range?.max ?? null,
        longest: facts.longest,
        precision: numeric ? facts.integerDigits + facts.scale : null,
        scale: numeric ? facts.scale : null,
      }
    })
  }

  #factsOf(name: string): Facts {
    const known = this.#facts.get(name)
    if (known !== undefined) return known
    const inferrer = new TypeInferrer([name], { typed: this.#typed })
    const facts: Facts = { inferrer, nulls: 0, longest: 0, text: null, number: null, integerDigits: 0, scale: 0 }
    this.#facts.set(name, facts)
    return facts
  }
}

function note(facts: Facts, value: Value): void {
  if (value === null || value === undefined) {
    facts.nulls += 1
    return
  }
  const text =
    typeof value === 'string'
      ? value
      : typeof value === 'boolean'
        ? String(value)
        : value instanceof Uint8Array
          ? Buffer.from(value).toString('base64')
          : value.text
  facts.longest = Math.max(facts.longest, text.length)
  facts.text = widen(facts.text, text.slice(0, KEPT_CHARACTERS), (a, b) => a < b)
  const digits = /^-?(\d+)(?:\.(\d+))?$/.exec(text)
  if (digits === null) return
  facts.integerDigits = Math.max(facts.integerDigits, digits[1]?.length ?? 0)
  facts.scale = Math.max(facts.scale, digits[2]?.length ?? 0)
  facts.number = widen(facts.number, text, (a, b) => Number(a) < Number(b))
}

function widen(
  range: { min: string; max: string } | null,
  text: string,
  less: (a: string, b: string) => boolean,
): { min: string; max: string } {
  if (range === null) return { min: text, max: text }
  if (less(text, range.min)) range.min = text
  if (less(range.max, text)) range.max = text
  return range
}
