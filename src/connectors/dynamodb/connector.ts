import type { Schema } from '../../core/schema.ts'
import type { Connector, EndpointRequest, SinkRequest, TableReport } from '../connector.ts'
import { openDynamoClient } from './client.ts'
import { compareWithTable } from './compare.ts'
import { createDynamoSink } from './sink.ts'
import { createDynamoSource } from './source.ts'
import { describeTable, findLoadable, schemaWithKeys, spell } from './table.ts'
import { keysOf, type TableInfo, tableJson } from './table-info.ts'
import { findDynamoTarget } from './url.ts'

/** DynamoDB's tables. */
export const dynamodbConnector: Connector = {
  name: 'DynamoDB',
  // A put replaces the item with the same key: both are the same.
  modes: ['append', 'upsert'],
  writesBy: ({ dedupe = 'last' }) => `rows go into a table by BatchWriteItem, 25 puts a request; --dedupe ${dedupe}`,
  readsBy: () => 'rows come out of a table by parallel Scan, strongly consistent',
  openSource: createDynamoSource,
  openSink: createDynamoSink,
  planMeet: planTable,
  describeTable: reportTable,
  comparedForm: 'rows',
  compareRows: compareWithTable,
}

/** What a load would find, and what it would make of it. */
async function planTable(
  request: SinkRequest,
  schema: Schema,
): Promise<{ readonly schema: Schema; readonly steps: readonly string[] }> {
  const { options, signal } = request
  const target = await findDynamoTarget(request.url, request)
  const client = openDynamoClient(request, target)
  try {
    const found = await findLoadable(client, { table: target.table, options }, { signal })
    const table = 'there' in found ? found.there : found.make
    const about = 'there' in found ? thereText(found.there) : newText(found.make.warmWrites ?? null)
    const { writeUnits = 'auto' } = options
    const pace = writeUnits === 'auto' ? 'as fast as the table goes' : `${writeUnits} write units a second`
    const steps = [
      `${'there' in found ? 'table' : 'CreateTable'} ${target.table}, key ${spell(table)}, ${about}`,
      `BatchWriteItem, 25 puts a request, ${pace}; one write unit an item for each KB that is begun`,
    ]
    return { schema: schemaWithKeys(table, schema), steps }
  } finally {
    await client.close()
  }
}

function newText(warmWrites: number | null): string {
  return `on demand${warmWrites === null ? '' : `, warm for ${warmWrites} writes a second`}`
}

/** Its items stay, unless rows have their keys. */
function thereText(table: TableInfo): string {
  const units = table.provisioned?.writeUnits ?? null
  const billing = units === null ? 'on demand' : `provisioned with ${units} write units a second`
  return `${billing}${table.items === null ? '' : `, about ${table.items} items`}; items with the keys of rows are replaced`
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
      nativeTo: 'dynamodb' as const,
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
