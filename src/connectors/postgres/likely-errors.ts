import type { CsvBatch, Value } from '../../core/batch.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { fieldText, findFieldEnd, type FieldShape } from './csv-field.ts'
import { sureObjection } from './sure-objections.ts'
import type { TableColumn } from './table.ts'
import type { BadValue } from './value-checks.ts'

export interface LikelyErrorOptions {
  /** The table has row triggers, which may mend a NULL before it is checked. */
  readonly triggers?: boolean
}

type CsvRecords = Pick<CsvBatch, 'form' | 'bytes' | 'quoted' | 'csv'>
type ParsedRows = { readonly form: 'rows'; readonly rows: readonly (readonly Value[])[] }

/**
 * The first row of a batch to which COPY is sure to object, in every PostgreSQL from 13 to 18; null where none is: then the server's own line number has
 * to tell. For use once COPY has objected: a string is made of each field that has a type to be checked against.
 */
export function findLikelyError(columns: readonly (TableColumn | null)[], batch: CsvRecords | ParsedRows, o: LikelyErrorOptions = {}): BadValue | null {
  return batch.form === 'csv' ? findInCsv(columns, batch, o) : findInRows(columns, batch.rows, o)
}

function findInRows(columns: readonly (TableColumn | null)[], rows: readonly (readonly Value[])[], o: LikelyErrorOptions): BadValue | null {
  for (const [recordIndex, row] of rows.entries()) {
    for (const [columnIndex, column] of columns.entries()) {
      if (column === null) continue
      const value = row[columnIndex]
      const found = value === null || value === undefined ? nullObjection(column, o) : valueObjection(column, textOf(value))
      if (found !== null) return { recordIndex, columnIndex, ...found }
    }
  }
  return null
}

function textOf(value: Exclude<Value, null | undefined>): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  return value instanceof Uint8Array ? null : value.text
}

function findInCsv(columns: readonly (TableColumn | null)[], batch: CsvRecords, o: LikelyErrorOptions): BadValue | null {
  const { bytes, csv } = batch
  const quote = batch.quoted && csv.quote !== null ? csv.quote.charCodeAt(0) : -1
  const shape: FieldShape = { delimiter: csv.delimiter.charCodeAt(0), quote, escape: csv.escape.charCodeAt(0) }
  let at = 0
  for (let recordIndex = 0; at < bytes.length; recordIndex += 1) {
    const record = { recordIndex, start: at }
    const found = findInRecord(columns, { bytes, shape, o }, record)
    if (found.bad !== null) return found.bad
    at = found.end
  }
  return null
}

interface Input {
  readonly bytes: Uint8Array
  readonly shape: FieldShape
  readonly o: LikelyErrorOptions
}

function findInRecord(
  columns: readonly (TableColumn | null)[],
  { bytes, shape, o }: Input,
  { recordIndex, start }: { recordIndex: number; start: number },
): { bad: BadValue | null; end: number } {
  let at = start
  let bad: BadValue | null = null
  for (let columnIndex = 0; ; columnIndex += 1) {
    const end = findFieldEnd(bytes, at, shape)
    const column = columns[columnIndex] ?? null
    if (column !== null && bad === null) {
      const text = fieldText(bytes, { start: at, end, shape })
      const isNull = text === '' && (shape.quote < 0 || bytes[at] !== shape.quote)
      const found = isNull ? nullObjection(column, o) : valueObjection(column, text)
      if (found !== null) bad = { recordIndex, columnIndex, ...found }
    }
    at = end + 1
    if (end >= bytes.length || bytes[end] !== shape.delimiter) {
      const fields = columnIndex + 1
      const wrongCount = `the row has ${fields} ${fields === 1 ? 'field' : 'fields'} where ${columns.length} are due`
      if (fields === columns.length) return { bad, end: at }
      return { bad: { recordIndex, columnIndex: Math.min(fields, columns.length) - 1, reason: wrongCount, code: 'SLUICE_CSV_FIELD_COUNT' }, end: at }
    }
  }
}

type Objection = { readonly reason: string; readonly code: ErrorCode }

function nullObjection(column: TableColumn, o: LikelyErrorOptions): Objection | null {
  if (column.nullable || o.triggers === true) return null
  return { reason: `no value for ${column.name}, which takes no NULL`, code: 'SLUICE_CONSTRAINT' }
}

function valueObjection(column: TableColumn, text: string | null): Objection | null {
  const reason = text === null ? null : sureObjection(column, text)
  return reason === null ? null : { reason: `${JSON.stringify(text === null || text.length <= 60 ? text : `${text.slice(0, 60)}…`)} ${reason}`, code: 'SLUICE_VALUE' }
}
