import { SluiceError } from '../../../core/errors.ts'
import type { Extent, Partition, Receipt } from '../../../core/job.ts'
import type { PgConnection } from '../connection/connection.ts'
import { quoteIdentifier } from '../quote.ts'
import { sqlState } from '../errors.ts'

/** Default of `--ledger-schema`. */
export const LEDGER_SCHEMA = 'sluice'

/** When the extents of a job that is done are no longer kept. */
const FORGOTTEN = "coalesce(jobs.ended_at < now() - interval '30 days', false)"

export interface LedgerJob {
  readonly jobId: string
  readonly fingerprint: string
  readonly partitions: readonly Partition[]
}

/**
 * Checkpoints inside PostgreSQL, for `--commit partition`: an extent's row is inserted before its COPY, in the same transaction, so that both
 * are there or neither is, and a second writer of the same extent meets the unique key.
 */
export class Ledger {
  readonly #schema: string
  readonly #job: LedgerJob

  constructor(schema: string, job: LedgerJob) {
    this.#schema = quoteIdentifier(schema)
    this.#job = job
  }

  /** What a load runs because of it, for a plan: before all else, in each extent's transaction, and at the end. */
  statements(): { readonly first: readonly string[]; readonly inExtent: string; readonly last: string } {
    return { first: [...this.#makeSql(), this.#beginSql()], inExtent: this.#extentSql(), last: this.#doneSql() }
  }

  #beginSql(): string {
    return `INSERT INTO ${this.#schema}.jobs (job_id, fingerprint, plan, state) VALUES ($1, $2, $3, 'loading')
  ON CONFLICT (job_id) DO UPDATE SET state = CASE WHEN jobs.state IN ('done', 'superseded') THEN jobs.state ELSE 'loading' END`
  }

  #extentSql(): string {
    return `INSERT INTO ${this.#schema}.extents (job_id, partition, start_byte, start_row, extent) VALUES ($1, $2, $3, $4, $5)`
  }

