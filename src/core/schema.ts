import type { ColumnType } from './batch.ts'

/** `decimal(p,s)` or `numeric(p,s)`, precision 1 to 38; null for any other text. */
export function parseDecimalType(text: string): { readonly precision: number; readonly scale: number } | null {
  const match = /^\s*(?:decimal|numeric)\s*\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\)\s*$/i.exec(text)
  const [precision, scale] = [Number(match?.[1] ?? 0), Number(match?.[2] ?? 0)]
  return precision >= 1 && precision <= 38 && scale <= precision ? { precision, scale } : null
}

/** sluice's own type names (cli.md, "Types"): what a source knows or infers about a column. */
export const NEUTRAL_TYPES = [
  'string',
  'integer',
  'number',
  'boolean',
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'binary',
  'json',
  'list',
  'map',
  'string-set',
  'number-set',
  'binary-set',
  'ttl',
] as const

export type NeutralType = (typeof NEUTRAL_TYPES)[number]

export interface Column {
  readonly name: string
  /** `undefined` where the format does not say and nothing was inferred yet (a CSV column). */
  readonly type?: NeutralType | undefined
  /** The type's name at its own system, e.g. `numeric(10,2)`. */
  readonly nativeType?: string | undefined
  /** Whose name that is, where it means nothing to other systems; absent for what `--type` asks for, and for SQL's types. */
  readonly nativeTo?: 'parquet' | 'dynamodb' | undefined
  readonly nullable?: boolean | undefined
  /** How its values lie in batches of the form `columns`, where the source can give that. */
  readonly layout?: ColumnType | undefined
}

export interface Schema {
  readonly columns: readonly Column[]
  /** Whether names come from the data (a header, JSON keys) or were made up (`column1`, …), so that only position is meant. */
  readonly named: boolean
  /** Whether every batch has exactly these columns in this order (a table; files under a prefix may differ). */
  readonly fixed?: boolean | undefined
  /** Whether values carry types of their own (JSON), so that a text which looks like a number is a text. */
  readonly typed?: boolean | undefined
}
