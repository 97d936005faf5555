import { basename, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SluiceError } from '../../core/errors.ts'
import type { Store, WritableStore } from '../../core/ports.ts'
import { redactUrl } from '../../core/redact.ts'
import type { EndpointRequest } from '../connector.ts'

/** Where bytes lie: which store, and the key in it. */
export interface Endpoint {
  readonly scheme: 'file' | 'http' | 's3' | 'stdio'
  /** As the store takes it: an absolute path, an http URL, `bucket/key`, `-`. */
  readonly key: string
  /** Begins every key that is listed: what names under a prefix are relative to. */
  readonly url: string
}

/**
 * Takes a URL or path apart. An S3 key is taken as typed, not percent-decoded; `file://` is decoded, as RFC 8089 has it; a path is a path.
 *
 * @throws SLUICE_USAGE
 */
export function parseEndpoint(url: string): Endpoint {
  if (url === '-') return { scheme: 'stdio', key: '-', url: '-' }
  if (url === '') throw new SluiceError('SLUICE_USAGE', 'an empty name')
  const s3 = /^s3:\/\/([^/]*)\/?(.*)$/is.exec(url)
  if (s3 !== null) {
    const [, bucket = '', key = ''] = s3
    if (bucket === '') throw new SluiceError('SLUICE_USAGE', `${url} names no bucket`, { hint: 's3://bucket/key' })
    return { scheme: 's3', key: `${bucket}/${key}`, url }
  }
  if (/^https?:\/\//i.test(url)) return { scheme: 'http', key: parsedHttp(url), url: redactUrl(url) }
  if (/^file:/i.test(url)) {
    const path = pathOfFileUrl(url)
    return { scheme: 'file', key: path, url }
  }
  const path = resolve(url)
  return { scheme: 'file', key: url.endsWith('/') && path !== '/' ? `${path}/` : path, url }
}

/** A name to look at for endings: the last piece of the path, without a query. */
export function endpointName(endpoint: Endpoint): string {
  if (endpoint.scheme === 'stdio') return ''
  if (endpoint.scheme !== 'http') return basename(endpoint.key)
  const last = basename(new URL(endpoint.key).pathname)
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}

/** Opens the store of an endpoint; only the one needed is loaded. */
export async function openStore(endpoint: Endpoint, request: EndpointRequest): Promise<Store> {
  switch (endpoint.scheme) {
    case 'file':
    case 's3':
      return openWritableStore(endpoint, request)
    case 'http': {
      const { createHttpStore } = await import('../../stores/http-store.ts')
      return createHttpStore({ retryForMs: request.retryForMs, reporter: request.reporter })
    }
    case 'stdio': {
      const { createStreamStore } = await import('../../stores/stream-store.ts')
      if (request.stdin === undefined) throw new SluiceError('SLUICE_USAGE', 'standard input was not handed in')
      return createStreamStore(request.stdin)
    }
  }
}

/** @throws SLUICE_USAGE where nothing can be written there */
export async function openWritableStore(endpoint: Endpoint, request: EndpointRequest): Promise<WritableStore> {
  if (endpoint.scheme === 'file') {
    const { createLocalStore } = await import('../../stores/local-store.ts')
    return createLocalStore()
  }
  if (endpoint.scheme !== 's3')
    throw new SluiceError('SLUICE_USAGE', `nothing can be written to ${endpoint.url}`, {
      hint: 'a path, s3://bucket/key, or -',
    })
  const { createS3Store } = await import('../../stores/s3/s3-store.ts')
  const { options } = request
  return createS3Store({
    ...(options.s3Endpoint === undefined ? {} : { endpoint: options.s3Endpoint }),
    ...(options.region === undefined ? {} : { region: options.region }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.signRequest === undefined ? {} : { signRequest: options.signRequest }),
    ...(options.pathStyle === undefined ? {} : { pathStyle: options.pathStyle }),
    retryForMs: request.retryForMs,
    env: request.env,
    reporter: request.reporter,
  })
}

function parsedHttp(url: string): string {
  try {
    return new URL(url).href
  } catch (error) {
    throw new SluiceError('SLUICE_USAGE', `${redactUrl(url)} is no URL`, { cause: error })
  }
}

function pathOfFileUrl(url: string): string {
  try {
    return fileURLToPath(url)
  } catch (error) {
    throw new SluiceError('SLUICE_USAGE', `${url} is no file URL`, { hint: 'file:///absolute/path', cause: error })
  }
}