  #doneSql(): string {
    return `UPDATE ${this.#schema}.jobs SET state = 'done', ended_at = now() WHERE job_id = $1`
  }

  /** Two jobs that begin at once must not both create it. */
  #makeSql(): readonly string[] {
    return [
      'BEGIN',
      "SELECT pg_advisory_xact_lock(hashtext('sluice ledger'))",
      `CREATE SCHEMA IF NOT EXISTS ${this.#schema}`,
      `CREATE TABLE IF NOT EXISTS ${this.#schema}.jobs (job_id text PRIMARY KEY, fingerprint text NOT NULL, plan jsonb NOT NULL, state text NOT NULL, began_at timestamptz NOT NULL DEFAULT now(), ended_at timestamptz)`,
      `CREATE TABLE IF NOT EXISTS ${this.#schema}.extents (job_id text NOT NULL REFERENCES ${this.#schema}.jobs ON DELETE CASCADE, partition text NOT NULL, start_byte bigint NOT NULL, start_row bigint NOT NULL, extent jsonb NOT NULL, sealed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (job_id, partition, start_byte, start_row))`,
      'COMMIT',
    ]
  }

  /**
   * Makes the ledger where it is missing, and the job's header in it.
   *
   * @throws SLUICE_ACCESS_DENIED with the GRANT to ask for, SLUICE_JOB_EXISTS, SLUICE_SOURCE_CHANGED
   */
  async open(connection: PgConnection, o: { resumed: boolean; newJob: boolean }): Promise<void> {
    await this.#make(connection)
    const [other] = await connection.query<{ job_id: string }>(
      `SELECT job_id FROM ${this.#schema}.jobs WHERE fingerprint = $1 AND state = 'loading' AND job_id <> $2 ORDER BY began_at DESC LIMIT 1`,
      [this.#job.fingerprint, this.#job.jobId],
    )
    if (other !== undefined && !o.resumed && !o.newJob)
      throw new SluiceError(
        'SLUICE_JOB_EXISTS',
        `job ${other.job_id} for the same source and sink is unfinished, the ledger says`,
        {
          hint: `go on with it by --job-id ${other.job_id} --resume, or start over with --new-job`,
        },
      )
    if (o.newJob && !o.resumed) await this.#supersede(connection)
    const plan = JSON.stringify(this.#job.partitions)
    await connection.query(
      `DELETE FROM ${this.#schema}.extents USING ${this.#schema}.jobs WHERE extents.job_id = jobs.job_id AND jobs.state = 'done' AND ${FORGOTTEN}`,
    )
    const [own] = await connection.query<{ same: boolean; forgotten: boolean; superseded: boolean }>(
      `${this.#beginSql()}
       RETURNING plan = $3::jsonb AS same, jobs.state = 'done' AND ${FORGOTTEN} AS forgotten, jobs.state = 'superseded' AS superseded`,
      [this.#job.jobId, this.#job.fingerprint, plan],
    )
    if (own?.superseded === true)
      throw new SluiceError('SLUICE_JOB_EXISTS', `job ${this.#job.jobId} was given up for a new one, the ledger says`, {
        hint: 'sluice jobs shows the newer one; load again without an id',
      })
    if (own?.forgotten === true)
      throw new SluiceError('SLUICE_JOB_EXISTS', `job ${this.#job.jobId} is done, the ledger says`, {
        hint: 'load again with another id',
      })
    if (own?.same === false)
      throw new SluiceError('SLUICE_SOURCE_CHANGED', `the source is not what it was when job ${this.#job.jobId} began`)
  }

  /** Extents that are committed. */
  async sealed(connection: PgConnection): Promise<readonly Receipt[]> {
    const rows = await connection.query<{ extent: Extent }>(
      `SELECT extent FROM ${this.#schema}.extents WHERE job_id = $1`,
      [this.#job.jobId],
    )
    return rows.map(({ extent }) => ({
      extent,
      durable: true,
      rowsWritten: extent.rows,
      bytesWritten: extent.bytes,
      state: null,
    }))
  }

  /** Inserts an extent's row. @returns false where another session has committed it already: it waits for that session's fate */
  async insert(connection: PgConnection, extent: Extent): Promise<boolean> {
    try {
      const { partition, start } = extent
      const values = [this.#job.jobId, partition, start.byte, start.row, JSON.stringify(extent)]
      await connection.query(this.#extentSql(), values)
      return true
    } catch (error) {
      if (sqlState(error) === '23505') return false
      throw error
    }
  }

  /**
   * The job is done. Its extents stay for a while: a process that is killed before it could write its result, or another machine, asks for the
   * job again, and must find that nothing is left to do.
   */
  async finish(connection: PgConnection): Promise<void> {
    await connection.query(this.#doneSql(), [this.#job.jobId])
  }

  /** The job can't go on: what it committed stays in the table, and the ledger says so no longer. */
  async fail(connection: PgConnection): Promise<void> {
    await connection.query(`UPDATE ${this.#schema}.jobs SET state = 'failed', ended_at = now() WHERE job_id = $1`, [
      this.#job.jobId,
    ])
  }

  /** A new job takes the place of unfinished ones: they neither stand in the way of later loads nor can be gone on with. */
  async #supersede(connection: PgConnection): Promise<void> {
    await connection.query(
      `UPDATE ${this.#schema}.jobs SET state = 'superseded', ended_at = now() WHERE fingerprint = $1 AND state = 'loading' AND job_id <> $2`,
      [this.#job.fingerprint, this.#job.jobId],
    )
  }

  async #make(connection: PgConnection): Promise<void> {
    const [found] = await connection.query<{ jobs: boolean; extents: boolean }>(
      'SELECT to_regclass($1) IS NOT NULL AS jobs, to_regclass($2) IS NOT NULL AS extents',
      [`${this.#schema}.jobs`, `${this.#schema}.extents`],
    )
    if (found?.jobs === true && found.extents) return
    try {
      await connection.query(this.#makeSql().join('; '))
    } catch (error) {
      await connection.query('ROLLBACK').catch(() => undefined)
      if (sqlState(error) !== '42501') throw error
      throw new SluiceError('SLUICE_ACCESS_DENIED', `the role may not create the ledger's schema ${this.#schema}`, {
        hint: `ask for GRANT CREATE ON DATABASE …, or name a schema with --ledger-schema in which the role may create tables, or use --commit job, which needs no ledger`,
        cause: error,
      })
    }
  }
}
