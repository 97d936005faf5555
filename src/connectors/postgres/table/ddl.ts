import { SluiceError } from '../../../core/errors.ts'
import type { Column } from '../../../core/schema.ts'
import { quoteIdentifier, quoteTable } from '../quote.ts'
import { sqlTypeOf } from './type-map.ts'

/** NAMEDATALEN - 1: what the server would cut a name to without an error. */
const LONGEST_NAME_BYTES = 63
/** MaxHeapAttributeNumber. */
const MOST_COLUMNS = 1_600

/**
 * The CREATE TABLE for `--create`, as it is run and shown. Columns take NULL unless `nullable` is false.
 *
 * @throws SLUICE_USAGE for names that PostgreSQL would cut or that come twice, for no column, and for more than 1,600
 */
export function createTableSql(
  table: { readonly schema: string; readonly name: string },
  columns: readonly Column[],
): string {
  for (const name of [table.schema, table.name]) checkName(name, 'table')
  if (columns.length === 0)
    throw new SluiceError('SLUICE_USAGE', `there is no column to create ${table.schema}.${table.name} with`)
  if (columns.length > MOST_COLUMNS) {
    throw new SluiceError(
      'SLUICE_USAGE',
      `${columns.length} columns are more than the ${MOST_COLUMNS} that a table can have`,
      { hint: 'use --select' },
    )
  }
  const seen = new Set<string>()
  const lines = columns.map((column) => {
    checkName(column.name, 'column')
    if (seen.has(column.name))
      throw new SluiceError('SLUICE_USAGE', `column ${column.name} comes twice`, { hint: 'use --rename or --columns' })
    seen.add(column.name)
    return `  ${quoteIdentifier(column.name)} ${sqlTypeOf(column)}${column.nullable === false ? ' NOT NULL' : ''}`
  })
  return `CREATE TABLE ${quoteTable(table)} (\n${lines.join(',\n')}\n)`
}

function checkName(name: string, what: string): void {
  const bytes = Buffer.byteLength(name)
  if (bytes >= 1 && bytes <= LONGEST_NAME_BYTES && !name.includes('\0')) return
  const problem =
    bytes === 0 ? 'is empty' : bytes > LONGEST_NAME_BYTES ? `is longer than ${LONGEST_NAME_BYTES} bytes` : 'holds a NUL'
  throw new SluiceError('SLUICE_USAGE', `a ${what}'s name ${problem}: ${name.slice(0, 80)}`, {
    hint: 'use --rename, or another name in the URL',
  })
}
