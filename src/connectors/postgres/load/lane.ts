import { SluiceError, toSluiceError } from '../../../core/errors.ts'
import type { Batch, CsvBatch, CsvShape, RowsBatch } from '../../../core/batch.ts'
import type { Extent, Receipt } from '../../../core/job.ts'
import { giveBack } from '../../../core/lent-buffers.ts'
import type { Lane } from '../../../core/ports.ts'
import { encodeCopyRows } from '../../../formats/csv/csv-encoder.ts'
import { beginSql } from '../connection/begin-sql.ts'
import type { PgConnection } from '../connection/connection.ts'
import { CopyIn } from './copy-in.ts'
import { sqlState } from '../errors.ts'
import { sentRecords } from './copy-run.ts'
import type { CopyRun, SentBatch } from './copy-run.ts'
import { copyStatement, readsAsText, shapeForCopy } from './copy-statement.ts'
import type { CopyFormat } from './copy-statement.ts'
import type { Ledger } from './ledger.ts'
import { INTERNAL_ERROR, locateError, placeOf } from './locate-error.ts'
import type { TableColumn } from '../table/table.ts'
import { refuseNul } from '../values/nul-value.ts'
import type { TableLoad } from './table-load.ts'

/** Shape in which parsed rows are written for COPY. */
const ROWS_SHAPE = { delimiter: ',', quote: '"', escape: '"' }

export interface LaneSettings {
  readonly load: TableLoad
  /** Name of the table in statements, quoted; a temporary twin for `verify`. */
  readonly target: string
  /** For `--commit partition`: each extent is committed with its ledger row. */
  readonly ledger: Ledger | null
  /** One COPY over all extents: a table that refers to itself is checked at the end of the statement, as `\copy` of the whole file would be. */
  readonly oneStatement: boolean
  /** Runs in the lane's transaction before the first COPY (TRUNCATE). */
  readonly first: string | null
  readonly lockTimeoutMs: number
  /** Whether the backend was cancelled for waiting for another lane of ours. */
  readonly waitedForOurs: (pid: number) => boolean
  /** Whether a backend is a lane of ours. */
  readonly isOurs: (pid: number) => boolean
  /** The lane is over; its connection is closed. */
  readonly onAborted: () => void
}

/** One connection, one transaction (with a ledger: one an extent), one COPY for a run of batches of the same columns. */
export class PostgresLane implements Lane {
  readonly connection: PgConnection
  /** Sealed and not committed yet. */
  readonly sealed: Receipt[] = []
  readonly #settings: LaneSettings
  #inTransaction = false
  #run: CopyRun | null = null
  #extentRows = 0
  /** Bytes of the extent that were sent as they came. */
  #extentBytes: Uint8Array[] = []
  /** All of the extent so far reads as text to COPY: once it does not, the rest goes as CSV, so that an extent has two COPYs for that at most. */
  #asText = true
  /** The extent is committed already, by a backend of an earlier run: its batches are passed over. */
  #known = false

  constructor(connection: PgConnection, settings: LaneSettings) {
    this.connection = connection
    this.#settings = settings
  }

