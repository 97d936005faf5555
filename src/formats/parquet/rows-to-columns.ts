import type { ColumnType } from '../../core/batch.ts'
import type { Column } from '../../core/schema.ts'

/** How the values of a column lie in Parquet. See `RowsToColumns` for what each takes. */
export function layoutOf(column: Column): ColumnType {
  if (column.layout !== undefined) return column.layout
  switch (column.type) {
    case 'integer':
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
      return { kind: 'utf8' }
  }
}

function numberLayout(nativeType: string | undefined): ColumnType {
  const [, precision = '', scale = '0'] = /^(?:numeric|decimal)\((\d+)(?:,(-?\d+))?\)/i.exec(nativeType ?? '') ?? []
  const decimal = { kind: 'decimal', precision: Number(precision), scale: Number(scale) } as const
  const fits = precision !== '' && decimal.precision >= 1 && decimal.precision <= 38
  return fits && decimal.scale >= 0 && decimal.scale <= decimal.precision ? decimal : { kind: 'float64' }
}
