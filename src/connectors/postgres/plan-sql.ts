import type { Schema } from '../../core/schema.ts'
import type { SinkRequest } from '../connector.ts'
import { beginSql } from './connection/begin-sql.ts'
import { matchColumns } from './table/column-match.ts'
import { copyStatement } from './load/copy-statement.ts'
import { LEDGER_SCHEMA, Ledger } from './load/ledger.ts'
import { quoteTable } from './quote.ts'
import { lockTimeoutMs } from './sink.ts'
import { loadableTable, missingTableSql } from './table/table-target.ts'
import { withTable } from './table/with-table.ts'

/** The statements that a load would run, in order. @throws as the load would before its first row */
export async function planSql(request: SinkRequest, schema: Schema): Promise<readonly string[]> {
  const { options } = request
  return withTable(request, async (connection, reference) => {
    const missing = options.create === true ? await missingTableSql(connection, reference, schema) : null
    const names = schema.columns.map((column) => column.name)
    const shape = { delimiter: options.delimiter ?? ',', quote: '"', escape: '"' }
    const truncate = options.mode === 'truncate'
    const table = missing === null ? await loadableTable(connection, reference, { truncate }) : null
    const quoted = quoteTable(table ?? missing?.table ?? { schema: '', name: '' })
    const columns =
      table === null
        ? names
        : matchColumns(names, table, options.byPosition === true || !schema.named).map((column) => column.name)
    const ledger =
      options.commit === 'partition'
        ? new Ledger(options.ledgerSchema ?? LEDGER_SCHEMA, { jobId: '', fingerprint: '', partitions: [] })
        : null
    const truncating = truncate ? [`TRUNCATE ${quoted}`] : []
    const copying = copyStatement({ table: quoted, columns }, shape, 'csv')
    const made = [...(options.beforeSql ?? []), ...(missing === null ? [] : [missing.sql])]
    const after = options.afterSql ?? []
    // Each lane's transaction, or each extent's where there is a ledger.
    const begin = beginSql(lockTimeoutMs(request.retryForMs))
    if (ledger === null)
      return [...made, ...begin, ...truncating, copying, 'SET CONSTRAINTS ALL IMMEDIATE', 'COMMIT', ...after]
    const { first, inExtent, last } = ledger.statements()
    return [...first, ...made, ...truncating, ...begin, inExtent, copying, 'COMMIT', last, ...after]
  })
}
