import { connect } from '../connection/connection.ts'
import { describeQuery } from './query.ts'
import { hiddenPlace } from './hidden-rows.ts'
import { Snapshot } from './snapshot.ts'
import { findLeaves } from './source-plan.ts'
import type { LeavesFound } from './source-plan.ts'
import { holdTable, readableTable, readQueryColumns } from './source-table.ts'
import type { ChooseColumns, ReadColumn } from './source-table.ts'
import { describeTable } from '../table/table.ts'
import type { TableDescription } from '../table/table.ts'
import type { TableReference } from '../table/table-reference.ts'
import { SluiceError } from '../../../core/errors.ts'
import type { PgConnection } from '../connection/connection.ts'
import type { PostgresTarget } from '../connection/url.ts'

/** No wait for another session's lock is longer. Never longer than --retry-for. */
const LOCK_TIMEOUT_MS = 10_000

/** Each reader locks all leaves of a table with no more than these; the server's table of locks has room for some thousands (max_locks_per_transaction). */
const MOST_LOCKED_LEAVES = 100

/** What is read: a table, or what one statement gives. */
export type SourceSubject =
  { readonly kind: 'table'; readonly reference: TableReference } | { readonly kind: 'query'; readonly sql: string }

/** What a source knows once it has taken its snapshot. */
export interface SourceState {
  readonly snapshot: Snapshot
  readonly columns: readonly ReadColumn[]
  /** Null for a query. */
  readonly table: TableDescription | null
  readonly found: LeavesFound | null
  /** The query; null for a table. */
  readonly sql: string | null
  /** Where row-level security hides rows from us; null: nowhere. */
  readonly hidden: string | null
}

interface OpenOptions {
  readonly signal: AbortSignal
  readonly retryForMs: number
  readonly timeZone: string | undefined
  /** Of a table's columns. */
  readonly choose: ChooseColumns
}

/**
 * Connects, looks at what is to be read, takes the snapshot and holds the relations.
 *
 * @throws as `connect` does; SLUICE_NOT_FOUND, SLUICE_ACCESS_DENIED, SLUICE_USAGE, SLUICE_SQL, SLUICE_LOCKED
 */
export async function openSourceState(
  target: PostgresTarget,
  subject: SourceSubject,
  o: OpenOptions,
): Promise<SourceState> {
  const { signal, timeZone } = o
  const main = await connect(target, { signal, applicationName: 'sluice', timeZone })
  const onAbort = (): void => void main.close()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await look(main, { target, subject, o })
  } catch (error) {
    await main.close()
    signal.throwIfAborted()
    throw error instanceof SluiceError ? error.at({ url: target.url }) : error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

interface LookRequest {
  readonly target: PostgresTarget
  readonly subject: SourceSubject
  readonly o: OpenOptions
}

async function look(main: PgConnection, { target, subject, o }: LookRequest): Promise<SourceState> {
  const { lockSql, whole } =
    subject.kind === 'query' ? { lockSql: null, whole: true } : await readableTable(main, subject.reference, o.choose)
  const lockTimeoutMs = Math.min(LOCK_TIMEOUT_MS, Math.max(1000, o.retryForMs))
  const snapshot = await Snapshot.take(main, target, { timeZone: o.timeZone, lockTimeoutMs, lockSql })
  if (subject.kind === 'query') {
    const { sql } = subject
    const columns = await readQueryColumns(main, await describeQuery(main, sql))
    const hidden = await hiddenPlace(main, { table: null, sql })
    return { snapshot, columns, table: null, found: null, sql, hidden }
  }
  const table = await describeTable(main, subject.reference, 'read')
  await holdTable(main, table)
  const leaves = await findLeaves(main, table)
  // Whoever may read some columns only may not read the ctid.
  const found = whole ? leaves : { ...leaves, direct: false }
  if (found.leaves.length <= MOST_LOCKED_LEAVES) snapshot.begin(lockSql)
  const hidden = await hiddenPlace(main, { table, sql: null })
  return { snapshot, columns: o.choose(table.columns), table, found, sql: null, hidden }
}
