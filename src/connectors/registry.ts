import { SluiceError } from '../core/errors.ts'
import { redactUrl } from '../core/redact.ts'
import type { Connector } from './connector.ts'

const file = async (): Promise<Connector> => (await import('./file/connector.ts')).fileConnector
const postgres = async (): Promise<Connector> => (await import('./postgres/connector.ts')).postgresConnector
const dynamodb = async (): Promise<Connector> => (await import('./dynamodb/connector.ts')).dynamodbConnector

/** Schemes and who serves them; loaded when one is used. The only place that lists connectors. */
const CONNECTORS: Readonly<Record<string, () => Promise<Connector>>> = {
  file,
  http: file,
  https: file,
  s3: file,
  postgres,
  postgresql: postgres,
  dynamodb,
}

/** @throws SLUICE_USAGE for a scheme that nothing serves */
export async function connectorFor(url: string): Promise<Connector> {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase() ?? 'file'
  const load = Object.hasOwn(CONNECTORS, scheme) ? CONNECTORS[scheme] : undefined
  if (load !== undefined) return load()
  throw new SluiceError('SLUICE_USAGE', `nothing serves ${scheme}:// (${redactUrl(url)})`, {
    hint: `a path, -, or one of ${Object.keys(CONNECTORS)
      .map((name) => `${name}://`)
      .join(', ')}`,
  })
}
