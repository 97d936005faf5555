import type { Connector, EndpointRequest, TableReport } from '../connector.ts'
import { openDynamoClient } from './client.ts'
import { compareWithTable } from './compare.ts'
import { createDynamoSink } from './sink.ts'
import { createDynamoSource } from './source.ts'
import { describeTable } from './table.ts'
import { keysOf, tableJson } from './table-info.ts'
import { findDynamoTarget } from './url.ts'

/** DynamoDB's tables. */
export const dynamodbConnector: Connector = {
  name: 'DynamoDB',
  writesBy: ({ dedupe = 'last' }) => `rows go into a table by BatchWriteItem, 25 puts a request; --dedupe ${dedupe}`,
  readsBy: () => 'rows come out of a table by parallel Scan, strongly consistent',
  openSource: createDynamoSource,
  openSink: createDynamoSink,
  describeTable: reportTable,
  comparedForm: 'rows',
  compareRows: compareWithTable,
}

/** The columns that a table is sure to have: its keys. */
async function reportTable(request: EndpointRequest): Promise<TableReport> {
  const target = await findDynamoTarget(request.url, request)
  const client = openDynamoClient(request, target)
  try {
    const table = await describeTable(client, target.table, { signal: request.signal })
    const types = { S: 'string', N: 'number', B: 'binary' } as const
    const columns = keysOf(table).map(({ name, type }) => ({
      name,
      type: types[type],
      nativeType: type,
      nullable: false,
    }))
    return {
      schema: { columns, named: true, typed: true },
      name: { name: table.name },
      rows: table.items,
      bytes: table.bytes,
      table: tableJson(table),
    }
  } finally {
    await client.close()
  }
}
