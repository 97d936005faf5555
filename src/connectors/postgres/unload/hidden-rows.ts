import { SluiceError } from '../../../core/errors.ts'
import type { PgConnection } from '../connection/connection.ts'
import { quoteTable } from '../quote.ts'
import type { TableDescription } from '../table/table.ts'
import { plainName } from './source-plan.ts'

/** The server's function that refuses to leave rows out (rls.c), as errors name it in every language. */
const REFUSES = 'check_enable_rls'

/**
 * Whether policies of row-level security hide rows of what a statement reads, behind views too: with `row_security = off` the server refuses to plan
 * such a statement. To be asked inside a transaction, which it leaves as it was; nothing is run.
 */
export async function policiesApply(connection: PgConnection, sql: string): Promise<boolean> {
  await connection.query('SAVEPOINT sluice_policies')
  const refusal = await connection
    .query('SET LOCAL row_security = off')
    .then(() => connection.query(`DECLARE sluice_policies NO SCROLL CURSOR FOR\n${sql}\n`))
    .then(
      () => null,
      (error: unknown) => error,
    )
  await connection.query('ROLLBACK TO SAVEPOINT sluice_policies; RELEASE SAVEPOINT sluice_policies')
  const cause = refusal instanceof SluiceError ? refusal.cause : refusal
  return Reflect.get(Object(cause), 'routine') === REFUSES
}

/** What is read, for the warning of rows that policies hide; null where they hide none. To be asked inside a transaction. */
export async function hiddenPlace(
  connection: PgConnection,
  what: { readonly table: TableDescription | null; readonly sql: string | null },
): Promise<string | null> {
  const { table, sql } = what
  if (table === null) return sql !== null && (await policiesApply(connection, sql)) ? 'what the query reads' : null
  if (table.rowSecurity) return plainName(table)
  const isView = table.kind === 'view' && (await policiesApply(connection, `SELECT FROM ${quoteTable(table)}`))
  return isView ? `what ${plainName(table)} reads` : null
}

/** The warning of what policies hide: it is missing without a word from the server. */
export function hiddenRows(place: string, role: string): string {
  return `row-level security of ${place} applies to role ${role}: only rows that its policies show are read`
}
