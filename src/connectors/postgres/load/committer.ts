import { setTimeout as delay } from 'node:timers/promises'
import { SluiceError, toSluiceError } from '../../../core/errors.ts'
import type { Json, Receipt } from '../../../core/job.ts'
import type { Abortable } from '../../../core/ports.ts'
import { retry } from '../../../core/retry.ts'
import type { RetryPolicy } from '../../../core/retry.ts'
import { committingEntry } from './commit-journal.ts'
import type { PgConnection } from '../connection/connection.ts'
import type { PostgresLane } from './lane.ts'

/** How long a transaction may stay "in progress" after its client is gone before we give up asking. */
const FATE_WAIT_MS = 60_000
const FATE_POLL_MS = 200

export interface CommitOutcome {
  readonly committed: readonly PostgresLane[]
  readonly lost: readonly PostgresLane[]
}

export interface CommitContext {
  readonly main: () => Promise<PgConnection>
  /** How long the server may be away before its word on a transaction is no longer waited for. */
  readonly retryForMs: number
  /** The lanes wait for nothing any more: what deferred constraints check is checked. */
  readonly onChecked: () => Promise<void>
  /** Makes an entry of the checkpoint durable. */
  readonly record: (entry: Json) => Promise<void>
}

/**
 * Ends the lanes' transactions together: all constraints are checked on each, their transaction ids and extents are recorded, then each is
 * committed. What a commit whose answer was lost has become is asked by transaction id.
 *
 * @returns which lanes committed and which are lost; where the check before the first COMMIT finds one lost, none is committed, and the rest stay open
 * @throws what a deferred constraint says: then nothing is committed
 */
export async function commitLanes(
  lanes: readonly PostgresLane[],
  context: CommitContext,
  o: Abortable,
): Promise<CommitOutcome> {
  const ready: { lane: PostgresLane; xid: string; receipts: readonly Receipt[] }[] = []
  const lost: PostgresLane[] = []
  for (const lane of lanes) {
    o.signal.throwIfAborted()
    try {
      await lane.endStatement()
      await lane.checkDeferred()
      const [row] = await lane.connection.query<{ xid: string }>('SELECT pg_current_xact_id()::text AS xid')
      ready.push({ lane, xid: row?.xid ?? '', receipts: [...lane.sealed] })
    } catch (error) {
      if (!toSluiceError(error).retryable) throw error
      lost.push(lane)
    }
  }
  if (lost.length > 0) return { committed: [], lost }
  await context.onChecked()
  await flushLog(context)
  await context.record(committingEntry(ready))
  const committed: PostgresLane[] = []
  // From here on nothing stops the commits but the end of the process.
  for (const { lane, xid } of ready) {
    const target = (await commit(lane, xid, context)) ? committed : lost
    target.push(lane)
  }
  return { committed, lost }
}

/**
 * A transaction id counts as used after a crash only if the server's log that names it was on disk; else it would be given away again, and the
 * fate asked for would be another's. A commit that wrote to the log flushes all before it (xact.c, RecordTransactionCommit).
 */
async function flushLog(context: CommitContext): Promise<void> {
  const flush = async (): Promise<void> => {
    const main = await context.main()
    await main.query('SET synchronous_commit = on')
    await main.query("SELECT pg_catalog.pg_logical_emit_message(true, 'sluice', '')")
  }
  try {
    await retry(flush, patience(context))
  } catch (error) {
    // A server may keep the function from us; then the ids are as safe as its log writer (wal_writer_delay, 200 ms) makes them.
    if (toSluiceError(error).retryable) throw error
  }
}

function patience({ retryForMs }: CommitContext): RetryPolicy {
  return { retryForMs, signal: AbortSignal.timeout(retryForMs + FATE_WAIT_MS) }
}

async function commit(lane: PostgresLane, xid: string, context: CommitContext): Promise<boolean> {
  try {
    await lane.connection.query('COMMIT')
    return true
  } catch (error) {
    if (lane.connection.lost() === null && !toSluiceError(error).retryable) throw error
    return (await retry(async () => transactionFate(await context.main(), xid), patience(context))) === 'committed'
  }
}

/**
 * What became of a transaction: waits where it is still in progress, since its backend may not have noticed yet that its client is gone.
 *
 * @throws SLUICE_STATE where the server has forgotten it, SLUICE_LOCKED where it does not end
 */
export async function transactionFate(connection: PgConnection, xid: string): Promise<'committed' | 'aborted'> {
  const until = performance.now() + FATE_WAIT_MS
  for (;;) {
    const [row] = await connection.query<{ status: string | null }>('SELECT pg_xact_status($1::xid8) AS status', [xid])
    const status = row?.status ?? null
    if (status === 'committed' || status === 'aborted') return status
    if (status === null)
      throw new SluiceError('SLUICE_STATE', `the server no longer knows what became of transaction ${xid}`, {
        hint: 'look at the table, then start over with --new-job',
      })
    if (performance.now() > until)
      throw new SluiceError('SLUICE_LOCKED', `transaction ${xid} of an earlier run does not end`, {
        hint: 'end its backend with pg_terminate_backend, then resume',
      })
    await delay(FATE_POLL_MS)
  }
}
