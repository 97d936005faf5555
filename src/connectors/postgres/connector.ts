import type { Connector } from '../connector.ts'
import { createTableSql } from './table/ddl.ts'

/** PostgreSQL, Aurora and RDS included. What reads and what writes is loaded when it is asked for: each is half of all the code. */
export const postgresConnector: Connector = {
  name: 'PostgreSQL',
  modes: ['append', 'truncate'],
  readsBy: ({ query }) =>
    query === undefined
      ? 'a table is read by COPY TO STDOUT, ranges of its pages side by side in one snapshot'
      : 'a query is read by COPY TO STDOUT, in one stream',
  writesBy: ({ commit = 'job', mode = 'append' }) =>
    `rows go into a table by COPY FROM STDIN; --mode ${mode}, --commit ${commit}`,
  openSource: async (request) => (await import('./source.ts')).createPostgresSource(request),
  openSink: async (request) => (await import('./sink.ts')).createPostgresSink(request),
  planSql: async (request, schema) => (await import('./plan-sql.ts')).planSql(request, schema),
  describeTable: async (request) => (await import('./table/report-table.ts')).reportTable(request),
  compareRows: async (request, rows) => (await import('./compare.ts')).compareWithTable(request, rows),
  ddl: (schema, { schema: namespace = 'public', name }) => createTableSql({ schema: namespace, name }, schema.columns),
}
