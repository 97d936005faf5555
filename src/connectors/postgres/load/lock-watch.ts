import type { PgConnection } from '../connection/connection.ts'
import { withinMs } from './lane.ts'

/** A look in hand is waited for no longer: the server may hang. */
const STOP_MS = 1000

/** How often the server is asked who waits for whom. */
const INTERVAL_MS = 500

/**
 * Watches for lanes that wait for one another's uncommitted keys, which the server's deadlock detector can't see, since one side of the
 * wait is us (design.md, "What PostgreSQL keeps of a job"). A lane that waited at two looks in a row for a transaction of ours is
 * cancelled: the same key comes twice in the input.
 */
export class LockWatch {
  readonly #main: () => Promise<PgConnection>
  readonly #pids = new Set<number>()
  readonly #suspects = new Set<number>()
  readonly #caught = new Set<number>()
  #timer: NodeJS.Timeout | null = null
  #looking: Promise<void> = Promise.resolve()

  /** `main`: a connection that is no lane's. */
  constructor(main: () => Promise<PgConnection>) {
    this.#main = main
  }

  add(pid: number): void {
    this.#pids.add(pid)
    if (this.#timer !== null || this.#pids.size < 2) return
    this.#timer = setInterval(() => {
      this.#looking = this.#looking.then(() => this.#look()).catch(() => undefined)
    }, INTERVAL_MS)
    this.#timer.unref()
  }

  remove(pid: number): void {
    this.#pids.delete(pid)
  }

  /** Whether the lane was cancelled for waiting for another of ours. */
  hasCaught(pid: number): boolean {
    return this.#caught.has(pid)
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    await withinMs(STOP_MS, this.#looking)
  }

  async #look(): Promise<void> {
    if (this.#timer === null) return
    const main = await this.#main()
    const waiting = await main.query<{ pid: number }>(
      `SELECT DISTINCT l.pid FROM pg_catalog.pg_locks l
        WHERE NOT l.granted AND l.locktype = 'transactionid' AND l.pid = ANY($1::int[]) AND pg_catalog.pg_blocking_pids(l.pid) && $1::int[]`,
      [[...this.#pids]],
    )
    const pids = waiting.map((row) => row.pid)
    for (const pid of pids) {
      if (!this.#suspects.has(pid) || this.#caught.has(pid)) continue
      this.#caught.add(pid)
      await main.query('SELECT pg_catalog.pg_cancel_backend($1)', [pid])
    }
    this.#suspects.clear()
    for (const pid of pids) this.#suspects.add(pid)
  }
}
