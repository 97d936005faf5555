import type { Batch, BatchForm, CsvShape } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'
import type { Partition, Position } from '../../../core/job.ts'
import { ColumnsBuilder } from '../columns/binary-columns.ts'
import type { ColumnsPlan } from '../columns/binary-columns.ts'
import { ColumnBlocks } from '../columns/column-blocks.ts'
import { createRowParser } from './copy-rows.ts'
import { CopyOut } from './copy-out.ts'
import type { CopyConsumer } from './copy-out.ts'
import { quoteIdentifier, quoteLiteral } from '../quote.ts'
import { RowBlocks } from './row-blocks.ts'
import type { RowBlock, RowRange } from './row-blocks.ts'
import { plainName, rangeSql } from './source-plan.ts'
import type { TableRange } from './source-plan.ts'
import type { SourceState } from './source-state.ts'

export interface ReadRequest {
  readonly form: BatchForm
  readonly from: Position
  readonly until?: Position | undefined
  /** Of the form `csv`. */
  readonly shape: CsvShape
  /** Of the form `columns`: what is asked for, and when a batch is full. */
  readonly plan: ColumnsPlan
  readonly limits: { readonly rows: number; readonly bytes: number }
  /** Of the forms `csv` and `rows`: bytes of a batch, about, where 512 KiB are too many. */
  readonly blockBytes?: number | undefined
  /** What becomes of values that rows have no form for. */
  readonly onSpecial: 'error' | 'null' | 'text'
  /** Told of values of a batch that became NULL, by column. */
  readonly onSpecials: (specials: ReadonlyMap<string, number>) => void
  /** What was given before `from`, where that may be other rows by now (a query, a view). Kept up to date. */
  readonly before: Before | null
  readonly signal: AbortSignal
}

/** A hash of the rows that were given, to know them by when they are passed over; null where it is not known. */
export interface Before {
  hash: number | null
}

/**
 * One COPY of a partition from a position on, by a reader of the snapshot. What came before the position is read again and passed over.
 *
 * @throws translated by SQLSTATE; SLUICE_SOURCE_CHANGED where a query gives other rows than before; the signal's reason
 */
export function readPartition(
  state: SourceState,
  partition: Partition,
  request: ReadRequest,
): AsyncGenerator<Batch, void> {
  const copy = copySql(state, partition)
  if (request.form === 'csv') return run(state, csvReading(state, copy, request), request)
  if (request.form === 'columns') return run(state, columnsReading(copy, request), request)
  return run(state, rowsReading(state, copy, request), request)
}

interface Reading<T> {
  readonly sql: string
  readonly what: string
  /** Made for one COPY. */
  consumer(): CopyConsumer<T>
  batch(block: T, start: Position): Batch
}

async function* run<T extends { readonly hash?: number | undefined }>(
  state: SourceState,
  reading: Reading<T>,
  request: ReadRequest,
): AsyncGenerator<Batch, void> {
  const { from, until, signal } = request
  if (rowLimit(request) <= 0) return
  const reader = await state.snapshot.borrow(signal)
  const consumer = reading.consumer()
  const { what } = reading
  const copy = new CopyOut(reader, reading.sql, { consumer, what, signal })
  let position = from
  try {
    for (;;) {
      const block = await copy.next()
      if (block === null) break
      const batch = reading.batch(block, position)
      position = batch.end
      if (request.before !== null) request.before.hash = block.hash ?? null
      yield batch
    }
    if (consumer.short || (until !== undefined && position.row !== until.row))
      throw new SluiceError('SLUICE_SOURCE_CHANGED', `${what}: fewer rows than when they were first read`, {
        hint: 'a query must give the same rows each time',
      })
  } finally {
    copy.close()
    if (copy.complete) state.snapshot.giveBack(reader)
    else void state.snapshot.discard(reader)
  }
}

function rowRange(request: ReadRequest): RowRange {
  const { from, before, blockBytes } = request
  return { skip: from.row, limit: rowLimit(request), hash: before?.hash, blockBytes }
}

function rowLimit({ from, until }: ReadRequest): number {
  return until === undefined ? Number.POSITIVE_INFINITY : until.row - from.row
}

interface CopySql {
  readonly what: string
  /** The COPY of these columns (expressions, in SQL), or of all as they are. */
  readonly sql: (options: string, list?: readonly string[]) => string
}

function copySql({ columns, sql: query }: SourceState, partition: Partition): CopySql {
  const range = partition.state as unknown as TableRange | null
  const names = columns.map((column) => quoteIdentifier(column.name))
  const select = (list?: readonly string[]): string => {
    if (range !== null) return rangeSql(range, list ?? names)
    if (list === undefined) return `${query ?? ''}\n`
    return `SELECT ${list.join(', ')} FROM (${query ?? ''}\n) AS query (${names.join(', ')})`
  }
  return {
    what: range === null ? 'the query' : `reading ${plainName(range)}`,
    sql: (options, list) => `COPY (${select(list)}) TO STDOUT (${options}, ENCODING 'UTF8')`,
  }
}

function csvReading(state: SourceState, { what, sql }: CopySql, request: ReadRequest): Reading<RowBlock> {
  const columns = state.columns.map((column) => column.name)
  const { shape } = request
  return {
    sql: sql(`FORMAT csv, DELIMITER ${quoteLiteral(shape.delimiter)}`),
    what,
    consumer: () => new RowBlocks(rowRange(request)),
    batch: ({ bytes, rows }, start) => {
      const quoted = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(0x22)
      const end = behind(start, bytes.byteLength, rows)
      return { form: 'csv', start, end, mayEnd: true, bytes, rows, columns, csv: shape, quoted }
    },
  }
}

function rowsReading(state: SourceState, { what, sql }: CopySql, request: ReadRequest): Reading<RowBlock> {
  const columns = state.columns.map((column) => column.name)
  const parse = createRowParser(state.columns, {
    onSpecial: request.onSpecial,
    onNull: (column) => request.onSpecials(new Map([[column, 1]])),
  })
  return {
    sql: sql('FORMAT text'),
    what,
    consumer: () => new RowBlocks(rowRange(request)),
    batch: (block, start) => {
      const sourceBytes = block.bytes.byteLength
      const end = behind(start, sourceBytes, block.rows)
      return { form: 'rows', start, end, mayEnd: true, columns, ...parse(block, start), sourceBytes, filtered: 0 }
    },
  }
}

function columnsReading(
  { what, sql }: CopySql,
  request: ReadRequest,
): Reading<Exclude<ReturnType<ColumnBlocks['shift']>, undefined>> {
  const { plan, limits } = request
  const columns = plan.columns.map((column) => column.name)
  return {
    sql: sql('FORMAT binary', plan.select),
    what,
    consumer: () => new ColumnBlocks(new ColumnsBuilder(plan, limits), rowRange(request)),
    batch: ({ vectors, rows, bufferBytes, payloadBytes, specials }, start) => {
      if (specials.size > 0) request.onSpecials(specials)
      const end = behind(start, payloadBytes, rows)
      return { form: 'columns', start, end, mayEnd: true, columns, vectors, rows, bufferBytes }
    },
  }
}

/** A row counts as a line: line ends inside values are not looked for. */
function behind(start: Position, bytes: number, rows: number): Position {
  return { byte: start.byte + bytes, row: start.row + rows, line: start.line + rows }
}
