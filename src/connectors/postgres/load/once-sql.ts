import { toSluiceError } from '../../../core/errors.ts'
import type { Json } from '../../../core/job.ts'
import { isDone, lastXid } from './commit-journal.ts'
import type { OnceKind } from './commit-journal.ts'
import { transactionFate } from './committer.ts'
import type { PgConnection } from '../connection/connection.ts'
import { sqlState } from '../errors.ts'

interface OnceContext {
  readonly recorded: readonly Json[]
  record(entry: Json): Promise<void>
  /** Told of each statement before it runs. */
  readonly tell: (statement: string) => void
}

/** What takes no part in a transaction (VACUUM, CREATE INDEX CONCURRENTLY), or ends one itself (a procedure): PostgreSQL documentation, appendix A. */
const NO_TRANSACTION: readonly (string | null)[] = ['25001', '2D000']

/**
 * Statements that a job runs once, however often it is resumed: each in a transaction whose id is on disk before it begins, so that a later run asks the
 * server what became of it. One that takes no part in a transaction runs by itself, and again where a kill came between its end and our note of it.
 *
 * @throws what the server says of a statement, translated by SQLSTATE; as `transactionFate`
 */
export async function runOnce(
  connection: PgConnection,
  { kind, statements }: { readonly kind: OnceKind; readonly statements: readonly string[] },
  o: OnceContext,
): Promise<void> {
  for (const [index, statement] of statements.entries()) {
    if (isDone(o.recorded, kind, index)) continue
    const xid = lastXid(o.recorded, kind, index)
    if (xid === null || (await transactionFate(connection, xid)) === 'aborted') {
      o.tell(statement)
      await run(connection, statement, (begun) => o.record({ kind: 'once', of: kind, index, xid: begun }))
    }
    await o.record({ kind, index })
  }
}

async function run(connection: PgConnection, statement: string, record: (xid: string) => Promise<void>): Promise<void> {
  try {
    await connection.begin(['BEGIN'])
    const [row] = await connection.query<{ xid: string }>('SELECT pg_catalog.pg_current_xact_id()::text AS xid')
    await record(row?.xid ?? '')
    await connection.query(statement)
    await connection.query('COMMIT')
  } catch (thrown) {
    if (connection.lost() === null) await connection.query('ROLLBACK').catch(() => undefined)
    if (!NO_TRANSACTION.includes(sqlState(thrown))) throw toSluiceError(thrown)
    await connection.query(statement)
  }
}
