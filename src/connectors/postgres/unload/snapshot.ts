import type { Socket } from 'node:net'
import { SluiceError } from '../../../core/errors.ts'
import { connect } from '../connection/connection.ts'
import type { PgConnection } from '../connection/connection.ts'
import { sqlState, STANDBY_CONFLICT, STANDBY_HINT } from '../errors.ts'
import { quoteLiteral } from '../quote.ts'
import type { PostgresTarget } from '../connection/url.ts'

export interface SnapshotOptions {
  readonly timeZone: string | undefined
  /** No wait for another session's lock is longer, ms. */
  readonly lockTimeoutMs: number
  /** Statement that takes locks before the snapshot is taken, so that nothing is truncated in between; null: none. */
  readonly lockSql: string | null
}

/** From which version on (server_version_num) a session can be told not to end long transactions; to look whether its client is still there. */
const HAS_TRANSACTION_TIMEOUT = 170_000
const HAS_CONNECTION_CHECK = 140_000
const CONNECTION_CHECK_MS = 2000
const BEGIN = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
/**
 * The same statement gives the same rows in the same order each time: no parallel plans, no scan that joins another's in the middle; and no time is lost
 * on compiling.
 */
const STEADY = ['synchronize_seqscans = off', 'max_parallel_workers_per_gather = 0', 'jit = off']
/** Parameters and values of SET TRANSACTION SNAPSHOT that the server does not know any more (before and from PostgreSQL 17 on). */
const NO_SNAPSHOT_STATES: readonly (string | null)[] = ['22023', '42704', '55000', '58P01']

/**
 * One state of the database, seen by several connections: the main one exports its snapshot and stays, idle in its transaction; readers take it over
 * and keep it between statements. A reader that was lost or gave an error is discarded; at most as many are open as were borrowed at once.
 */
export class Snapshot {
  readonly main: PgConnection
  readonly #target: PostgresTarget
  readonly #id: string
  readonly #options: SnapshotOptions
  readonly #idle: PgConnection[] = []
  readonly #open = new Set<PgConnection>()
  #readerSql: string | null = null
  #closed = false

  private constructor(main: PgConnection, id: string, o: { target: PostgresTarget; options: SnapshotOptions }) {
    this.main = main
    this.#target = o.target
    this.#id = id
    this.#options = o.options
  }

  /** Begins the transaction on a connection that is free, and owns the connection from then on. @throws translated by SQLSTATE */
  static async take(main: PgConnection, target: PostgresTarget, options: SnapshotOptions): Promise<Snapshot> {
    await main.begin([...sessionSql(main.version), BEGIN, ...localSql(options)])
    if (options.lockSql !== null) await main.query(options.lockSql)
    const [row] = await main.query<{ id: string }>('SELECT pg_catalog.pg_export_snapshot() AS id')
    return new Snapshot(main, row?.id ?? '', { target: sameHost(target, main), options })
  }

  /**
   * What each reader opened from now on does first. Its own locks, taken early, keep it from waiting behind a DROP that waits for the main connection's.
   */
  begin(readerSql: string | null): void {
    this.#readerSql = readerSql
  }

  /** A connection in a transaction that sees the snapshot. @throws as `connect` does; SLUICE_SERVER_GONE where the snapshot is lost */
  async borrow(signal: AbortSignal): Promise<PgConnection> {
    signal.throwIfAborted()
    this.#requireMain()
    const free = this.#idle.pop()
    if (free !== undefined && free.lost() === null) return free
    const { timeZone } = this.#options
    const reader = await connect(this.#target, { signal, applicationName: 'sluice', timeZone })
    this.#open.add(reader)
    try {
      await this.#join(reader)
      signal.throwIfAborted()
      if (this.#closed) throw new SluiceError('SLUICE_INTERNAL', 'the source is closed')
      return reader
    } catch (error) {
      await this.discard(reader)
      throw error
    }
  }

  /** The reader's statement is over, well. */
  giveBack(reader: PgConnection): void {
    if (this.#closed || reader.lost() !== null) void this.discard(reader)
    else this.#idle.push(reader)
  }

  /** Ends a reader; never throws. */
  async discard(reader: PgConnection): Promise<void> {
    await reader.close()
    this.#open.delete(reader)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#open].map((reader) => this.discard(reader)))
    await this.main.close()
  }

  /** Few round trips: as much at once as can be told apart by its error. */
  async #join(reader: PgConnection): Promise<void> {
    const check = `SET client_connection_check_interval = ${CONNECTION_CHECK_MS}`
    // It would stay behind in a pooler. Not every system can do that; then a statement that gives no rows ends only when it does.
    if (reader.version >= HAS_CONNECTION_CHECK && !reader.pooled) await reader.query(check).catch(() => undefined)
    const takeOver = `SET TRANSACTION SNAPSHOT ${quoteLiteral(this.#id)}`
    try {
      await reader.begin([...sessionSql(reader.version), BEGIN, takeOver, ...localSql(this.#options)])
    } catch (error) {
      if (NO_SNAPSHOT_STATES.includes(sqlState(error))) throw snapshotLost(this.#target, error)
      throw error
    }
    if (this.#readerSql !== null) await reader.query(this.#readerSql)
  }

  #requireMain(): void {
    const lost = this.main.lost()
    if (lost !== null) throw snapshotLost(this.#target, lost)
  }
}

function snapshotLost(target: PostgresTarget, cause: unknown): SluiceError {
  const why = cause instanceof SluiceError ? `: ${cause.message}` : ''
  return new SluiceError('SLUICE_SERVER_GONE', `the connection that holds the snapshot is lost${why}`, {
    where: { url: target.url },
    hint: `${sqlState(cause) === STANDBY_CONFLICT ? `${STANDBY_HINT}; ` : ''}resume begins anew, with a snapshot of then`,
    retryable: false,
    cause,
  })
}

function sessionSql(version: number): readonly string[] {
  return version >= HAS_TRANSACTION_TIMEOUT ? ['SET transaction_timeout = 0'] : []
}

function localSql({ lockTimeoutMs }: SnapshotOptions): readonly string[] {
  return [
    `SET LOCAL lock_timeout = ${Math.max(1, Math.round(lockTimeoutMs))}`,
    ...STEADY.map((setting) => `SET LOCAL ${setting}`),
  ]
}

/** The address that answered: a name may stand for several servers, and a snapshot is of one. */
function sameHost(target: PostgresTarget, main: PgConnection): PostgresTarget {
  const { stream } = (main.client as unknown as { connection: { stream: Socket } }).connection
  const address = main.host.host.startsWith('/') ? null : (stream.remoteAddress ?? main.host.address)
  const secrets = Object.getOwnPropertyDescriptors(target)
  return Object.create(Object.prototype, {
    ...secrets,
    hosts: { value: [{ ...main.host, address }], enumerable: true },
    sessionAttributes: { value: 'any', enumerable: true },
  }) as PostgresTarget
}
