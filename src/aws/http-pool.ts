import type { ConnectionOptions } from 'node:tls'
import { Agent, type Dispatcher } from 'undici'
import { translateNetworkError } from './network-error.ts'
import { ResponseBody } from './response-body.ts'

export { translateNetworkError } from './network-error.ts'
export { ResponseBody } from './response-body.ts'

/** Limits of a pool; every one has a default. */
export interface HttpPoolOptions {
  /** Connections to one origin at the same time; further requests wait. Default 64. */
  readonly maxConnections?: number | undefined
  /** Time to connect, TLS included. Default 4,000 ms, so that a silent address is told within 5 s. */
  readonly connectTimeoutMs?: number | undefined
  /** Time without a byte in either direction after which a request fails with SLUICE_NETWORK. Default 30,000 ms. */
  readonly stallTimeoutMs?: number | undefined
  /** Node's TLS options (a private authority, say). */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'servername'> | undefined
}

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** `http://host:port` or `https://host`. */
  readonly origin: string
  /** Path and query, encoded as it shall go over the wire. */
  readonly path: string
  /** Without content-length, which comes from the body. A `host` header stands as it is. */
  readonly headers: Readonly<Record<string, string>>
  /** Sent in slices of at most 256 KiB; not copied, so not to be changed until the answer is there. */
  readonly body?: readonly Uint8Array[] | undefined
  readonly signal: AbortSignal
  /** Instead of the pool's, where a server may brood for long. */
  readonly stallTimeoutMs?: number | undefined
  /** Named in errors instead of origin and path. */
  readonly label?: string | undefined
}

export interface HttpResponse {
  readonly status: number
  /** Names in lower case; a header that came several times is joined by a comma and a blank. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Has to be read, discarded or destroyed, or its connection stays taken. */
  readonly body: ResponseBody
}

/** Connections kept alive, per origin. */
export interface HttpPool {
  /**
   * One request, one answer: no retry, no redirect. Resolves with the head; any status is an answer.
   *
   * @throws what translateNetworkError makes of it; the signal's reason where that ended it
   */
  request(request: HttpRequest): Promise<HttpResponse>
  /** Whether this origin has ever answered: a refused connection is then an outage and no wrong address. */
  hasAnswered(origin: string): boolean
  /** Ends idle connections and breaks those in use. */
  close(): Promise<void>
}

const SLICE_BYTES = 256 * 1024

/** Opens no connection before the first request. */
export function createHttpPool(options: HttpPoolOptions = {}): HttpPool {
  const stallTimeoutMs = options.stallTimeoutMs ?? 30_000
  const agent = new Agent({
    connections: options.maxConnections ?? 64,
    pipelining: 1,
    headersTimeout: stallTimeoutMs,
    bodyTimeout: stallTimeoutMs,
    // S3 closes idle connections after some 20 s (inferred); ours go first, so that few requests meet a dying one.
    keepAliveTimeout: 15_000,
    keepAliveMaxTimeout: 60_000,
    connect: { timeout: options.connectTimeoutMs ?? 4_000, ...options.tls },
  })
  const answered = new Set<string>()
  return {
    async request(request) {
      const response = await dispatch(agent, request)
      answered.add(request.origin)
      return response
    },
    hasAnswered: (origin) => answered.has(origin),
    close: () => agent.destroy(),
  }
}

function dispatch(agent: Agent, request: HttpRequest): Promise<HttpResponse> {
  const { signal } = request
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason)
      return
    }
    const translate = (error: unknown): Error =>
      signal.aborted ? asError(signal.reason) : translateNetworkError(error, request.label ?? request.origin + request.path)
    let controller: Dispatcher.DispatchController | null = null
    let body: ResponseBody | null = null
    const onAbort = (): void => {
      // A request that still waits for a connection has no controller yet: it is refused in onRequestStart.
      controller?.abort(asError(signal.reason))
      if (body === null) reject(signal.reason)
      else body.fail(asError(signal.reason))
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const settle = (): void => signal.removeEventListener('abort', onAbort)

    agent.dispatch(dispatchOptions(request), {
      onRequestStart(started) {
        controller = started
        if (signal.aborted) started.abort(asError(signal.reason))
      },
      onResponseStart(started, status, headers) {
        if (status < 200) return
        body = new ResponseBody(started, translate)
        resolve({ status, headers: joined(headers), body })
      },
      onResponseData(_, chunk) {
        body?.push(chunk)
      },
      onResponseEnd() {
        settle()
        body?.end()
      },
      onResponseError(_, error) {
        settle()
        if (body === null) reject(translate(error))
        else body.fail(error)
      },
    })
  })
}

function dispatchOptions(request: HttpRequest): Dispatcher.DispatchOptions & { origin: string } {
  const body = request.body ?? []
  const length = body.reduce((sum, chunk) => sum + chunk.byteLength, 0)
  const sends = request.method === 'PUT' || request.method === 'POST'
  const headers = sends ? { ...request.headers, 'content-length': String(length) } : { ...request.headers }
  return {
    origin: request.origin,
    path: request.path,
    method: request.method,
    headers,
    ...(request.stallTimeoutMs === undefined
      ? {}
      : { headersTimeout: request.stallTimeoutMs, bodyTimeout: request.stallTimeoutMs }),
    // One write of a whole part would count as one byte for the stall timer; slices renew it as they leave.
    body: length === 0 ? null : (slices(body) as unknown as Dispatcher.DispatchOptions['body'] & object),
  }
}

async function* slices(body: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const chunk of body) {
    for (let at = 0; at < chunk.byteLength; at += SLICE_BYTES) yield chunk.subarray(at, at + SLICE_BYTES)
  }
}

function joined(headers: Record<string, string | string[] | undefined>): Record<string, string | undefined> {
  const flat: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(headers)) flat[name] = Array.isArray(value) ? value.join(', ') : value
  return flat
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason))
}

/** Retry-After (RFC 9110, 10.2.3), seconds or a date, in milliseconds; undefined where it is missing or makes no sense. At most an hour. */
export function retryAfterMs(header: string | undefined, nowMs: number = Date.now()): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs
  return Number.isFinite(ms) && ms >= 0 ? Math.min(ms, 3_600_000) : undefined
}
