import type { ColumnsBatch, ColumnType, RowsBatch, Value } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { ErrorPlace } from '../../core/errors.ts'
import { START } from '../../core/job.ts'
import type { Position } from '../../core/job.ts'
import { parseDecimalType } from '../../core/schema.ts'
import type { Column } from '../../core/schema.ts'
import { addValue } from './add-value.ts'
import type { Misfit } from './exact-text.ts'
import { VectorBuilder } from './vector-builder.ts'
/** How the values of a column lie in Parquet. See `RowsToColumns` for what each takes. */
export function layoutOf(column: Column): ColumnType {
  if (column.layout !== undefined) return column.layout
  switch (column.type) {
    case 'integer':
    case 'ttl':
      return { kind: 'int64' }
    case 'boolean':
      return { kind: 'bool' }
    case 'date':
      return { kind: 'date' }
    case 'time':
      return { kind: 'time' }
    case 'timestamp':
      return { kind: 'timestamp', utc: false }
    case 'timestamptz':
      return { kind: 'timestamp', utc: true }
    case 'binary':
      return { kind: 'binary' }
    case 'json':
    case 'list':
    case 'map':
    case 'string-set':
    case 'number-set':
    case 'binary-set':
      return { kind: 'json' }
    case 'number':
      return numberLayout(column.nativeType)
    default:
      // What `--type` asks for.
      return parseDecimalType(column.nativeType ?? '') === null ? { kind: 'utf8' } : numberLayout(column.nativeType)
  }
}

function numberLayout(nativeType: string | undefined): ColumnType {
  const [, precision = '', scale = '0'] = /^(?:numeric|decimal)\((\d+)(?:,(-?\d+))?\)/i.exec(nativeType ?? '') ?? []
  const decimal = { kind: 'decimal', precision: Number(precision), scale: Number(scale) } as const
  const fits = precision !== '' && decimal.precision >= 1 && decimal.precision <= 38
  return fits && decimal.scale >= 0 && decimal.scale <= decimal.precision ? decimal : { kind: 'float64' }
}

/** Whether a column's texts may name values that its layout lacks: infinity, BC, 24:00:00, NaN in a decimal. */
function hasSpecials(layout: ColumnType): boolean {
  const { kind } = layout
  if (layout.kind === 'list') return hasSpecials(layout.item)
  return kind === 'date' || kind === 'time' || kind === 'timestamp' || kind === 'decimal'
}

/** A column as it lies in Parquet: as text where its values may be special and shall be kept as such, nullable where they shall be null. */
function laidOut(column: Column, onSpecial: ColumnsBuilderOptions['onSpecial']): Column & { layout: ColumnType } {
  const layout = layoutOf(column)
  if (onSpecial === undefined || onSpecial === 'error' || !hasSpecials(layout)) return { ...column, layout }
  return onSpecial === 'text' ? { ...column, layout: { kind: 'utf8' } } : { ...column, layout, nullable: true }
}

export interface ColumnsBuilderOptions {
  readonly columns: readonly Column[]
  /** Whether values carry types of their own (`Schema.typed`): in a json column a text is then a JSON string, else it is JSON already. */
  readonly typed?: boolean | undefined
  /** For values that a column's type lacks (infinity, BC, 24:00:00, NaN in a decimal); `text`: a column that may have some is text. Default: error. */
  readonly onSpecial?: 'error' | 'null' | 'text' | undefined
}

/**
 * Gathers rows to columns. What a column takes: integers and decimals any text of exactly such a number (`1e3`, `1.0`), doubles any text whose
 * digits the double gives back, times ISO 8601 or PostgreSQL's ISO text up to microseconds, uuid and boolean their texts, json any JSON, lists a JSON
 * array, text anything (binary as base64). Memory: the values, in buffers that double; the caller ends a row group by `take`.
 */
export class ColumnsBuilder {
  /** Each with its layout: what `openParquetEncoder` takes. */
  readonly columns: readonly Column[]
  readonly #builders: readonly VectorBuilder[]
  readonly #options: ColumnsBuilderOptions
  #start: Position | null = null
  #end: Position = START

  constructor(options: ColumnsBuilderOptions) {
    this.#options = options
    const columns = options.columns.map((column) => laidOut(column, options.onSpecial))
    this.columns = columns
    this.#builders = columns.map(({ layout }) => new VectorBuilder(layout))
  }

  get rows(): number {
    return this.#builders[0]?.length ?? 0
  }

  /** Bytes of the values gathered. */
  get bytes(): number {
    return this.#builders.reduce((sum, builder) => sum + builder.bytes, 0)
  }

  /**
   * Takes all rows of a batch. Its columns are found by name; one that it lacks is null.
   *
   * @throws SLUICE_VALUE with row and column of a value that does not fit
   */
  add(batch: RowsBatch): void {
    this.#start ??= batch.start
    this.#end = batch.end
    const from = this.columns.map(({ name }) => batch.columns.indexOf(name))
    for (const [r, row] of batch.rows.entries())
      for (const [c, builder] of this.#builders.entries()) this.#add(builder, row[from[c] ?? -1], { batch, r, c })
  }

  /** The rows gathered as one batch, and begins anew. */
  take(): ColumnsBatch {
    const { rows } = this
    const bufferBytes = this.bytes
    const start = this.#start ?? this.#end
    this.#start = null
    return {
      form: 'columns',
      columns: this.columns.map(({ name }) => name),
      vectors: this.#builders.map((builder) => builder.take()),
      rows,
      bufferBytes,
      start,
      end: this.#end,
      mayEnd: true,
    }
  }

  #add(builder: VectorBuilder, value: Value, at: { batch: RowsBatch; r: number; c: number }): void {
    const misfit = addValue(builder, value, this.#options.typed === true)
    if (misfit === null) return
    if (misfit === 'special' && this.#options.onSpecial === 'null') return builder.addNull()
    throw misfitError(value, misfit, {
      type: builder.type,
      where: { ...at.batch.places[at.r], column: this.columns[at.c]?.name },
    })
  }
}

const MISFITS = { no: 'is no', special: 'has no place in a', inexact: 'does not fit exactly into a' } as const
const SHOWN = 60

function misfitError(value: Value, misfit: Misfit, o: { type: ColumnType; where: ErrorPlace }): SluiceError {
  const text =
    typeof value === 'object' && value !== null && 'text' in value
      ? value.text
      : value instanceof Uint8Array
        ? 'a binary value'
        : String(value)
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text
  return new SluiceError('SLUICE_VALUE', `"${shown}" ${MISFITS[misfit]} ${typeName(o.type)}`, {
    where: o.where,
    hint: 'mend the value, or keep the column as text: --type COLUMN=string',
  })
}

function typeName(type: ColumnType): string {
  if (type.kind === 'decimal') return `decimal(${type.precision},${type.scale})`
  if (type.kind === 'timestamp') return type.utc ? 'timestamp of UTC' : 'timestamp without offset'
  return type.kind === 'list' ? `list of ${typeName(type.item)}` : type.kind
}
