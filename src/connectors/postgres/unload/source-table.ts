import { SluiceError } from '../../../core/errors.ts'
import { shellQuote } from '../../../core/shell-quote.ts'
import type { PgConnection } from '../connection/connection.ts'
import { whileReading } from '../errors.ts'
import { quoteIdentifier, quoteTable } from '../quote.ts'
import { describeTable, findTable } from '../table/table.ts'
import type { TableColumn, TableDescription } from '../table/table.ts'
import type { TableReference } from '../table/table-reference.ts'
import { plainName } from './source-plan.ts'
import type { QueryColumn } from './query.ts'

/** The columns that are wanted, in their order (`--select`). */
export type ChooseColumns = <T extends { readonly name: string }>(columns: readonly T[]) => readonly T[]

/** What is known of a column before it is read: enough to say how its values look in each form. Types and modifiers as in TableColumn. */
export type ReadColumn = Pick<
  TableColumn,
  'name' | 'type' | 'baseTypeOid' | 'baseTypmod' | 'baseType' | 'kind' | 'element'
> & {
  readonly nullable?: boolean
}

/** What a role may do with a table that it may read. */
export interface Readable {
  /**
   * How the table is locked before the snapshot is taken: a TRUNCATE in between would show it empty (documentation, "MVCC Caveats"). Null: it can't be
   * locked by itself; `holdTable` does that.
   */
  readonly lockSql: string | null
  /** Whether the table as a whole may be read, its system columns (ctid) too; else only columns by name. */
  readonly whole: boolean
}

/**
 * Makes sure, outside the transaction, that the columns of a table that `choose` wants may be read.
 *
 * @throws SLUICE_NOT_FOUND with the nearest name, SLUICE_ACCESS_DENIED with the GRANT to ask for
 */
export async function readableTable(
  connection: PgConnection,
  reference: TableReference,
  choose: ChooseColumns,
): Promise<Readable> {
  const table = (await findTable(connection, reference)) ?? (await describeTable(connection, reference, 'read'))
  const [may] = await connection.query<{ schema: boolean; whole: boolean; role: string }>(
    `SELECT pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE') AS schema, pg_catalog.has_table_privilege(c.oid, 'SELECT') AS whole,
            current_user AS role
       FROM pg_catalog.pg_class c WHERE c.oid = $1`,
    [table.oid],
  )
  const role = may?.role ?? 'the role'
  const denied = (what: string, grant: string, besides = ''): SluiceError =>
    new SluiceError('SLUICE_ACCESS_DENIED', `role ${role} may not ${what}`, {
      hint: `ask the owner for GRANT ${grant} TO ${role}${besides}`,
    })
  if (may?.schema === false) throw denied(`use the schema ${table.schema}`, `USAGE ON SCHEMA ${table.schema}`)
  const whole = may?.whole === true
  if (!whole) {
    const columns = await connection.query<{ name: string; may: boolean }>(
      `SELECT attname AS name, pg_catalog.has_column_privilege(attrelid, attnum, 'SELECT') AS may
         FROM pg_catalog.pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
      [table.oid],
    )
    const own = columns.filter((column) => column.may).map((column) => column.name)
    const closed = choose(columns).filter((column) => !column.may)
    if (own.length === 0) throw denied(`read ${plainName(table)}`, `SELECT ON ${quoteTable(table)}`)
    if (closed.length > 0) {
      const [names, quoted] = [closed.map(({ name }) => name), closed.map(({ name }) => quoteIdentifier(name))]
      const choice = `, or leave them out: ${shellQuote(['--select', own.join(',')])}`
      const grant = `SELECT (${quoted.join(', ')}) ON ${quoteTable(table)}`
      throw denied(`read column ${names.join(', ')} of ${plainName(table)}`, grant, choice)
    }
  }
  const isLockable = whole && (table.kind === 'table' || table.kind === 'partitioned')
  return { whole, lockSql: isLockable ? `LOCK TABLE ${quoteTable(table)} IN ACCESS SHARE MODE` : null }
}

/** Locks whatever a table's rows come from (ACCESS SHARE) until the transaction ends: nobody drops or alters it meanwhile. */
export async function holdTable(connection: PgConnection, table: TableDescription): Promise<void> {
  await connection.query(`SELECT FROM ${quoteTable(table)} LIMIT 0`).catch((error: unknown) => {
    throw whileReading(error, `reading ${plainName(table)}`)
  })
}

/** @throws SLUICE_USAGE, naming the column, where two have one name: only CSV can have that */
export function requireDistinct(columns: readonly { readonly name: string }[]): void {
  const seen = new Set<string>()
  for (const { name } of columns) {
    if (seen.has(name))
      throw new SluiceError('SLUICE_USAGE', `the query gives two columns of the name ${name}`, {
        hint: `name one of them otherwise: … AS ${name}_2`,
        where: { column: name },
      })
    seen.add(name)
  }
}

/** What a query's columns are, looked up by their types. */
export async function readQueryColumns(
  connection: PgConnection,
  columns: readonly QueryColumn[],
): Promise<readonly ReadColumn[]> {
  const rows = await connection.query<{
    type: string
    kind: string
    element_oid: string | null
    element_type: string | null
    element_kind: string | null
  }>(
    `WITH RECURSIVE given AS (
       SELECT * FROM unnest($1::oid[], $2::int4[]) WITH ORDINALITY AS u(oid, typmod, place)
     ), element AS (
       SELECT g.place, t.typelem AS oid, g.typmod FROM given g JOIN pg_catalog.pg_type t ON t.oid = g.oid WHERE t.typcategory = 'A' AND t.typelem <> 0
       UNION ALL
       SELECT e.place, t.typbasetype, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE e.typmod END
         FROM element e JOIN pg_catalog.pg_type t ON t.oid = e.oid WHERE t.typtype = 'd'
     )
     SELECT pg_catalog.format_type(g.oid, g.typmod) AS type, t.typtype AS kind, e.oid::text AS element_oid,
            pg_catalog.format_type(e.oid, e.typmod) AS element_type, et.typtype AS element_kind
       FROM given g JOIN pg_catalog.pg_type t ON t.oid = g.oid
       LEFT JOIN (element e JOIN pg_catalog.pg_type et ON et.oid = e.oid AND et.typtype <> 'd') ON e.place = g.place
      ORDER BY g.place`,
    [columns.map((column) => column.typeOid), columns.map((column) => column.typmod)],
  )
  return columns.map((column, i) => {
    const row = rows[i]
    return {
      name: column.name,
      type: row?.type ?? 'text',
      baseTypeOid: column.typeOid,
      baseTypmod: column.typmod,
      baseType: row?.type ?? 'text',
      kind: row?.kind ?? 'b',
      element:
        row === undefined || row.element_oid === null
          ? null
          : {
              typeOid: Number(row.element_oid),
              typmod: column.typmod,
              type: row.element_type ?? '',
              kind: row.element_kind ?? 'b',
            },
    }
  })
}
