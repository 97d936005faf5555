import { setMaxListeners } from 'node:events'
import {
  Agent as HttpAgent,
  request as httpRequest,
  type AgentOptions,
  type ClientRequest,
  type IncomingMessage,
} from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { SluiceError } from '../core/errors.ts'
import { redactUrl } from '../core/redact.ts'
import { BulkGetter } from './bulk-get.ts'
import { translateNetworkError } from './network-error.ts'
import { ResponseBody } from './response-body.ts'

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
  /** Without host, which comes from the origin, and content-length, which comes from the body. */
  readonly headers: Readonly<Record<string, string>>
  /** Not copied, so not to be changed until the answer is there. */
  readonly body?: readonly Uint8Array[] | undefined
  readonly signal: AbortSignal
  /** A GET of many bytes: read straight from the socket, which is cheaper. */
  readonly bulk?: boolean | undefined
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
  /** Breaks all connections. */
  close(): Promise<void>
}

/** S3 closes idle connections after some 20 s (inferred); ours go first, so that few requests meet a dying one. */
const IDLE_MS = 15_000

interface Limits {
  readonly connectTimeoutMs: number
  readonly stallTimeoutMs: number
}

type Send = (options: Parameters<typeof httpRequest>[1]) => ClientRequest

/**
 * Opens no connection before the first request. Node's own client and not undici's: in one process that downloads 208 MB it
 * measured 0.2 s of CPU less (undici compiles its parser from WebAssembly), and not more a byte afterwards.
 */
export function createHttpPool(options: HttpPoolOptions = {}): HttpPool {
  const shared = {
    keepAlive: true,
    maxSockets: options.maxConnections ?? 64,
    scheduling: 'lifo',
    timeout: IDLE_MS,
  } as const
  const limits = {
    connectTimeoutMs: options.connectTimeoutMs ?? 4_000,
    stallTimeoutMs: options.stallTimeoutMs ?? 30_000,
  }
  const answered = new Set<string>()
  const bulk = new BulkGetter({
    ...limits,
    maxConnections: shared.maxSockets,
    idleMs: IDLE_MS,
    tls: options.tls,
    translate: translated,
  })
  const client = nodeClient(shared, options.tls)
  return {
    async request(request) {
      if (request.bulk === true && request.method === 'GET') {
        const simple = await bulk.get(request)
        answered.add(request.origin)
        if (simple !== null) return simple
      }
      const response = await exchange(await client.sender(request.origin), request, limits)
      answered.add(request.origin)
      return response
    },
    hasAnswered: (origin) => answered.has(origin),
    close() {
      bulk.close()
      client.destroy()
      return Promise.resolve()
    },
  }
}

/** Node's client for both schemes, each with an agent made when it is first used. */
function nodeClient(
  shared: AgentOptions,
  tls: HttpPoolOptions['tls'],
): { sender(origin: string): Promise<Send>; destroy(): void } {
  const agents: HttpAgent[] = []
  let plain: Send | null = null
  let secure: Promise<Send> | null = null

  const sendPlain = (): Send => {
    const agent = new HttpAgent(shared)
    agents.push(agent)
    return (o) => httpRequest({ ...o, agent })
  }
  // Loaded only where it is used: TLS costs a start-up 10 ms.
  const sendSecure = async (): Promise<Send> => {
    const { Agent, request } = await import('node:https')
    const agent = new Agent({ ...shared, ...tls })
    agents.push(agent)
    return (o) => request({ ...o, agent })
  }
  return {
    async sender(origin) {
      return origin.startsWith('https:') ? (secure ??= sendSecure()) : (plain ??= sendPlain())
    },
    destroy() {
      for (const agent of agents) agent.destroy()
    },
  }
}

