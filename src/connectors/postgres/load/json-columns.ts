import type { RowsBatch, Value } from '../../../core/batch.ts'
import { arrayLiteral } from './array-literal.ts'
import { isNestedJson } from './json-text.ts'
import type { TableColumn } from '../table/table.ts'

/** pg_type.dat: json, jsonb. */
const JSON_OIDS: readonly number[] = [114, 3802]
const BYTEA_OID = 17

/** How rows are taken for a table. */
export interface Adapting {
  /** Whether values carry types of their own (JSON). */
  readonly typed: boolean
  /** A text of JSON goes into a bytea column as the text's own bytes, though JSON Lines have base64 there, as a rule ours, too. */
  readonly onTextForBytes: (column: TableColumn) => void
}

type Conversion = (value: Value) => Value

/**
 * Rows as the columns that they go into read them: JSON arrays as arrays, and, where values carry types of their own (`typed`), a text as a JSON
 * string, unless it is the text of an object or an array, which programs write into JSON Lines for want of better. The same batch where there is nothing to do.
 */
export function forJsonColumns(batch: RowsBatch, columns: readonly TableColumn[], how: Adapting): RowsBatch {
  const conversions = columns.map((column) => conversionFor(column, how))
  if (conversions.every((conversion) => conversion === null)) return batch
  const convert = (value: Value, i: number): Value => conversions[i]?.(value) ?? value
  return { ...batch, rows: batch.rows.map((row) => row.map(convert)) }
}

function conversionFor(column: TableColumn, { typed, onTextForBytes }: Adapting): Conversion | null {
  const { element } = column
  if (element !== null)
    return (value) => {
      const isJson = typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'json'
      return isJson && /^\s*\[/.test(value.text) ? arrayLiteral(value.text, element, value.documents) : value
    }
  if (typed && column.baseTypeOid === BYTEA_OID)
    return (value) => {
      if (typeof value === 'string' && value !== '' && !value.startsWith(String.raw`\x`)) onTextForBytes(column)
      return value
    }
  if (!typed || !JSON_OIDS.includes(column.baseTypeOid)) return null
  return (value) => (typeof value === 'string' && !isNestedJson(value) ? JSON.stringify(value) : value)
}
