import { availableParallelism } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Batch, BatchForm, CsvShape } from '../../core/batch.ts'
import { SluiceError, toSluiceError } from '../../core/errors.ts'
import { START } from '../../core/job.ts'
import { pieceBytes } from '../../core/options.ts'
import type { Partition, Position } from '../../core/job.ts'
import type { Abortable, Source, SourceReadOptions } from '../../core/ports.ts'
import { backoffMs } from '../../core/retry.ts'
import type { Schema } from '../../core/schema.ts'
import type { EndpointRequest } from '../connector.ts'
import { planColumns, specialsWarning } from './columns/binary-columns.ts'
import type { ColumnsPlan } from './columns/binary-columns.ts'
import { chosenColumns } from './table/chosen-columns.ts'
import { sqlState, STANDBY_CONFLICT, STANDBY_HINT } from './errors.ts'
import { openSourceState } from './unload/source-state.ts'
import type { SourceState, SourceSubject } from './unload/source-state.ts'
import { hiddenRows } from './unload/hidden-rows.ts'
import { planTable } from './unload/source-plan.ts'
import { readPartition } from './unload/read-partition.ts'
import { requireDistinct } from './unload/source-table.ts'
import type { ChooseColumns } from './unload/source-table.ts'
import { onlyStatement } from './unload/query.ts'
import { parsePostgresUrl } from './connection/url.ts'
import type { PostgresTarget } from './connection/url.ts'

/** Readers by default: the server needs a core for each, too. */
const MOST_READERS = 4
/** A batch of columns becomes a row group: as many rows as DuckDB's own by default, and so many bytes at most. */
const ROW_GROUP_ROWS = 122_880
const ROW_GROUP_BYTES = 32 * 1024 * 1024
/** Kinds of tables whose rows have no order of their own. */
const UNORDERED: readonly string[] = ['table', 'partitioned', 'materialized-view']

/**
 * A table, view or query as a source. Nothing is connected to yet.
 *
 * @throws SLUICE_USAGE unless exactly one of `?table=` and a query of one statement is given; what is wrong with the URL
 */
