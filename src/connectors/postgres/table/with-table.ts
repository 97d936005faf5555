import { SluiceError } from '../../../core/errors.ts'
import type { EndpointRequest } from '../../connector.ts'
import { connect } from '../connection/connection.ts'
import type { PgConnection } from '../connection/connection.ts'
import type { TableReference } from './table-reference.ts'
import { parsePostgresUrl } from '../connection/url.ts'
import type { PostgresTarget } from '../connection/url.ts'

/** What a URL leads to that has to name a table. @throws SLUICE_USAGE */
export function tableTarget({ url, env }: Pick<EndpointRequest, 'url' | 'env'>): {
  readonly target: PostgresTarget
  readonly reference: TableReference
} {
  const target = parsePostgresUrl(url, env)
  if (target.table !== null) return { target, reference: target.table }
  throw new SluiceError('SLUICE_USAGE', `${target.url} names no table`, { hint: 'add ?table=schema.table' })
}

/** Runs with a connection of its own, for the table that the URL names. @throws SLUICE_USAGE where it names none */
export async function withTable<T>(
  request: EndpointRequest,
  work: (connection: PgConnection, reference: TableReference) => Promise<T>,
): Promise<T> {
  const { target, reference } = tableTarget(request)
  const connection = await connect(target, {
    signal: request.signal,
    applicationName: 'sluice',
    timeZone: request.options.timeZone,
  })
  try {
    return await work(connection, reference)
  } catch (error) {
    throw error instanceof SluiceError ? error.at({ url: target.url }) : error
  } finally {
    await connection.close()
  }
}