function exchange(send: Send, request: HttpRequest, limits: Limits): Promise<HttpResponse> {
  const { signal } = request
  const label = request.label ?? request.origin + request.path
  const translate = (error: unknown): Error =>
    signal.aborted ? asError(signal.reason) : translateNetworkError(error, request.origin, label)
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason)
      return
    }
    // One listener a request in flight, taken off at its end: Node would warn of the eleventh.
    setMaxListeners(0, signal)
    const sent = send(requestOptions(request))
    const onAbort = (): void => void sent.destroy(asError(signal.reason))
    signal.addEventListener('abort', onAbort, { once: true })
    sent.once('close', () => signal.removeEventListener('abort', onAbort))
    let body: ResponseBody | null = null
    const fail = (error: unknown): void => {
      if (body === null) reject(translate(error))
      else body.fail(asError(error))
    }
    sent.on('error', fail)
    sent.on('socket', (socket: Socket) =>
      watch(sent, socket, {
        host: new URL(request.origin).host,
        url: redactUrl(label),
        connectTimeoutMs: limits.connectTimeoutMs,
        stallTimeoutMs: request.stallTimeoutMs ?? limits.stallTimeoutMs,
        isOurPause: () => body?.isPaused ?? false,
      }),
    )
    sent.once('response', (response) => {
      body = receive(sent, response, translate)
      response.once('error', fail)
      resolve({ status: response.statusCode ?? 0, headers: joined(response), body })
    })
    for (const chunk of request.body ?? []) if (chunk.byteLength > 0) sent.write(chunk)
    sent.end()
  })
}

function receive(sent: ClientRequest, response: IncomingMessage, translate: (error: unknown) => Error): ResponseBody {
  const control = {
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    abort: (reason: Error) => void sent.destroy(reason),
  }
  const body = new ResponseBody(control, translate)
  response.on('data', (chunk: Buffer) => body.push(chunk))
  response.once('end', () => {
    body.end()
    // The server answered before it had read all: the rest of the request is not wanted any more.
    if (!sent.writableFinished) sent.destroy()
  })
  return body
}

/**
 * Two clocks: until the connection stands, and then Node's idle timer, which starts anew whenever bytes come or leave (a part of
 * 8 MiB is one write, of which every piece that the kernel takes counts).
 */
function watch(
  sent: ClientRequest,
  socket: Socket,
  o: Limits & { readonly host: string; readonly url: string; readonly isOurPause: () => boolean },
): void {
  const { host } = o
  const where = { url: o.url }
  const stalled = (): void => {
    if (o.isOurPause()) return
    const seconds = o.stallTimeoutMs / 1000
    sent.destroy(
      new SluiceError('SLUICE_NETWORK', `the connection to ${host} stalled: no byte for ${seconds} s`, { where }),
    )
  }
  const begin = (): void => {
    socket.setTimeout(o.stallTimeoutMs)
    socket.on('timeout', stalled)
    sent.once('close', () => socket.off('timeout', stalled))
  }
  if (!socket.connecting && !('secureConnecting' in socket && socket.secureConnecting === true)) {
    begin()
    return
  }
  const late = new SluiceError('SLUICE_UNREACHABLE', `no connection to ${host} within ${o.connectTimeoutMs / 1000} s`, {
    where,
  })
  const timer = setTimeout(() => sent.destroy(late), o.connectTimeoutMs)
  socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
    clearTimeout(timer)
    begin()
  })
  sent.once('close', () => clearTimeout(timer))
}

function requestOptions(request: HttpRequest): Parameters<typeof httpRequest>[1] & object {
  const { hostname, port, host } = new URL(request.origin)
  const length = (request.body ?? []).reduce((sum, chunk) => sum + chunk.byteLength, 0)
  const sends = request.method === 'PUT' || request.method === 'POST'
  return {
    method: request.method,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port,
    path: request.path,
    headers: { ...request.headers, host, ...(sends ? { 'content-length': String(length) } : {}) },
  }
}

function joined(response: IncomingMessage): Record<string, string | undefined> {
  const flat: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(response.headers))
    flat[name] = Array.isArray(value) ? value.join(', ') : value
  return flat
}

/** A SluiceError made near the socket knows no place yet. */
function translated(error: unknown, request: Pick<HttpRequest, 'origin' | 'path' | 'label'>): Error {
  const label = request.label ?? request.origin + request.path
  return translateNetworkError(error, request.origin, label).at({ url: redactUrl(label) })
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
