import type { BatchForm } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Json, Output, Receipt } from '../../core/job.ts'
import type { Abortable, FinishResult, Lane, Sink, SinkPlan } from '../../core/ports.ts'
import { retry } from '../../core/retry.ts'
import type { SinkRequest } from '../connector.ts'
import { beginSql } from './connection/begin-sql.ts'
import { commitLanes, transactionFate } from './load/committer.ts'
import { committingLanes, createdTable } from './load/commit-journal.ts'
import type { OnceKind } from './load/commit-journal.ts'
import { connect } from './connection/connection.ts'
import type { PgConnection } from './connection/connection.ts'
import { PostgresLane, withinMs } from './load/lane.ts'
import { LEDGER_SCHEMA, Ledger } from './load/ledger.ts'
import { LockWatch } from './load/lock-watch.ts'
import { runOnce } from './load/once-sql.ts'
import { quoteTable } from './quote.ts'
import { TableLoad } from './load/table-load.ts'
import { loadableTable, missingTableSql, requireInsertable } from './table/table-target.ts'
import type { TableReference } from './table/table-reference.ts'
import type { PostgresTarget } from './connection/url.ts'
import { tableTarget } from './table/with-table.ts'

/** Source bytes of an extent: one COPY. Measured: smaller ones cost round trips, larger ones memory: parsed rows take some ten times their bytes (JSON Lines: 500 MiB with 4 MiB, 300 so). */
const EXTENT_BYTES = 4 * 1024 * 1024
const ROWS_EXTENT_BYTES = 512 * 1024
const MOST_LANES = 8
/** No wait for another session's lock is longer; then the extent is tried again. Never longer than --retry-for. */
const LOCK_TIMEOUT_MS = 10_000

/** A table of ours that somebody else uses by now stays. */
const DROP_LOCK_MS = 2000

/** What is told to a server at the end of a failed job waits no longer, in case it hangs: cli.md wants 10 s at most after a signal. */
const LAST_WORD_MS = 2000

/** @throws SLUICE_USAGE, SLUICE_NOT_YET */
export function createPostgresSink(request: SinkRequest): Promise<Sink> {
  return Promise.resolve(new PostgresSink(request, tableTarget(request)))
}

/** How long a lane waits for another session's lock, ms. */
export function lockTimeoutMs(retryForMs: number): number {
  return Math.max(1000, Math.min(LOCK_TIMEOUT_MS, retryForMs))
}

/**
 * Rows that are committed were read of one state of a source; where it has only its present one, those that are still to come would be of another, and
 * some come twice or never. So nothing may be missing. @throws SLUICE_SOURCE_CHANGED
 */
function requireOneState(plan: SinkPlan | null, sealed: readonly Receipt[]): readonly Receipt[] {
  if (plan?.restarts !== true || sealed.length === 0) return sealed
  const isWhole = plan.partitions.every((partition) => {
    const own = sealed.filter(({ extent }) => extent.partition === partition.id)
    return own.some(({ extent }) => extent.last && extent.sequence + 1 === own.length)
  })
  if (isWhole) return sealed
  throw new SluiceError('SLUICE_SOURCE_CHANGED', 'what was committed was read in a snapshot that is gone', {
    hint: 'empty the table and load it anew: --mode truncate --new-job; --commit job leaves nothing to mix',
  })
}

/** Loads a table: lanes COPY in parallel; `--commit job` ends their transactions together, `--commit partition` each extent by itself. */
class PostgresSink implements Sink {
  readonly forms: readonly BatchForm[] = ['csv', 'rows']
  readonly #request: SinkRequest
  readonly #target: PostgresTarget
  readonly #reference: TableReference
  readonly #lanes = new Set<PostgresLane>()
  readonly #pids = new Set<number>()
  readonly #watch = new LockWatch(() => this.#main())
  #connection: Promise<PgConnection> | null = null
  #load: TableLoad | null = null
  #ledger: Ledger | null = null
  /** The table that this job made, quoted. */
  #created: string | null = null
  #finishing = false
  #plan: SinkPlan | null = null

  constructor(request: SinkRequest, where: { target: PostgresTarget; reference: TableReference }) {
    this.#request = request
    this.#target = where.target
    this.#reference = where.reference
  }

