import { SluiceError } from '../../core/errors.ts'
import { START } from '../../core/job.ts'
import type { ComparedBatch, Comparison, SideDigest, SinkRequest } from '../connector.ts'
import { byteSize, rowCount } from '../../core/batch.ts'
import type { Schema } from '../../core/schema.ts'
import { connect } from './connection.ts'
import type { PgConnection } from './connection.ts'
import { PostgresLane } from './lane.ts'
import { quoteIdentifier, quoteTable } from './quote.ts'
import { describeTable } from './table.ts'
import { TableLoad } from './table-load.ts'
import { parsePostgresUrl } from './url.ts'

/** Rows of one COPY into the twin: what is kept, and looked through, to find the row that the server objects to. 8 MiB. */
const EXTENT_BYTES = 8 * 1024 * 1024

/**
 * Compares rows with a table: they are loaded into a temporary twin (the table's own types decide what is equal), and both sides are counted
 * and hashed in SQL, in one snapshot. Needs as much temporary space in the database as the rows take.
 *
 * @throws what loading them throws: a row that the table's types can't hold is in no such table
 */
export async function compareWithTable(
  request: SinkRequest,
  rows: { schema: Schema; batches: AsyncIterable<ComparedBatch>; limit: number },
): Promise<Comparison> {
  const target = parsePostgresUrl(request.url, request.env)
  if (target.table === null)
    throw new SluiceError('SLUICE_USAGE', `${target.url} names no table`, { hint: 'add ?table=schema.table' })
  const connection = await connect(target, {
    signal: request.signal,
    applicationName: 'sluice verify',
    timeZone: request.options.timeZone,
  })
  try {
    const table = await describeTable(connection, target.table)
    const load = new TableLoad(table, {
      byPosition: request.options.byPosition === true || !rows.schema.named,
      timeZone: request.options.timeZone ?? 'UTC',
    })
    const columns = load
      .columnsFor(rows.schema.columns.map((column) => column.name))
      .map((column) => quoteIdentifier(column.name))
    const whole = quoteTable(table)
    await connection.query(
      `CREATE TEMPORARY TABLE sluice_twin AS SELECT ${columns.join(', ')} FROM ${whole} WITH NO DATA`,
    )
    await fillTwin(connection, load, rows.batches)
    return await compareSides(connection, { list: columns.join(', '), whole, limit: rows.limit })
  } catch (error) {
    throw error instanceof SluiceError && error.where.row === undefined ? error.at({ url: target.url }) : error
  } finally {
    await connection.close()
  }
}

async function fillTwin(
  connection: PgConnection,
  load: TableLoad,
  batches: AsyncIterable<ComparedBatch>,
): Promise<void> {
  const lane = new PostgresLane(connection, {
    load,
    target: 'pg_temp.sluice_twin',
    ledger: null,
    oneStatement: false,
    first: null,
    lockTimeoutMs: 0,
    waitedForOurs: () => false,
    isOurs: () => false,
    onAborted: () => undefined,
  })
  const empty = { partition: '', sequence: 0, start: START, end: START, rows: 0, filtered: 0, bytes: 0, last: false }
  let [url, rows, bytes] = ['', 0, 0]
  const seal = async (): Promise<void> => {
    if (bytes > 0) await lane.seal({ ...empty, rows })
    rows = 0
    bytes = 0
  }
  try {
    for await (const next of batches) {
      if (next.batch.form === 'bytes') continue
      if (next.url !== url || bytes >= EXTENT_BYTES) await seal()
      url = next.url
      if (bytes === 0) await lane.begin(empty)
      await lane.write(next.batch)
      rows += rowCount(next.batch)
      bytes += Math.max(1, byteSize(next.batch))
    }
    await seal()
  } catch (error) {
    throw error instanceof SluiceError && error.where.row !== undefined ? error.at({ url }) : error
  }
  await connection.query('COMMIT')
}

async function compareSides(
  connection: PgConnection,
  what: { list: string; whole: string; limit: number },
): Promise<Comparison> {
  await connection.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const digest = async (from: string): Promise<SideDigest> => {
    const [row] = await connection.query<{ rows: string; hash: string | null }>(
      `SELECT count(*)::text AS rows, sum(hashtextextended(t::text, 0)::numeric)::text AS hash FROM (SELECT ${what.list} FROM ${from}) t`,
    )
    return { rows: Number(row?.rows ?? 0), hash: row?.hash ?? '0' }
  }
  const only = async (a: string, b: string): Promise<string[]> => {
    const found = await connection.query<{ text: string }>(
      `SELECT t::text AS text FROM (SELECT ${what.list} FROM ${a}) t EXCEPT ALL SELECT t::text FROM (SELECT ${what.list} FROM ${b}) t LIMIT ${what.limit}`,
    )
    return found.map((row) => row.text)
  }
  const [source, sink] = [await digest('pg_temp.sluice_twin'), await digest(what.whole)]
  const same = source.rows === sink.rows && source.hash === sink.hash
  const missing = same ? [] : await only('pg_temp.sluice_twin', what.whole)
  const extra = same ? [] : await only(what.whole, 'pg_temp.sluice_twin')
  await connection.query('COMMIT')
  // Both kinds are shown where there are both: neither takes more than half, unless the other leaves it.
  const shown = Math.max(Math.ceil(what.limit / 2), what.limit - extra.length)
  const differences = [
    ...missing.slice(0, shown).map((text) => ({ kind: 'missing' as const, text })),
    ...extra.map((text) => ({ kind: 'extra' as const, text })),
  ]
  return { source, sink, differences: differences.slice(0, what.limit) }
}
