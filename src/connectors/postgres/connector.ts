import { SluiceError } from '../../core/errors.ts'
import type { Schema } from '../../core/schema.ts'
import type { Connector, EndpointRequest, SinkRequest, TableReport } from '../connector.ts'
import { matchColumns } from './column-match.ts'
import { compareWithTable } from './compare.ts'
import { connect } from './connection.ts'
import type { PgConnection } from './connection.ts'
import { copyStatement } from './copy-statement.ts'
import { createTableSql } from './ddl.ts'
import { beginSql } from './lane.ts'
import { LEDGER_SCHEMA, Ledger } from './ledger.ts'
import { quoteTable } from './quote.ts'
import { createPostgresSink, lockTimeoutMs } from './sink.ts'
import { createPostgresSource } from './source.ts'
import { describeTable } from './table.ts'
import { loadableTable, missingTableSql } from './table-target.ts'
import type { TableReference } from './table-reference.ts'
import { neutralTypeOf } from './type-map.ts'
import { parsePostgresUrl } from './url.ts'

/** PostgreSQL, Aurora and RDS included. */
export const postgresConnector: Connector = {
  name: 'PostgreSQL',
  modes: ['append', 'truncate'],
  readsBy: ({ query }) =>
    query === undefined
      ? 'a table is read by COPY TO STDOUT, ranges of its pages side by side in one snapshot'
      : 'a query is read by COPY TO STDOUT, in one stream',
  writesBy: ({ commit = 'job', mode = 'append' }) =>
    `rows go into a table by COPY FROM STDIN; --mode ${mode}, --commit ${commit}`,
  openSource: createPostgresSource,
  openSink: createPostgresSink,
  planSql,
  describeTable: reportTable,
  compareRows: compareWithTable,
  ddl: (schema, { schema: namespace = 'public', name }) => createTableSql({ schema: namespace, name }, schema.columns),
}

/** Runs with a connection of its own. */
async function withTable<T>(
  request: EndpointRequest,
  work: (connection: PgConnection, reference: TableReference) => Promise<T>,
): Promise<T> {
  const target = parsePostgresUrl(request.url, request.env)
  if (target.table === null)
    throw new SluiceError('SLUICE_USAGE', `${target.url} names no table`, { hint: 'add ?table=schema.table' })
  const connection = await connect(target, {
    signal: request.signal,
    applicationName: 'sluice',
    timeZone: request.options.timeZone,
  })
  try {
    return await work(connection, target.table)
  } catch (error) {
    throw error instanceof SluiceError ? error.at({ url: target.url }) : error
  } finally {
    await connection.close()
  }
}

async function planSql(request: SinkRequest, schema: Schema): Promise<readonly string[]> {
  const { options } = request
  return withTable(request, async (connection, reference) => {
    const missing = options.create === true ? await missingTableSql(connection, reference, schema) : null
    const names = schema.columns.map((column) => column.name)
    const shape = { delimiter: options.delimiter ?? ',', quote: '"', escape: '"' }
    const truncate = options.mode === 'truncate'
    const table = missing === null ? await loadableTable(connection, reference, { truncate }) : null
    const quoted = quoteTable(table ?? missing?.table ?? { schema: '', name: '' })
    const columns =
      table === null
        ? names
        : matchColumns(names, table, options.byPosition === true || !schema.named).map((column) => column.name)
    const ledger =
      options.commit === 'partition'
        ? new Ledger(options.ledgerSchema ?? LEDGER_SCHEMA, { jobId: '', fingerprint: '', partitions: [] })
        : null
    const truncating = truncate ? [`TRUNCATE ${quoted}`] : []
    const copying = copyStatement(quoted, columns, shape)
    const made = [...(options.beforeSql ?? []), ...(missing === null ? [] : [missing.sql])]
    const after = options.afterSql ?? []
    // Each lane's transaction, or each extent's where there is a ledger.
    const begin = beginSql(lockTimeoutMs(request.retryForMs))
    if (ledger === null)
      return [...made, ...begin, ...truncating, copying, 'SET CONSTRAINTS ALL IMMEDIATE', 'COMMIT', ...after]
    const { first, inExtent, last } = ledger.statements()
    return [...first, ...made, ...truncating, ...begin, inExtent, copying, 'COMMIT', last, ...after]
  })
}

async function reportTable(request: EndpointRequest): Promise<TableReport> {
  return withTable(request, async (connection, reference) => {
    const table = await describeTable(connection, reference)
    const [size] = await connection.query<{ rows: string; bytes: string }>(
      'SELECT greatest(c.reltuples, 0)::bigint::text AS rows, pg_catalog.pg_total_relation_size(c.oid)::text AS bytes FROM pg_catalog.pg_class c WHERE c.oid = $1',
      [table.oid],
    )
    const columns = table.columns.map((column) => ({
      name: column.name,
      type: neutralTypeOf(column.baseTypeOid, column.element !== null),
      nativeType: column.type,
      nullable: column.nullable,
    }))
    return {
      schema: { columns, named: true },
      name: { schema: table.schema, name: table.name },
      rows: Number(size?.rows ?? 0),
      bytes: Number(size?.bytes ?? 0),
      table: {
        schema: table.schema,
        name: table.name,
        kind: table.kind,
        primaryKey: table.primaryKey === null ? null : [...table.primaryKey],
        uniqueKeys: table.uniqueKeys.map((key) => [...key]),
        foreignKeys: table.foreignKeys.map((key) => ({
          name: key.name,
          columns: [...key.columns],
          references: key.references,
        })),
        triggers: [...table.triggers],
        generated: table.columns.filter((column) => column.generated).map((column) => column.name),
        rowsAreEstimated: true,
      },
    }
  })
}