  get lanes(): { max: number; ordered: boolean } {
    return { max: this.#oneLane() ? 1 : MOST_LANES, ordered: false }
  }

  get extentBytes(): { target: number; exact: boolean } {
    return { target: this.#plan?.form === 'rows' ? ROWS_EXTENT_BYTES : EXTENT_BYTES, exact: false }
  }

  async prepare(plan: SinkPlan, o: Abortable): Promise<void> {
    this.#plan = plan
    const { options, context } = this.#request
    const main = await this.#main(o.signal)
    if (options.commit === 'partition') {
      this.#ledger = new Ledger(options.ledgerSchema ?? LEDGER_SCHEMA, {
        jobId: context.jobId,
        fingerprint: context.fingerprint,
        partitions: plan.partitions,
      })
      await this.#ledger.open(main, context)
    }
    await this.#runOnce('before-sql', options.beforeSql ?? [], main)
    await this.#findOrCreate(plan, main)
    const table = await loadableTable(main, this.#reference, { truncate: options.mode === 'truncate' })
    const load = new TableLoad(table, {
      byPosition: options.byPosition === true || !plan.schema.named,
      timeZone: options.timeZone ?? 'UTC',
      typed: plan.schema.typed === true,
      warn: (text) => this.#request.reporter.warn(text),
    })
    this.#load = load
    const columns = load.columnsFor(plan.schema.columns.map((column) => column.name))
    await requireInsertable(main, table, columns)
    if (options.mode === 'truncate' && this.#ledger !== null)
      await this.#runOnce('truncated', [`TRUNCATE ${quoteTable(table)}`], main)
  }

  async recover(): Promise<readonly Receipt[]> {
    const main = await this.#main()
    if (this.#ledger !== null) return requireOneState(this.#plan, await this.#ledger.sealed(main))
    const receipts: Receipt[] = []
    for (const lane of committingLanes(this.#request.context.recorded))
      if ((await transactionFate(main, lane.xid)) === 'committed') receipts.push(...lane.receipts)
    return receipts
  }

  async openLane(o: Abortable): Promise<Lane> {
    const load = this.#loaded()
    const connection = await this.#connect(o.signal)
    const onStop = (): void => this.#freeHungLane(connection)
    o.signal.addEventListener('abort', onStop, { once: true })
    const lane: PostgresLane = new PostgresLane(connection, {
      load,
      target: quoteTable(load.table),
      ledger: this.#ledger,
      oneStatement: load.table.selfReferencing && this.#ledger === null,
      first: this.#truncatesInLane() ? `TRUNCATE ${quoteTable(load.table)}` : null,
      lockTimeoutMs: lockTimeoutMs(this.#request.retryForMs),
      waitedForOurs: (pid) => this.#watch.hasCaught(pid),
      isOurs: (pid) => this.#pids.has(pid),
      onAborted: () => {
        o.signal.removeEventListener('abort', onStop)
        this.#lanes.delete(lane)
        this.#watch.remove(connection.backendPid)
      },
    })
    this.#pids.add(connection.backendPid)
    if (this.#ledger === null) {
      this.#lanes.add(lane)
      this.#watch.add(connection.backendPid)
    }
    return lane
  }

  async finish(receipts: readonly Receipt[], o: Abortable): Promise<FinishResult> {
    o.signal.throwIfAborted()
    this.#finishing = true
    try {
      return await this.#finish(receipts, o)
    } finally {
      this.#finishing = false
    }
  }

  async #finish(receipts: readonly Receipt[], o: Abortable): Promise<FinishResult> {
    if (this.#lanes.size > 0) {
      const context = {
        main: () => this.#main(),
        retryForMs: this.#request.retryForMs,
        onChecked: () => this.#watch.stop(),
        record: (entry: Json) => this.#request.context.record(entry),
      }
      const { committed, lost } = await commitLanes([...this.#lanes], context, o)
      for (const lane of committed) {
        this.#lanes.delete(lane)
        await lane.connection.close()
      }
      for (const lane of lost) await lane.abort()
      if (lost.length > 0)
        return { outputs: [], lost: lost.flatMap((lane) => lane.sealed.map((receipt) => receipt.extent)) }
    }
    return { outputs: await this.#conclude(receipts), lost: [] }
  }

  async abort(_reason: unknown, o: { readonly resumable: boolean }): Promise<void> {
    await this.#watch.stop()
    await Promise.all([...this.#lanes].map((lane) => lane.abort()))
    this.#lanes.clear()
    if (this.#ledger === null) await withinMs(LAST_WORD_MS, this.#dropCreated())
    else if (!o.resumable)
      await withinMs(
        LAST_WORD_MS,
        this.#main().then((main) => this.#ledger?.fail(main)),
      )
  }

  async close(): Promise<void> {
    await this.#watch.stop()
    await Promise.all([...this.#lanes].map((lane) => lane.connection.close()))
    await this.#connection?.then(
      (connection) => connection.close(),
      () => undefined,
    )
  }

  /** A lane that waits for a server which hangs would hear nothing of a stop: its socket is taken away. Not once commits are under way. */
  #freeHungLane(connection: PgConnection): void {
    setTimeout(() => {
      if (!this.#finishing) void connection.close()
    }, LAST_WORD_MS).unref()
  }

  #loaded(): TableLoad {
    if (this.#load === null) throw new SluiceError('SLUICE_INTERNAL', 'the sink was not prepared')
    return this.#load
  }

  #truncatesInLane(): boolean {
    return this.#request.options.mode === 'truncate' && this.#ledger === null
  }

  /** TRUNCATE locks other lanes out, and a foreign key to the table itself is checked at the end of one statement. */
  #oneLane(): boolean {
    return this.#truncatesInLane() || (this.#load?.table.selfReferencing === true && this.#ledger === null)
  }

  #connect(signal: AbortSignal): Promise<PgConnection> {
    return connect(this.#target, {
      signal,
      applicationName: `sluice ${this.#request.context.jobId}`,
      timeZone: this.#request.options.timeZone,
    })
  }

  /** The connection for all that is not COPY; opened anew where it was lost. */
  async #main(signal: AbortSignal = AbortSignal.timeout(this.#request.retryForMs + 60_000)): Promise<PgConnection> {
    const current = await this.#connection?.catch(() => null)
    if (current !== null && current !== undefined && current.lost() === null) return current
    const policy = { retryForMs: current === undefined ? 0 : this.#request.retryForMs, signal }
    this.#connection = retry(() => this.#connect(signal), policy)
    return this.#connection
  }

  #runOnce(kind: OnceKind, statements: readonly string[], main: PgConnection): Promise<void> {
    const { context, tellSql } = this.#request
    const { recorded } = context
    return runOnce(main, { kind, statements }, { recorded, record: (entry) => context.record(entry), tell: tellSql })
  }

  async #findOrCreate(plan: SinkPlan, main: PgConnection): Promise<void> {
    const { options, context, tellSql } = this.#request
    this.#created = createdTable(context.recorded)
    if (options.create !== true) return
    const missing = await missingTableSql(main, this.#reference, plan.schema)
    if (missing === null) return
    tellSql(missing.sql)
    await main.query(missing.sql)
    // Noted once it is there: a table that another session made meanwhile is never taken for ours.
    this.#created = quoteTable(missing.table)
    await context.record({ kind: 'created', table: this.#created })
  }

  async #conclude(receipts: readonly Receipt[]): Promise<readonly Output[]> {
    const main = await this.#main()
    await this.#ledger?.finish(main)
    await this.#runOnce('after-sql', this.#request.options.afterSql ?? [], main)
    const sum = (of: (receipt: Receipt) => number): number =>
      receipts.reduce((total, receipt) => total + of(receipt), 0)
    return [
      {
        url: this.#target.url,
        rows: sum((receipt) => receipt.rowsWritten),
        bytes: sum((receipt) => receipt.bytesWritten),
        etag: null,
      },
    ]
  }

  /** A table that this job created goes again with it, if it is still empty. */
  async #dropCreated(): Promise<void> {
    const table = this.#created
    if (table === null) return
    const main = await this.#main()
    await main.begin([...beginSql(DROP_LOCK_MS), `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`])
    const [row] = await main.query<{ filled: boolean }>(`SELECT EXISTS (SELECT 1 FROM ${table}) AS filled`)
    await main.query(row?.filled === false ? `DROP TABLE ${table}; COMMIT` : 'ROLLBACK')
  }
}
