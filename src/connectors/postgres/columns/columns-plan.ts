import type { ColumnType } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'
import { parseDecimalType, type Column } from '../../../core/schema.ts'
import { quoteIdentifier } from '../quote.ts'
import type { TableColumn } from '../table/table.ts'
import { neutralTypeOf } from '../table/type-map.ts'

/** A column that is to be read: types, modifiers and `element` as in TableColumn. */
export type SourceColumn = Pick<TableColumn, 'name' | 'type' | 'baseTypeOid' | 'baseTypmod' | 'element'> & {
  readonly nullable?: boolean | undefined
}

/** How a table's or a query's columns are asked for, and how they lie in vectors. */
export interface ColumnsPlan {
  /** SQL expressions, one a column: what COPY's binary format is to give. */
  readonly select: readonly string[]
  /** Each with its `layout`. */
  readonly columns: readonly PlannedColumn[]
  /** What becomes of a value that its layout can't hold. */
  readonly onSpecial: 'error' | 'null'
}

/** A column whose layout is known. */
export type PlannedColumn = Column & { readonly layout: ColumnType }

export interface PlanOptions {
  /** `decimal(p,s)` for every numeric that is not within 38 digits by its own type. */
  readonly numeric?: string | undefined
  /**
   * `error` (default): a special value ends the job; `null`: it becomes NULL; `text`: a column is read as its text, special or not, where its type has
   * special values at all: date, time, timestamp, timestamptz, numeric, and every array (which may have several dimensions, or begin at another index).
   */
  readonly onSpecial?: 'error' | 'null' | 'text' | undefined
  warn(message: string): void
}

/** Precision of a 128-bit decimal. */
const MOST_DIGITS = 38
/** Names that one warning lists. */
const MOST_NAMED = 10

const OID = { numeric: 1700, jsonb: 3802, inet: 869 } as const
/** int2vector and oidvector: arrays that count from 0, and are written `1 2 3`. */
const VECTORS: readonly number[] = [22, 30]

/**
 * Types whose binary form (their typsend function) is read as it is, by OID (pg_type.dat); numeric besides, where it is a decimal. bpchar keeps its
 * blanks that way, and loses them in a cast to text.
 */
const LAYOUTS: ReadonlyMap<number, ColumnType> = new Map<number, ColumnType>([
  [16, { kind: 'bool' }],
  [17, { kind: 'binary' }],
  [19, { kind: 'utf8' }],
  [20, { kind: 'int64' }],
  [21, { kind: 'int16' }],
  [23, { kind: 'int32' }],
  [25, { kind: 'utf8' }],
  [114, { kind: 'json' }],
  [700, { kind: 'float32' }],
  [701, { kind: 'float64' }],
  [1042, { kind: 'utf8' }],
  [1043, { kind: 'utf8' }],
  [1082, { kind: 'date' }],
  [1083, { kind: 'time' }],
  [1114, { kind: 'timestamp', utc: false }],
  [1184, { kind: 'timestamp', utc: true }],
  [2950, { kind: 'uuid' }],
])

/** How a scalar is read: as it is, or cast to text first. */
interface Reading {
  readonly layout: ColumnType
  readonly cast: boolean
  /** A numeric whose digits no decimal is sure to hold. */
  readonly unbounded?: boolean
}

/**
 * What each column is read as (cli.md, "PostgreSQL → Parquet"). Domains are their base types; arrays of anything are lists, of texts where the element's
 * type has no form of its own. Numerics that become text are told in one warning.
 *
 * @throws SLUICE_USAGE where `numeric` is no decimal type
 */
export function planColumns(columns: readonly SourceColumn[], o: PlanOptions): ColumnsPlan {
  const numeric = o.numeric === undefined ? null : parseDecimal(o.numeric)
  const planned = columns.map((column) => planColumn(column, { numeric, onSpecial: o.onSpecial ?? 'error' }))
  const unbounded = planned.filter((one) => one.unbounded).map((one) => one.column.name)
  if (unbounded.length > 0) o.warn(numericWarning(unbounded))
  return {
    select: planned.map((one) => one.select),
    columns: planned.map((one) => one.column),
    onSpecial: o.onSpecial === 'null' ? 'null' : 'error',
  }
}

/** What is told at the end of `--on-special null`. `specials`: values that became NULL, by column. */
export function specialsWarning(specials: ReadonlyMap<string, number>): string {
  const total = [...specials.values()].reduce((sum, values) => sum + values, 0)
  const columns = [...specials].map(([name, values]) => `${name} (${values})`)
  const what = total === 1 ? 'special value became' : 'special values became'
  return `${total} ${what} NULL (--on-special null): ${listed(columns)}`
}

