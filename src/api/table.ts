import type { DynamoClient } from '../connectors/dynamodb/client.ts'
import type { TableInfo } from '../connectors/dynamodb/table-info.ts'
import type { NewTable } from '../connectors/dynamodb/table.ts'
import { SluiceError } from '../core/errors.ts'
import type { CopyOptions } from '../core/options.ts'
import { redactUrl } from '../core/redact.ts'
import { Progressor } from '../engine/progress.ts'
import { within } from './border.ts'
import { endpointRequest, surroundingsOf } from './endpoints.ts'
import type { ReadRequest } from './requests.ts'

/** A DynamoDB table as it is now. */
export interface TableResult {
  readonly url: string
  readonly table: TableInfo
  /** What was asked for and is not so (yet). */
  readonly warnings: readonly string[]
}

interface Opened {
  readonly client: DynamoClient
  readonly name: string
  readonly url: string
  readonly signal: AbortSignal
}

/**
 * Creates a DynamoDB table by `options.partitionKey` and `sortKey`, without secondary indexes, and waits until it can be written. It is on demand, and
 * bears `options.warmWrites` writes a second at once; with `readUnits` and `writeUnits` it is provisioned.
 *
 * @throws SLUICE_USAGE without a partition key; SLUICE_EXISTS; SLUICE_SERVER where it takes more than ten minutes
 */
export async function createTable(url: string, request: ReadRequest): Promise<TableResult> {
  const { createTable: create, notWarm, waitActive, wantedKeys } = await import('../connectors/dynamodb/table.ts')
  const keys = wantedKeys(request.options)
  if (keys === null)
    throw new SluiceError('SLUICE_USAGE', 'a table needs a key', { hint: '--partition-key NAME:S, or :N, :B' })
  return withTable(url, request, async ({ client, name, url: shown, signal }) => {
    const { warmWrites = null } = request.options
    await create(client, { table: name, ...keys, warmWrites, provisioned: unitsOf(request.options) }, { signal })
    const table = await waitActive(client, name, { signal })
    const missed = notWarm(table.warm, warmWrites ?? undefined)
    return { url: shown, table, warnings: missed === null ? [] : [missed] }
  })
}

/** What a table is provisioned with; null: on demand. */
function unitsOf({
  readUnits = 'auto',
  writeUnits = 'auto',
}: CopyOptions): NonNullable<NewTable['provisioned']> | null {
  if (readUnits === 'auto' && writeUnits === 'auto') return null
  if (readUnits === 'auto' || writeUnits === 'auto')
    throw new SluiceError('SLUICE_USAGE', 'a provisioned table has read units and write units', {
      hint: 'say --read-units N and --write-units N, or neither: on demand',
    })
  return { readUnits, writeUnits }
}

/** Keys, billing, throughput and size of a DynamoDB table. @throws SLUICE_NOT_FOUND */
export async function describeTable(url: string, request: ReadRequest): Promise<TableResult> {
  const { describeTable: describe } = await import('../connectors/dynamodb/table.ts')
  return withTable(url, request, async ({ client, name, url: shown, signal }) => ({
    url: shown,
    table: await describe(client, name, { signal }),
    warnings: [],
  }))
}

/**
 * Deletes a DynamoDB table with all that is in it, and waits until it is gone. Resolves with what it was.
 *
 * @throws SLUICE_USAGE unless `options.yes`, and for a protected table; SLUICE_NOT_FOUND
 */
export async function deleteTable(url: string, request: ReadRequest): Promise<TableResult> {
  if (request.options.yes !== true)
    throw new SluiceError('SLUICE_USAGE', `${redactUrl(url)} would be deleted with all that is in it`, {
      hint: 'say --yes if that is meant',
    })
  const { deleteTable: remove, describeTable: describe } = await import('../connectors/dynamodb/table.ts')
  return withTable(url, request, async ({ client, name, url: shown, signal }) => {
    const table = await describe(client, name, { signal })
    await remove(client, name, { signal })
    return { url: shown, table, warnings: [] }
  })
}

async function withTable(
  url: string,
  request: ReadRequest,
  work: (opened: Opened) => Promise<TableResult>,
): Promise<TableResult> {
  return within(request, (inside) => openTable(url, inside, work))
}

async function openTable(
  url: string,
  request: ReadRequest,
  work: (opened: Opened) => Promise<TableResult>,
): Promise<TableResult> {
  if (!/^dynamodb:/i.test(url))
    throw new SluiceError('SLUICE_USAGE', `${redactUrl(url)} is no DynamoDB table`, {
      hint: 'dynamodb://region/Table, or dynamodb:///Table for the default region',
    })
  const [{ findDynamoTarget }, { openDynamoClient }] = await Promise.all([
    import('../connectors/dynamodb/url.ts'),
    import('../connectors/dynamodb/client.ts'),
  ])
  const endpoint = endpointRequest(url, surroundingsOf(request, new Progressor(undefined)))
  const target = await findDynamoTarget(url, endpoint)
  const client = openDynamoClient(endpoint, target)
  try {
    return await work({ client, name: target.table, url: target.url, signal: endpoint.signal })
  } catch (error) {
    throw error instanceof SluiceError ? error.at({ url: target.url }) : error
  } finally {
    await client.close()
  }
}
