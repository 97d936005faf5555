import { SluiceError } from '../../core/errors.ts'
import type { EndpointRequest } from '../connector.ts'
import { connect } from './connection.ts'
import type { PgConnection } from './connection.ts'
import type { TableReference } from './table-reference.ts'
import { parsePostgresUrl } from './url.ts'

/** Runs with a connection of its own, for the table that the URL names. @throws SLUICE_USAGE where it names none */
export async function withTable<T>(
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
