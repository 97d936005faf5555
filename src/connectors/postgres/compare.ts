import { randomBytes } from 'node:crypto'
import { SluiceError } from '../../core/errors.ts'
import { START } from '../../core/job.ts'
import type { ComparedBatch, Comparison, SideDigest, SinkRequest } from '../connector.ts'
import { byteSize, rowCount } from '../../core/batch.ts'
import type { Schema } from '../../core/schema.ts'
import { connect } from './connection/connection.ts'
import type { PgConnection } from './connection/connection.ts'
import { PostgresLane, withinMs } from './load/lane.ts'
import { onlyStatement } from './unload/query.ts'
import { quoteIdentifier, quoteTable } from './quote.ts'
import { hiddenPlace, hiddenRows } from './unload/hidden-rows.ts'
import { describeTable } from './table/table.ts'
import type { TableColumn, TableDescription } from './table/table.ts'
import type { NamePart } from './table/table-reference.ts'
import { TableLoad } from './load/table-load.ts'
import { parsePostgresUrl } from './connection/url.ts'
import type { PostgresTarget } from './connection/url.ts'

/** Rows of one COPY into the twin: what is kept, and looked through, to find the row that the server objects to. 8 MiB. */
const EXTENT_BYTES = 8 * 1024 * 1024

/** Taking the twin away is waited for no longer. */
const DROP_MS = 2000

/**
 * Compares rows with a table: they are loaded into a temporary twin (the table's own types decide what is equal), and both sides are counted
 * and hashed in SQL, in one snapshot. Needs as much temporary space in the database as the rows take.
 *
 * @throws what loading them throws: a row that the table's types can't hold is in no such table
 */
export async function compareWithTable(
  request: SinkRequest,
  rows: { schema: Schema; batches: AsyncIterable<ComparedBatch>; limit: number; unloaded?: boolean | undefined },
): Promise<Comparison> {
  const target = parsePostgresUrl(request.url, request.env)
  const connection = await connect(target, {
    signal: request.signal,
    applicationName: 'sluice verify',
    timeZone: request.options.timeZone,
  })
  // A pooler may let others see it: no name of theirs.
  const twin = `sluice_twin_${randomBytes(6).toString('hex')}`
  try {
    const side = await comparedSide(connection, {
      twin,
      target,
      query: request.options.query,
      unloaded: rows.unloaded === true,
    })
    if (side.hidden !== null) request.reporter.warn(hiddenRows(side.hidden, target.user))
    const load = new TableLoad(side.table, {
      byPosition: request.options.byPosition === true || !rows.schema.named,
      timeZone: request.options.timeZone ?? 'UTC',
      typed: rows.schema.typed === true,
      warn: (text) => request.reporter.warn(text),
    })
    const list = load
      .columnsFor(rows.schema.columns.map((column) => column.name))
      .map(comparedAs)
      .join(', ')
    await fillTwin(connection, load, { twin, batches: rows.batches })
    return await compareSides(connection, { twin, list, whole: side.from, limit: rows.limit })
  } catch (error) {
    throw error instanceof SluiceError && error.where.row === undefined ? error.at({ url: target.url }) : error
  } finally {
    await dropTwin(connection, twin)
    await connection.close()
  }
}

/** pg_type.dat: json. */
const JSON_OID = 114
/** Blanks around a line end, which are outside of JSON's strings, and those at both ends. */
const [LINE_ENDS, BLANKS] = [String.raw`E'[ \\t]*[\\n\\r][ \\t\\n\\r]*'`, String.raw`E' \t\n\r'`]

/**
 * What of a column is compared, in SQL: json without the blanks around it and the line ends in it, which JSON Lines has no room for and which mean nothing.
 */
function comparedAs({ name, baseTypeOid, element }: Pick<TableColumn, 'name' | 'baseTypeOid' | 'element'>): string {
  const quoted = quoteIdentifier(name)
  const json = (text: string): string =>
    `pg_catalog.btrim(pg_catalog.regexp_replace(${text}::text, ${LINE_ENDS}, ' ', 'g'), ${BLANKS})`
  if (element?.typeOid !== JSON_OID) return baseTypeOid === JSON_OID ? `${json(quoted)} AS ${quoted}` : quoted
  const items = `ARRAY(SELECT ${json('item')} FROM pg_catalog.unnest(${quoted}) WITH ORDINALITY AS items (item, place) ORDER BY place)`
  return `CASE WHEN ${quoted} IS NOT NULL THEN ROW(pg_catalog.array_dims(${quoted}), ${items})::text END AS ${quoted}`
}

