import { SluiceError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
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

/** What people write for a scheme, besides slips of the finger. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  pg: 'postgres',
  psql: 'postgres',
  ddb: 'dynamodb',
  s3a: 's3',
  s3n: 's3',
}

/** @throws SLUICE_USAGE for a scheme that nothing serves, or one without its slashes */
export async function connectorFor(url: string): Promise<Connector> {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase() ?? 'file'
  const load = Object.hasOwn(CONNECTORS, scheme) ? CONNECTORS[scheme] : undefined
  if (load === undefined) throw unknownScheme(scheme, url)
  // Not shown whole: a password is not found in what is no URL.
  const bare = /^([a-z0-9]+):(?!\/\/)/i.exec(url)?.[1] ?? ''
  if (Object.hasOwn(CONNECTORS, bare.toLowerCase()))
    throw new SluiceError('SLUICE_USAGE', `${bare}: begins no URL without two slashes`, {
      hint: `${bare}://…, or ./${bare}:… for a file of such a name`,
    })
  if (scheme === 'file') refuseOtherForms(url)
  return load()
}

/** What other programs take for a database, which would be the name of a file here: Java's URLs, and libpq's keywords. */
const OTHER_FORMS = /^(?:jdbc:[a-z]+:|(?:host|hostaddr|port|user|dbname|service|password)\s*=\s*\S+\s+[a-z_]+\s*=)/i

function refuseOtherForms(url: string): void {
  // Not shown: it may hold a password.
  if (OTHER_FORMS.test(url))
    throw new SluiceError('SLUICE_USAGE', `a database is named by a URL, and not by JDBC's or libpq's other forms`, {
      hint: 'postgres://user@host:port/db?table=schema.table, or ./… for a file of such a name',
    })
}

function unknownScheme(scheme: string, url: string): SluiceError {
  const names = Object.keys(CONNECTORS)
  const meant = OTHER_NAMES[scheme] ?? nearest(scheme, names)
  return new SluiceError(
    'SLUICE_USAGE',
    `nothing serves ${scheme}:// (${redactUrl(url)})${meant === null ? '' : `; did you mean ${meant}://?`}`,
    { hint: `a path, -, or one of ${names.map((name) => `${name}://`).join(', ')}` },
  )
}
