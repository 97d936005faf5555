import type { CsvBatch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import { locateRecord } from './locate.ts'

/** What is wrong with a record of so many fields where the file has other columns. `column`: the first that is missing, else the file's first. */
export function fieldCountFault(
  count: number,
  columns: readonly string[],
): { readonly message: string; readonly column: string | undefined } {
  const { length } = columns
  const message = `${count} ${count === 1 ? 'field' : 'fields'} where the file has ${length} ${length === 1 ? 'column' : 'columns'}`
  return { message, column: columns[count < length ? count : 0] }
}

/** The error of a batch's record, by its index from 0, that has so many fields. */
export function fieldCountError(batch: CsvBatch, index: number, count: number): SluiceError {
  const { message, column } = fieldCountFault(count, batch.columns)
  return new SluiceError('SLUICE_CSV_FIELD_COUNT', message, { where: { ...locateRecord(batch, index), column } })
}