export function createPostgresSource(request: EndpointRequest): Promise<Source> {
  const target = parsePostgresUrl(request.url, request.env)
  const { query, delimiter = ',' } = request.options
  if (query !== undefined && target.table !== null)
    throw new SluiceError('SLUICE_USAGE', `${target.url} names a table, and there is a query too`, {
      hint: 'leave out ?table=, or --query and --query-file',
    })
  if (query === undefined && target.table === null)
    throw new SluiceError('SLUICE_USAGE', `${target.url} names no table`, {
      hint: 'add ?table=schema.table, or give --query or --query-file',
    })
  if (delimiter.length !== 1 || delimiter > '\x7f' || /["\r\n\0]/.test(delimiter))
    throw new SluiceError('SLUICE_USAGE', `${JSON.stringify(delimiter)} can be no delimiter`, {
      hint: 'one ASCII character, and neither a quote nor a line end',
    })
  const subject: SourceSubject =
    target.table === null
      ? { kind: 'query', sql: onlyStatement(query ?? '') }
      : { kind: 'table', reference: target.table }
  const shape: CsvShape = { delimiter, quote: '"', escape: '"' }
  return Promise.resolve(new PostgresSource(request, { target, subject, shape }))
}

interface SourceSetup {
  readonly target: PostgresTarget
  readonly subject: SourceSubject
  readonly shape: CsvShape
}

/** Reads one snapshot by several connections: a table in ranges of ctids, anything else as one stream. */
class PostgresSource implements Source {
  readonly forms: readonly BatchForm[] = ['csv', 'columns', 'rows']
  readonly replayable = true
  readonly restarts = true
  readonly readers = Math.min(MOST_READERS, availableParallelism())
  readonly #request: EndpointRequest
  readonly #setup: SourceSetup
  #opening: Promise<SourceState> | null = null
  #state: SourceState | null = null
  readonly #warnings: string[] = []
  #plan: ColumnsPlan | null = null
  #toldOfHiddenRows = false
  /** Values that `--on-special null` made NULL, by column. */
  readonly #specials = new Map<string, number>()
  /** Whether a reader was in the way of a standby's replay. */
  #inTheWay = false
  #bytesRead = 0
  #bytesDone = 0
  #closed: Promise<void> | null = null

  constructor(request: EndpointRequest, setup: SourceSetup) {
    this.#request = request
    this.#setup = setup
  }

  get unordered(): boolean {
    return this.#setup.subject.kind === 'table' && UNORDERED.includes(this.#state?.table?.kind ?? 'table')
  }

  async describe(o: Abortable): Promise<Schema> {
    const { columns } = this.#planColumns(await this.#open(o.signal))
    return { columns, named: true, fixed: true, typed: true }
  }

  async plan(o: Abortable): Promise<readonly Partition[]> {
    const { snapshot, found, table, hidden } = await this.#open(o.signal)
    const { url } = this.#setup.target
    if (hidden !== null) this.#tellOfHiddenRows(hidden)
    if (table === null || found === null) return [{ id: 'query/0001', url, bytes: null, rows: null, state: null }]
    return planTable(table, { ...found, version: snapshot.main.version, url })
  }

  /** Once. */
  #tellOfHiddenRows(place: string): void {
    if (this.#toldOfHiddenRows) return
    this.#toldOfHiddenRows = true
    this.#request.reporter.warn(hiddenRows(place, this.#setup.target.user))
  }

  async *read(partition: Partition, o: SourceReadOptions): AsyncGenerator<Batch> {
    o.signal.throwIfAborted()
    const state = await this.#open(o.signal)
    if (o.form !== 'csv') requireDistinct(state.columns)
    const request = {
      ...o,
      shape: this.#setup.shape,
      plan: this.#planColumns(state),
      limits: this.#limits(),
      blockBytes: pieceBytes(this.#request.options, Number.POSITIVE_INFINITY),
      before: this.unordered ? null : { hash: null },
      onSpecial: this.#request.options.onSpecial ?? 'error',
      onSpecials: (specials: ReadonlyMap<string, number>): void => {
        for (const [name, values] of specials) this.#specials.set(name, (this.#specials.get(name) ?? 0) + values)
      },
    }
    if (o.form === 'columns') for (const warning of this.#warnings.splice(0)) this.#request.reporter.warn(warning)
    let position = o.from ?? START
    let [failures, progressMs] = [0, performance.now()]
    const count = this.#counter(partition, position)
    for (;;) {
      try {
        for await (const batch of readPartition(state, partition, { ...request, from: position })) {
          position = batch.end
          count(position)
          yield batch
          failures = 0
          progressMs = performance.now()
        }
        if (o.until === undefined) count(null)
        return
      } catch (thrown) {
        o.signal.throwIfAborted()
        const error = this.#placed(thrown, partition)
        if (sqlState(error) === STANDBY_CONFLICT) this.#inTheWay = true
        if (!error.retryable) throw error
        const waitMs = backoffMs(failures, error.code === 'SLUICE_THROTTLED')
        if (performance.now() + waitMs - progressMs > this.#request.retryForMs) throw error
        failures += 1
        this.#request.reporter.retried({ throttled: error.code === 'SLUICE_THROTTLED' })
        await delay(waitMs, undefined, { signal: o.signal }).catch(() => o.signal.throwIfAborted())
      }
    }
  }

  /** A standby's replay takes the snapshot away, first a reader's or first the one that is exported. */
  mayRestart(error: SluiceError): boolean {
    return sqlState(error) === STANDBY_CONFLICT || (this.#inTheWay && error.code === 'SLUICE_SERVER_GONE')
  }

  /** Of rows as COPY sends them. */
  bytesRead(): number {
    return this.#bytesRead
  }

  /** Of a table's pages. */
  bytesDone(): number {
    return this.#bytesDone
  }

  close(): Promise<void> {
    this.#closed ??= this.#end()
    return this.#closed
  }

  async #end(): Promise<void> {
    if (this.#specials.size > 0) this.#request.reporter.warn(specialsWarning(this.#specials))
    const state = await this.#opening?.catch(() => null)
    await state?.snapshot.close()
  }

  #open(signal: AbortSignal): Promise<SourceState> {
    if (this.#closed !== null) throw new SluiceError('SLUICE_INTERNAL', 'the source is closed')
    if (this.#opening === null) {
      const { target, subject } = this.#setup
      const { retryForMs, options } = this.#request
      const choose: ChooseColumns = (columns) => chosenColumns(columns, options)
      const opening = openSourceState(target, subject, { signal, retryForMs, timeZone: options.timeZone, choose })
      this.#opening = opening
      opening.then(
        (state) => {
          this.#state = state
        },
        () => {
          if (this.#opening === opening) this.#opening = null
        },
      )
    }
    return this.#opening
  }

  /** Also what `describe` says of its layouts. What it warns of matters only where columns are read. */
  #planColumns({ columns }: SourceState): ColumnsPlan {
    const { numeric, onSpecial } = this.#request.options
    const warn = (message: string): void => void this.#warnings.push(message)
    this.#plan ??= planColumns(columns, { numeric, onSpecial, warn })
    return this.#plan
  }

  #limits(): { readonly rows: number; readonly bytes: number } {
    const { rowGroupRows = ROW_GROUP_ROWS, rowGroupBytes = ROW_GROUP_BYTES } = this.#request.options
    return { rows: rowGroupRows, bytes: pieceBytes(this.#request.options, rowGroupBytes) }
  }

  #placed(thrown: unknown, partition: Partition): SluiceError {
    const error = toSluiceError(thrown).at({ url: this.#setup.target.url, partition: partition.id })
    if (!this.#inTheWay || error.code !== 'SLUICE_SERVER_GONE' || error.hint.includes(STANDBY_HINT)) return error
    // The snapshot is gone for the same reason, whatever was heard of it first.
    const { code, message, where, hint, retryable, cause } = error
    return new SluiceError(code, message, { where, hint: `${STANDBY_HINT}; ${hint}`, retryable, cause })
  }

  /** Counts what a read has taken, of rows and of the partition's pages (the share that its rows are). Told null at the partition's end. */
  #counter(partition: Partition, from: Position): (position: Position | null) => void {
    const doneAt = ({ byte, row }: Position): number =>
      partition.bytes === null || !partition.rows
        ? byte
        : Math.max(byte, partition.bytes * Math.min(1, row / partition.rows))
    let [taken, done] = [from.byte, doneAt(from)]
    return (position) => {
      const now = Math.max(done, Math.round(position === null ? (partition.bytes ?? 0) : doneAt(position)))
      this.#bytesDone += now - done
      done = now
      if (position === null) return
      this.#bytesRead += position.byte - taken
      taken = position.byte
    }
  }
}
