import { createHash, createHmac } from 'node:crypto'
import { SluiceError } from '../core/errors.ts'
import type { AwsCredentials } from './credentials.ts'

/** Stands in `x-amz-content-sha256` where the body is not hashed (S3 only; AWS "Authenticating Requests: Using the Authorization Header"). */
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD'

/** SHA-256 of no bytes, in hex. */
export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export type QueryPair = readonly [name: string, value: string]

export interface SignInput {
  readonly method: string
  /** As the Host header has it: with the port, unless it is the scheme's own. */
  readonly host: string
  /** Encoded as it goes over the wire. */
  readonly path: string
  readonly query: readonly QueryPair[]
  /** Names in lower case, without host. All of them are signed. */
  readonly headers: Readonly<Record<string, string>>
  /** Lower-case hex SHA-256 of the body, or UNSIGNED_PAYLOAD. */
  readonly payloadHash: string
  readonly timeMs: number
  readonly region: string
  /** `s3`, `dynamodb`, `lambda` … */
  readonly service: string
  readonly credentials: AwsCredentials
}

/**
 * Headers of a request signed by Signature Version 4: those given, and x-amz-date, x-amz-security-token, authorization.
 * Source: AWS "Create a signed AWS API request"; checked against AWS's published examples and test suite.
 */
export function signV4(input: SignInput): Record<string, string> {
  const { credentials, region, service } = input
  const stamp = amzDate(input.timeMs)
  const day = stamp.slice(0, 8)
  const headers: Record<string, string> = { ...input.headers, 'x-amz-date': stamp }
  if (credentials.sessionToken !== undefined) headers['x-amz-security-token'] = credentials.sessionToken

  const canonical = canonicalRequest(input, { ...headers, host: input.host })
  const scope = `${day}/${region}/${service}/aws4_request`
  const toSign = `AWS4-HMAC-SHA256\n${stamp}\n${scope}\n${sha256Hex(canonical.text)}`
  const signature = createHmac('sha256', signingKey(credentials.secretAccessKey, day, { region, service }))
    .update(toSign)
    .digest('hex')
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${canonical.signedHeaders}, Signature=${signature}`
  return headers
}

function canonicalRequest(input: SignInput, headers: Record<string, string>): { text: string; signedHeaders: string } {
  const names = Object.keys(headers).sort()
  const lines = names.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`).join('')
  const signedHeaders = names.join(';')
  const query = encodeQuery(input.query)
  return {
    text: `${input.method}\n${input.path}\n${query}\n${lines}\n${signedHeaders}\n${input.payloadHash}`,
    signedHeaders,
  }
}

/** Keys derived today, bounded at KEYS_KEPT. */
const derived = new Map<string, Buffer>()
const KEYS_KEPT = 64

/** The key that requests of a day (`20130524`) are signed with: derived once for each, by four HMACs. */
export function signingKey(secret: string, day: string, scope: { region: string; service: string }): Buffer {
  const name = `${day}/${scope.region}/${scope.service}/${secret}`
  const kept = derived.get(name)
  if (kept !== undefined) return kept
  let key: Buffer = createHmac('sha256', `AWS4${secret}`).update(day).digest()
  for (const step of [scope.region, scope.service, 'aws4_request'])
    key = createHmac('sha256', key).update(step).digest()
  if (derived.size >= KEYS_KEPT) derived.clear()
  derived.set(name, key)
  return key
}

/** Lower-case hex SHA-256. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

/** `20130524T000000Z` */
export function amzDate(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

/**
 * Percent-encodes all but A-Z a-z 0-9 - . _ ~, in UTF-8, once (AWS's UriEncode).
 *
 * @throws SLUICE_USAGE for half a surrogate pair, which has no UTF-8
 */
export function encodeRfc3986(text: string): string {
  try {
    return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  } catch {
    throw new SluiceError('SLUICE_USAGE', `a name that is not valid Unicode: ${JSON.stringify(text)}`)
  }
}

/** An S3 key as a path: as encodeRfc3986, but slashes stay; nothing is normalised (`//`, `./`, `..` are part of the key). */
export function encodeKey(key: string): string {
  return encodeRfc3986(key).replaceAll('%2F', '/')
}

/** Sorted by encoded name, then value; a name without a value still has its `=`. */
export function encodeQuery(query: readonly QueryPair[]): string {
  return query
    .map(([name, value]) => [encodeRfc3986(name), encodeRfc3986(value)] as const)
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}
