import { isIP } from 'node:net'
import { encodeKey } from '../../aws/sign-v4.ts'
import { SluiceError } from '../../core/errors.ts'

export type PathStyle = 'auto' | 'always' | 'never'

export interface S3Place {
  readonly bucket: string
  /** Absent for requests about the bucket. */
  readonly key?: string | undefined
}

/**
 * `bucket/key`, the key exactly as typed.
 *
 * @throws SLUICE_USAGE where the bucket or the key is missing
 */
export function splitKey(storeKey: string): { bucket: string; key: string } {
  const { bucket, key } = splitPrefix(storeKey)
  if (key === '')
    throw new SluiceError('SLUICE_USAGE', `s3://${storeKey} names no object`, { hint: 'write s3://bucket/key' })
  return { bucket, key }
}

/** `bucket/prefix`, where the prefix may be empty. @throws SLUICE_USAGE where the bucket is missing */
export function splitPrefix(storeKey: string): { bucket: string; key: string } {
  const slash = storeKey.indexOf('/')
  const bucket = slash < 0 ? storeKey : storeKey.slice(0, slash)
  if (bucket === '')
    throw new SluiceError('SLUICE_USAGE', `s3://${storeKey} names no bucket`, { hint: 'write s3://bucket/key' })
  return { bucket, key: slash < 0 ? '' : storeKey.slice(slash + 1) }
}

/** For people; the same spelling that the user would type. */
export function s3Url(place: S3Place): string {
  return place.key === undefined ? `s3://${place.bucket}` : `s3://${place.bucket}/${place.key}`
}

/**
 * The endpoint as given, or null for AWS itself.
 *
 * @throws SLUICE_USAGE where it is no http or https URL
 */
export function parseEndpoint(endpoint: string | undefined): URL | null {
  if (endpoint === undefined || endpoint === '') return null
  try {
    const url = new URL(endpoint)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Error('not http')
    return url
  } catch {
    throw new SluiceError('SLUICE_USAGE', `not an endpoint: ${endpoint}`, {
      hint: 'write http://host:port or https://host',
    })
  }
}

/** Where a request goes: origin (scheme, host, port) and encoded path. @throws SLUICE_USAGE where the bucket cannot be part of the host */
export function locate(
  place: S3Place,
  target: { readonly endpoint: URL | null; readonly region: string; readonly pathStyle: PathStyle },
): { origin: string; host: string; path: string } {
  const base = target.endpoint ?? new URL(`https://${awsHost(target.region)}`)
  const basePath = base.pathname.replace(/\/+$/, '')
  const key = place.key === undefined ? '' : encodeKey(place.key)
  if (usesPathStyle(place.bucket, base, target)) {
    const path = `${basePath}/${encodeKey(place.bucket)}${place.key === undefined ? '' : `/${key}`}`
    return { origin: base.origin, host: base.host, path }
  }
  requireHostName(place.bucket, base)
  const host = `${place.bucket}.${base.host}`
  return { origin: `${base.protocol}//${host}`, host, path: `${basePath}/${key}` }
}

function requireHostName(bucket: string, base: URL): void {
  const isName = isIP(base.hostname.replace(/^\[|\]$/g, '')) === 0
  if (isName && /^[a-z0-9][a-z0-9._-]*$/i.test(bucket)) return
  throw new SluiceError('SLUICE_USAGE', `${bucket}.${base.host} is no name of a host, as --path-style never wants it`, {
    hint: 'leave it out, or say --path-style always',
  })
}

/** AWS's regional endpoint (AWS General Reference, "Amazon S3 endpoints and quotas"). */
export function awsHost(region: string): string {
  return `s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}

/**
 * Auto: path style for endpoints of one's own (few have a wildcard name), for addresses, for names that are no host label, and
 * for dots over https, where the wildcard certificate does not cover them.
 */
function usesPathStyle(bucket: string, base: URL, target: { endpoint: URL | null; pathStyle: PathStyle }): boolean {
  if (target.pathStyle !== 'auto') return target.pathStyle === 'always'
  const isAws = /\.amazonaws\.com(\.cn)?$/.test(base.hostname)
  if (target.endpoint !== null && !isAws) return true
  if (isIP(base.hostname.replace(/^\[|\]$/g, '')) !== 0) return true
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) return true
  return bucket.includes('.') && base.protocol === 'https:'
}