  async begin(extent: Extent): Promise<void> {
    this.#extentRows = 0
    this.#extentBytes = []
    this.#known = false
    this.#asText = !this.#settings.oneStatement
    await this.#beginTransaction()
    if (this.#settings.ledger === null || (await this.#settings.ledger.insert(this.connection, extent))) return
    await this.#rollback()
    this.#known = true
  }

  async write(batch: Batch): Promise<void> {
    if (batch.form === 'bytes' || batch.form === 'columns')
      throw new SluiceError('SLUICE_INTERNAL', `PostgreSQL takes rows, not ${batch.form}`)
    if (this.#known) return
    const columns = this.#columnsFor(batch)
    if (columns.length === 0 && this.#settings.load.table.columns.length > 0) throw columnless(batch)
    const sent = this.#encode(batch.form === 'rows' ? this.#settings.load.adapt(batch, columns) : batch)
    const shape = sent.shape
    const bad = this.#settings.load.check(sent.batch, sent, columns)
    if (bad !== null)
      throw new SluiceError(bad.code, bad.reason, {
        where: { ...placeOf({ sent, index: bad.recordIndex }), column: batch.columns[bad.columnIndex] },
      })
    const names = columns.map((column) => column.name)
    this.#asText &&= readsAsText(sent.bytes, shape, batch.form === 'rows' || batch.quoted)
    const format = this.#asText ? 'text' : 'csv'
    const key = JSON.stringify([names, shape, format])
    if (this.#run !== null && this.#run.key !== key) await this.#endRun()
    this.#run ??= await this.#startRun(key, { columns: names, shape, format })
    this.#run.sent.push(sent)
    if (batch.form === 'csv' && !this.#settings.oneStatement) this.#extentBytes.push(batch.bytes)
    await this.#told(this.#run, () => this.#run?.copy.write(sent.bytes) ?? Promise.resolve())
  }

  async seal(extent: Extent): Promise<Receipt> {
    const { ledger, oneStatement } = this.#settings
    const receipt = {
      extent,
      durable: ledger !== null,
      rowsWritten: extent.rows,
      bytesWritten: extent.bytes,
      state: null,
    }
    if (this.#known) return receipt
    if (oneStatement) this.#forgetSent()
    else {
      await this.#endRun()
      this.#checkRows(extent.rows)
    }
    if (ledger === null) this.sealed.push(receipt)
    else await this.#commitExtent()
    // The server has answered for them, so that the socket holds none of them any more.
    for (const bytes of this.#extentBytes) giveBack(bytes)
    this.#extentBytes = []
    return receipt
  }

  /** Ends the last COPY; afterwards the transaction can be committed. @throws what is wrong with the rows at the end of the statement */
  async endStatement(): Promise<void> {
    if (this.#run === null) return
    await this.#endRun()
    this.#checkRows(this.sealed.reduce((sum, receipt) => sum + receipt.rowsWritten, 0))
  }

  /** Has the server check now what is deferred to the end of the transaction. @throws what a constraint says */
  async checkDeferred(): Promise<void> {
    try {
      await this.connection.query('SET CONSTRAINTS ALL IMMEDIATE')
    } catch (thrown) {
      throw this.#orDuplicate(toSluiceError(thrown))
    }
  }

  async abort(): Promise<void> {
    const run = this.#run
    this.#run = null
    if (this.connection.lost() === null && run !== null) await withinMs(2000, run.copy.fail('sluice stops'))
    await withinMs(2000, this.#rollback())
    await this.connection.close()
    this.#settings.onAborted()
  }

  /** Idle: what it sealed waits in its transaction for the sink to commit. */
  close(): Promise<void> {
    return this.#settings.ledger === null ? Promise.resolve() : this.connection.close()
  }

  /** A later file's columns may match no longer: it is named, by its first row. */
  #columnsFor(batch: CsvBatch | RowsBatch): readonly TableColumn[] {
    try {
      return this.#settings.load.columnsFor(batch.columns)
    } catch (error) {
      const sent = { batch, bytes: new Uint8Array(0), shape: ROWS_SHAPE }
      throw error instanceof SluiceError ? error.at(placeOf({ sent, index: 0 })) : error
    }
  }

  #encode(batch: CsvBatch | RowsBatch): SentBatch {
    if (batch.form === 'csv') return { batch, bytes: batch.bytes, shape: shapeForCopy(batch.csv, batch.bytes) }
    const bytes = encodeRows(batch)
    if (bytes.includes(0)) refuseNul(batch)
    return { batch, bytes, shape: ROWS_SHAPE }
  }

  async #startRun(
    key: string,
    { columns, shape, format }: { columns: readonly string[]; shape: CsvShape; format: CopyFormat },
  ): Promise<CopyRun> {
    const { table } = this.#settings.load
    const statement = copyStatement({ table: this.#settings.target, columns }, shape, format)
    const copy = await CopyIn.start(this.connection.client, statement, `loading into ${table.schema}.${table.name}`)
    return { copy, key, statement, columns, sent: [], rows: 0, linesBefore: 0, countsCr: null }
  }

  async #endRun(): Promise<void> {
    const run = this.#run
    if (run === null) return
    this.#extentRows += await this.#told(run, () => run.copy.end())
    this.#run = null
  }

  /** Keeps the count of lines, and lets go of the bytes. */
  #forgetSent(): void {
    const run = this.#run
    if (run === null) return
    for (const record of sentRecords(run)) run.linesBefore = record.line
    run.sent = []
  }

  #checkRows(expected: number): void {
    if (this.#extentRows === expected) return
    const { triggers } = this.#settings.load.table
    throw new SluiceError('SLUICE_COUNTS', `${expected} rows were sent, and the table took ${this.#extentRows}`, {
      ...(triggers.length > 0
        ? { hint: `a trigger of the table leaves rows out (${triggers.join(', ')}): disable it for the load` }
        : {}),
    })
  }

  /** Runs a step of the COPY; an error comes out with the row that the server objected to. */
  async #told<T>(run: CopyRun, step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (thrown) {
      this.#run = null
      throw await this.#explain(toSluiceError(thrown), run)
    }
  }

  async #explain(error: SluiceError, run: CopyRun): Promise<SluiceError> {
    if (this.connection.lost() !== null) return error
    const known = this.#orDuplicate(error)
    if (known.retryable && known.code !== 'SLUICE_DUPLICATE_KEY' && sqlState(known) !== INTERNAL_ERROR) return known
    return locateError(known, run, {
      connection: this.connection,
      bisect: !this.#settings.oneStatement && this.#settings.first === null,
    })
  }

  /** Where this lane waited for another of ours, that is what the error is. */
  #orDuplicate(error: SluiceError): SluiceError {
    if (this.connection.lost() !== null) return error
    if (!this.#settings.waitedForOurs(this.connection.backendPid) && !this.#deadlocksWithOurs(error)) return error
    return new SluiceError(
      'SLUICE_DUPLICATE_KEY',
      'a key comes twice in the input, or two of its rows exclude each other',
      {
        cause: error.cause,
        hint: "remove the duplicate; if there is none, the table's triggers lock the same rows: --concurrency 1",
      },
    )
  }

  /** A deadlock whose DETAIL names, besides this backend, one of ours. */
  #deadlocksWithOurs(error: SluiceError): boolean {
    if (sqlState(error) !== '40P01') return false
    const { cause } = error
    const detail = typeof cause === 'object' && cause !== null && 'detail' in cause ? String(cause.detail) : ''
    const pids = (detail.match(/\d+/g) ?? []).map(Number).filter((pid) => pid !== this.connection.backendPid)
    return pids.some((pid) => this.#settings.isOurs(pid))
  }

  async #beginTransaction(): Promise<void> {
    if (this.#inTransaction) return
    await this.connection.begin(beginSql(this.#settings.lockTimeoutMs))
    this.#inTransaction = true
    if (this.#settings.first !== null) await this.connection.query(this.#settings.first)
  }

  /** The answer to this COMMIT may be lost; the ledger then tells, since the extent is dealt again and meets its own row. */
  async #commitExtent(): Promise<void> {
    await this.connection.query('COMMIT')
    this.#inTransaction = false
  }

  async #rollback(): Promise<void> {
    if (!this.#inTransaction || this.connection.lost() !== null) return
    this.#inTransaction = false
    await this.connection.query('ROLLBACK').catch(() => undefined)
  }
}

function encodeRows(batch: RowsBatch): Uint8Array {
  return encodeCopyRows(batch, {
    shape: ROWS_SHAPE,
    formatBinary: (bytes) => `\\x${Buffer.from(bytes).toString('hex')}`,
  })
}

/** Waits for work, but no longer than this; its failure is none of the caller's. */
export async function withinMs(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work.catch(() => undefined), late])
  clearTimeout(timer)
}

/** Rows of which nothing is known: COPY would fill in defaults only where it is told of a column. */
function columnless(batch: CsvBatch | RowsBatch): SluiceError {
  return new SluiceError('SLUICE_COLUMN_MISSING', 'the source has rows without a column', {
    where: batch.form === 'rows' ? batch.places[0] : undefined,
    hint: '--set column=constant gives them one',
  })
}