function listed(names: readonly string[]): string {
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : ''
  return `${names.slice(0, MOST_NAMED).join(', ')}${more}`
}

function numericWarning(names: readonly string[]): string {
  const what = names.length === 1 ? `numeric column ${listed(names)} has` : `numeric columns ${listed(names)} have`
  return `${what} no precision of 38 digits or less: read as exact text; --numeric 'decimal(p,s)' makes decimals of them`
}

interface PlanContext {
  readonly numeric: ColumnType | null
  readonly onSpecial: 'error' | 'null' | 'text'
}

function planColumn(
  column: SourceColumn,
  o: PlanContext,
): { readonly select: string; readonly column: PlannedColumn; readonly unbounded: boolean } {
  const { name } = column
  const element = VECTORS.includes(column.baseTypeOid) ? null : column.element
  const quoted = quoteIdentifier(name)
  const scalar =
    element === null
      ? readingOf(column.baseTypeOid, column.baseTypmod, o.numeric)
      : readingOf(element.typeOid, element.typmod, o.numeric)
  const own: ColumnType = element === null ? scalar.layout : { kind: 'list', item: scalar.layout }
  const isSpecial = hasSpecials(own)
  const asText = isSpecial && o.onSpecial === 'text'
  return {
    select: asText
      ? `${quoted}::text`
      : element === null
        ? castScalar(quoted, column.baseTypeOid, scalar)
        : castArray(quoted, element.typeOid, scalar),
    column: {
      name,
      type: neutralTypeOf(column.baseTypeOid, element !== null),
      nativeType: column.type,
      // A special value that becomes NULL does so in a column that had none, too.
      nullable: isSpecial && o.onSpecial === 'null' ? true : column.nullable,
      layout: asText ? { kind: 'utf8' } : own,
    },
    unbounded: scalar.unbounded === true,
  }
}

function readingOf(typeOid: number, typmod: number, numeric: ColumnType | null): Reading {
  if (typeOid === OID.jsonb) return { layout: { kind: 'json' }, cast: true }
  if (typeOid !== OID.numeric) {
    const layout = LAYOUTS.get(typeOid)
    return layout === undefined ? { layout: { kind: 'utf8' }, cast: true } : { layout, cast: false }
  }
  const layout = decimalOf(typmod) ?? numeric
  return layout === null ? { layout: { kind: 'utf8' }, cast: true, unbounded: true } : { layout, cast: false }
}

/**
 * The decimal that holds a numeric's every value, by its modifier (numeric.c, make_numeric_typmod: precision above, 11 bits of scale below, signed
 * from PostgreSQL 15 on); null where it has none or takes more than 38 digits.
 */
function decimalOf(typmod: number): ColumnType | null {
  if (typmod < 4) return null
  const declared = (typmod - 4) >> 16
  const scale = ((((typmod - 4) & 0x7ff) ^ 0x400) - 0x400) as number
  // numeric(2,-3) has up to five digits before the point; numeric(3,5) five behind it.
  const precision = Math.max(declared + Math.max(0, -scale), scale)
  return precision > MOST_DIGITS ? null : { kind: 'decimal', precision, scale: Math.max(0, scale) }
}

function parseDecimal(text: string): ColumnType {
  const decimal = parseDecimalType(text)
  if (decimal !== null) return { kind: 'decimal', ...decimal }
  throw new SluiceError('SLUICE_USAGE', `numeric: ${text} is no decimal type that fits`, {
    hint: 'decimal(p,s), p from 1 to 38, s from 0 to p',
  })
}

/** Whether a column of this layout may meet a value that it can't hold. */
function hasSpecials({ kind }: ColumnType): boolean {
  return kind === 'date' || kind === 'time' || kind === 'timestamp' || kind === 'decimal' || kind === 'list'
}

/** inet's own cast to text adds /32, which its text does not have. */
function castScalar(quoted: string, typeOid: number, { cast }: Reading): string {
  if (typeOid === OID.inet) return `pg_catalog.textin(pg_catalog.inet_out(${quoted}))`
  return cast ? `${quoted}::text` : quoted
}

function castArray(quoted: string, typeOid: number, { cast }: Reading): string {
  if (typeOid === OID.inet) return `${quoted}::text::text[]`
  return cast ? `${quoted}::text[]` : quoted
}
