import { SluiceError } from '../../../core/errors.ts'
import type { Schema } from '../../../core/schema.ts'
import type { PgConnection } from '../connection/connection.ts'
import { createTableSql } from './ddl.ts'
import { quoteIdentifier, quoteTable } from '../quote.ts'
import { describeTable, findTable, requireLoadable } from './table.ts'
import type { TableDescription } from './table.ts'
import { candidates, formatReference } from './table-reference.ts'
import type { TableReference } from './table-reference.ts'

/** The names a table gets that does not exist yet: as SQL would fold them; without a schema, where the search path creates. */
export async function namesFor(
  connection: PgConnection,
  reference: TableReference,
): Promise<{ schema: string; name: string }> {
  const [name = reference.table.name] = candidates(reference.table)
  if (reference.schema !== null) {
    const [row] = await connection.query<{ nspname: string }>(
      'SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname = ANY($1::text[]) ORDER BY array_position($1::text[], nspname::text) LIMIT 1',
      [[...candidates(reference.schema)]],
    )
    if (row !== undefined) return { schema: row.nspname, name }
    throw new SluiceError('SLUICE_NOT_FOUND', `no schema ${reference.schema.name}`, {
      hint: 'CREATE SCHEMA first; --before-sql can do it',
    })
  }
  const [row] = await connection.query<{ schema: string | null }>('SELECT current_schema() AS schema')
  if (row?.schema === null || row?.schema === undefined)
    throw new SluiceError('SLUICE_NOT_FOUND', 'no schema of the search path exists', {
      hint: 'name one: ?table=schema.table',
    })
  return { schema: row.schema, name }
}

/** The CREATE TABLE that `--create` will run; null where the table is there. */
export async function missingTableSql(
  connection: PgConnection,
  reference: TableReference,
  schema: Schema,
): Promise<{ sql: string; table: { schema: string; name: string } } | null> {
  if ((await findTable(connection, reference)) !== null) return null
  const table = await namesFor(connection, reference)
  return { sql: createTableSql(table, schema.columns), table }
}

/** The table, and that rows may go into it. @throws SLUICE_NOT_FOUND, SLUICE_ACCESS_DENIED with the GRANT to ask for, SLUICE_USAGE */
export async function loadableTable(
  connection: PgConnection,
  reference: TableReference,
  o: { truncate: boolean },
): Promise<TableDescription> {
  const table = await describeTable(connection, reference)
  requireLoadable(table)
  const [may] = await connection.query<{ insert: boolean; truncate: boolean; role: string }>(
    "SELECT has_table_privilege($1::oid, 'INSERT') OR has_any_column_privilege($1::oid, 'INSERT') AS insert, has_table_privilege($1::oid, 'TRUNCATE') AS truncate, current_user AS role",
    [table.oid],
  )
  const missing = may?.insert === false ? 'INSERT' : o.truncate && may?.truncate === false ? 'TRUNCATE' : null
  if (missing !== null)
    throw new SluiceError(
      'SLUICE_ACCESS_DENIED',
      `role ${may?.role ?? ''} may not ${missing} into ${formatReference(reference)}`,
      {
        hint: `ask the owner for GRANT ${missing} ON ${quoteTable(table)} TO ${may?.role ?? 'the role'}`,
      },
    )
  if (table.rowSecurity)
    throw new SluiceError(
      'SLUICE_ACCESS_DENIED',
      `row-level security of ${formatReference(reference)} applies to role ${may?.role ?? ''}, and COPY refuses that`,
      { hint: 'load as the owner of the table, or as a role with BYPASSRLS' },
    )
  return table
}

/**
 * That the columns that a load fills may be written, where the table as a whole may not.
 *
 * @throws SLUICE_ACCESS_DENIED with the GRANT to ask for
 */
export async function requireInsertable(
  connection: PgConnection,
  table: TableDescription,
  columns: readonly { readonly name: string }[],
): Promise<void> {
  const rows = await connection.query<{ name: string; role: string }>(
    `SELECT a.attname AS name, current_user AS role FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = $1 AND a.attname = ANY($2::text[]) AND a.attnum > 0 AND NOT a.attisdropped
        AND NOT pg_catalog.has_table_privilege(a.attrelid, 'INSERT') AND NOT pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT')`,
    [table.oid, columns.map((column) => column.name)],
  )
  const [first] = rows
  if (first === undefined) return
  const [names, quoted] = [rows.map(({ name }) => name), rows.map(({ name }) => quoteIdentifier(name))]
  const what = `${table.schema}.${table.name}`
  throw new SluiceError(
    'SLUICE_ACCESS_DENIED',
    `role ${first.role} may not INSERT into column ${names.join(', ')} of ${what}`,
    {
      hint: `ask the owner for GRANT INSERT (${quoted.join(', ')}) ON ${quoteTable(table)} TO ${first.role}, or leave them out with --select`,
    },
  )
}
