import { findRegion } from '../../aws/region.ts'
import { SluiceError } from '../../core/errors.ts'
import type { CopyOptions, Environment } from '../../core/options.ts'
import { redactUrl } from '../../core/redact.ts'

/** A table as its URL names it. */
export interface DynamoUrl {
  /** Null where the URL leaves it to flag, environment and profile. */
  readonly region: string | null
  readonly table: string
  /** For people and errors; the same in every spelling. */
  readonly url: string
}

/** A table, and where it is. */
export interface DynamoTarget {
  readonly region: string
  readonly table: string
  readonly url: string
  /** AWS_ENDPOINT_URL_DYNAMODB, else AWS_ENDPOINT_URL; null: AWS itself. Its path ends without a slash. */
  readonly endpoint: URL | null
}

const FORM = 'dynamodb://region/Table, or dynamodb:///Table for the default region'
/** AWS, CreateTable, TableName; the same as in NamingRules of the Developer Guide. */
const TABLE_NAME = /^[A-Za-z0-9_.-]{3,255}$/

/**
 * Takes `dynamodb://region/Table` or `dynamodb:///Table` apart. Names are taken as typed, not percent-decoded.
 *
 * @throws SLUICE_USAGE
 */
export function parseDynamoUrl(url: string): DynamoUrl {
  const shown = redactUrl(url)
  const wrong = (what: string, hint = FORM): SluiceError => new SluiceError('SLUICE_USAGE', what, { hint })
  const match = /^dynamodb:\/\/([^/?#]*)(?:\/([^?#]*))?([?#].*)?$/is.exec(url)
  if (match === null) throw wrong(`${shown} is no DynamoDB URL`)
  const [, host = '', path, rest] = match
  if (host.includes('@') || host.includes(':'))
    throw wrong(
      `${shown}: a DynamoDB URL holds neither credentials nor an address`,
      'credentials come from the environment or --profile, an endpoint from AWS_ENDPOINT_URL_DYNAMODB',
    )
  if (rest !== undefined) throw wrong(`${shown}: a DynamoDB URL takes no parameters`)
  if (path === undefined || path === '')
    throw wrong(`${shown} names no table`, host === '' ? FORM : `dynamodb:///${host} if ${host} is the table`)
  if (!TABLE_NAME.test(path))
    throw wrong(`"${path}" cannot be the name of a table`, '3 to 255 letters, digits, _, - and . make a name')
  if (host !== '' && !/^[a-z0-9-]+$/i.test(host)) throw wrong(`"${host}" cannot be a region`)
  const region = host === '' ? null : host.toLowerCase()
  return { region, table: path, url: `dynamodb://${region ?? ''}/${path}` }
}

/**
 * The table and its region: the URL's, else `--region`, the environment's, the profile's.
 *
 * @throws SLUICE_USAGE
 */
export async function findDynamoTarget(
  url: string,
  around: { readonly options: CopyOptions; readonly env: Environment },
): Promise<DynamoTarget> {
  const parsed = parseDynamoUrl(url)
  const { options, env } = around
  const region = parsed.region ?? (await findRegion({ region: options.region, profile: options.profile, env }))
  return { region, table: parsed.table, url: parsed.url, endpoint: endpointOf(env) }
}

/** AWS's regional endpoint (AWS General Reference, "Amazon DynamoDB endpoints and quotas"). */
export function dynamoHost(region: string): string {
  return `dynamodb.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}

function endpointOf(env: Environment): URL | null {
  const said = [env['AWS_ENDPOINT_URL_DYNAMODB'], env['AWS_ENDPOINT_URL']].find(
    (text) => text !== undefined && text !== '',
  )
  if (said === undefined) return null
  const url = URL.canParse(said) ? new URL(said) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new SluiceError('SLUICE_USAGE', `not an endpoint: ${redactUrl(said)}`, {
      hint: 'write http://host:port or https://host',
    })
  return url
}
