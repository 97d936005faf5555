import type { Batch, BatchForm, CsvShape } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Partition, Position } from '../../core/job.ts'
import { createRowParser } from './copy-rows.ts'
import { CopyOut } from './copy-out.ts'
import type { CopyConsumer } from './copy-out.ts'
import { quoteIdentifier, quoteLiteral } from './quote.ts'
import { RowBlocks } from './row-blocks.ts'
import type { RowBlock } from './row-blocks.ts'
import { rangeSql } from './source-plan.ts'
import type { TableRange } from './source-plan.ts'
import type { SourceState } from './source-state.ts'
import { plainName } from './source-plan.ts'

export interface ReadRequest {
  readonly form: BatchForm
  readonly from: Position
  readonly until?: Position | undefined
  readonly shape: CsvShape
  readonly signal: AbortSignal
}

/**
 * One COPY of a partition from a position on, by a reader of the snapshot. What came before the position is read again and passed over.
 *
 * @throws translated by SQLSTATE; SLUICE_SOURCE_CHANGED where a query gives other rows than before; the signal's reason
 */
export async function* readPartition(
  state: SourceState,
  partition: Partition,
  request: ReadRequest,
): AsyncGenerator<Batch> {
  const { from, until } = request
  const limit = until === undefined ? Number.POSITIVE_INFINITY : until.row - from.row
  if (limit <= 0) return
  const reading = planReading(state, partition, { ...request, limit })
  const reader = await state.snapshot.borrow(request.signal)
  const { consumer, what } = reading
  const copy = new CopyOut(reader, reading.sql, { consumer, what, signal: request.signal })
  let position = from
  try {
    for (;;) {
      const block = await copy.next()
      if (block === null) break
      const batch = reading.batch(block, position)
      position = batch.end
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

interface Reading<T> {
  readonly sql: string
  readonly what: string
  readonly consumer: CopyConsumer<T>
  batch(block: T, start: Position): Batch
}

function planReading(
  state: SourceState,
  partition: Partition,
  o: ReadRequest & { readonly limit: number },
): Reading<RowBlock> {
  const consumer = new RowBlocks({ skip: o.from.row, limit: o.limit })
  const range = partition.state as unknown as TableRange | null
  const columns = state.columns.map((column) => column.name)
  const what = range === null ? 'the query' : `reading ${plainName(range)}`
  const select = range === null ? `${state.sql ?? ''}\n` : rangeSql(range, columns.map(quoteIdentifier))
  const copy = (options: string): string => `COPY (${select}) TO STDOUT (${options}, ENCODING 'UTF8')`
  if (o.form === 'csv') {
    const sql = copy(`FORMAT csv, DELIMITER ${quoteLiteral(o.shape.delimiter)}`)
    return { sql, what, consumer, batch: (block, start) => csvBatch(block, { start, columns, shape: o.shape }) }
  }
  const parse = createRowParser(state.columns)
  return {
    sql: copy('FORMAT text'),
    what,
    consumer,
    batch: (block, start) => ({
      form: 'rows',
      start,
      end: endOf(block, start),
      mayEnd: true,
      columns,
      ...parse(block, start),
      sourceBytes: block.bytes.byteLength,
      filtered: 0,
    }),
  }
}

function csvBatch(
  block: RowBlock,
  o: { readonly start: Position; readonly columns: readonly string[]; readonly shape: CsvShape },
): Batch {
  const { bytes, rows } = block
  const quoted = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(0x22)
  const { columns, start } = o
  return { form: 'csv', start, end: endOf(block, start), mayEnd: true, bytes, rows, columns, csv: o.shape, quoted }
}

/** A row counts as a line: line ends inside values are not looked for. */
function endOf({ bytes, rows }: RowBlock, start: Position): Position {
  return { byte: start.byte + bytes.byteLength, row: start.row + rows, line: start.line + rows }
}