/** A session of our own takes it along; a pooler's would keep it. */
async function dropTwin(connection: PgConnection, twin: string): Promise<void> {
  if (!connection.pooled || connection.lost() !== null) return
  const drop = connection.query('ROLLBACK').then(() => connection.query(`DROP TABLE IF EXISTS pg_temp.${twin}`))
  await withinMs(DROP_MS, drop)
}

/** Whom the twin is made after, and its columns as the twin has them. */
interface ComparedSide {
  /** What stands after FROM. */
  readonly from: string
  readonly table: TableDescription
  /** Where row-level security hides rows from us; null: nowhere. */
  readonly hidden: string | null
}

/**
 * Makes the empty twin of a table, or of what a query gives. A table's own description decides what may be loaded (a generated column is none of
 * a load's business); what was unloaded has all columns.
 */
async function comparedSide(
  connection: PgConnection,
  what: { twin: string; target: PostgresTarget; query: string | undefined; unloaded: boolean },
): Promise<ComparedSide> {
  const { target, query, unloaded } = what
  if (query === undefined && target.table === null)
    throw new SluiceError('SLUICE_USAGE', `${target.url} names no table`, {
      hint: 'add ?table=schema.table, or --query',
    })
  const table = query === undefined && target.table !== null ? await describeTable(connection, target.table) : null
  const sql = onlyStatement(query ?? 'SELECT')
  const from = table === null ? `(${sql}\n) AS sluice_query` : quoteTable(table)
  // Roles that only read may have default_transaction_read_only; a temporary table is theirs all the same.
  await connection.begin(['BEGIN READ WRITE'])
  await connection.query(`CREATE TEMPORARY TABLE ${what.twin} AS SELECT * FROM ${from} WITH NO DATA`)
  const hidden = await hiddenPlace(connection, { table, sql })
  await connection.query('COMMIT')
  if (table !== null && !unloaded) return { from, table, hidden }
  const [session] = await connection.query<{ name: string }>(
    'SELECT nspname AS name FROM pg_catalog.pg_namespace WHERE oid = pg_catalog.pg_my_temp_schema()',
  )
  const literal = (name: string): NamePart => ({ name, literal: true })
  const twin = { schema: literal(session?.name ?? 'pg_temp'), table: literal(what.twin) }
  return { from, table: await describeTable(connection, twin), hidden }
}

async function fillTwin(
  connection: PgConnection,
  load: TableLoad,
  { twin, batches }: { twin: string; batches: AsyncIterable<ComparedBatch> },
): Promise<void> {
  const lane = new PostgresLane(connection, {
    load,
    target: `pg_temp.${twin}`,
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
  what: { twin: string; list: string; whole: string; limit: number },
): Promise<Comparison> {
  await connection.begin(['BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'])
  const digest = async (from: string): Promise<SideDigest> => {
    const [row] = await connection.query<{ rows: string; hash: string | null }>(
      `SELECT count(*)::text AS rows, sum(hashtextextended(ROW(t.*)::text, 0)::numeric)::text AS hash FROM (SELECT ${what.list} FROM ${from}) t`,
    )
    return { rows: Number(row?.rows ?? 0), hash: row?.hash ?? '0' }
  }
  const only = async (a: string, b: string): Promise<string[]> => {
    const found = await connection.query<{ text: string }>(
      `SELECT ROW(t.*)::text AS text FROM (SELECT ${what.list} FROM ${a}) t EXCEPT ALL SELECT ROW(t.*)::text FROM (SELECT ${what.list} FROM ${b}) t LIMIT ${what.limit}`,
    )
    return found.map((row) => row.text)
  }
  const twin = `pg_temp.${what.twin}`
  const [source, sink] = [await digest(twin), await digest(what.whole)]
  const same = source.rows === sink.rows && source.hash === sink.hash
  const missing = same ? [] : await only(twin, what.whole)
  const extra = same ? [] : await only(what.whole, twin)
  await connection.query('COMMIT')
  // Both kinds are shown where there are both: neither takes more than half, unless the other leaves it.
  const shown = Math.max(Math.ceil(what.limit / 2), what.limit - extra.length)
  const differences = [
    ...missing.slice(0, shown).map((text) => ({ kind: 'missing' as const, text })),
    ...extra.map((text) => ({ kind: 'extra' as const, text })),
  ]
  return { source, sink, differences: differences.slice(0, what.limit) }
}
