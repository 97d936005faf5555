import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A file and how the server behaves with it. What is left out is done as it should be. */
export interface HttpFile {
  readonly bytes: Uint8Array
  /** Null: none is sent. Default: strong, from the bytes. */
  readonly etag?: string | null
  /** An HTTP date; null: none is sent. */
  readonly lastModified?: string | null
  /** `ignore`: 200 and everything. `unsized`: 206 with `/*` for the size. `short`: at most half of what was asked for, honestly told. */
  readonly ranges?: 'honour' | 'ignore' | 'unsized' | 'short'
  /** Status with which a GET with a Range is refused. */
  readonly rangeStatus?: number
  /** Answers a range although If-Range names another state. */
  readonly ignoresIfRange?: boolean
  /** Status with which HEAD is refused. */
  readonly headStatus?: number
  /** The connection is cut after this many bytes of a body. */
  readonly cut?: Fault
  /** Nothing comes any more after this many bytes of a body. */
  readonly stall?: Fault
  /** Added to Content-Length; the connection then closes, or the surplus is dropped. */
  readonly lengthError?: number
  /** No Content-Length; this many bytes more (rubbish) or less are sent than there are. */
  readonly chunked?: { readonly surplus: number }
  readonly contentEncoding?: string
  /** A status instead of the file, so many times. */
  readonly failure?: { readonly status: number; readonly times: number; readonly retryAfter?: string }
  /** `user:password` */
  readonly password?: string
}

export interface Fault {
  readonly afterBytes: number
  /** How many answers of more than one byte are treated so. */
  readonly times: number
}

export interface HttpRequestSeen {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly status: number
}

/** A real HTTP server on a free port of 127.0.0.1, which does wrong what it is told to do wrong. */
export interface MisbehavingHttp {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string
  /** Puts a file there, or another in its place; its URL. Counters of its faults begin anew. */
  file(path: string, file: HttpFile): string
  redirect(path: string, location: string | undefined, status?: number): string
  remove(path: string): void
  /** What was asked for so far, oldest first. */
  requests(path?: string): readonly HttpRequestSeen[]
  /** Called before each answer, with how many requests for the path came before. */
  onRequest(listener: (path: string, earlier: number) => void): void
  /** Connections that are open now. */
  connections(): number
  stop(): Promise<void>
}

interface Served {
  readonly file: HttpFile
  left: { cut: number; stall: number; failure: number }
}

type Entry = Served | { readonly location: string | undefined; readonly status: number }

/** Behaves well until told otherwise. */
export async function startMisbehavingHttp(): Promise<MisbehavingHttp> {
  const entries = new Map<string, Entry>()
  const seen: HttpRequestSeen[] = []
  const sockets = new Set<Socket>()
  let listener: (path: string, earlier: number) => void = () => undefined
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    listener(path, seen.filter((one) => one.path === path).length)
    const { method = 'GET', headers } = request
    respond(entries.get(path), request, response)
    seen.push({ method, path, headers, status: response.statusCode })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    file: (path, file) => {
      const left = { cut: file.cut?.times ?? 0, stall: file.stall?.times ?? 0, failure: file.failure?.times ?? 0 }
      entries.set(path, { file, left })
      return origin + path
    },
    redirect: (path, location, status = 302) => {
      entries.set(path, { location, status })
      return origin + path
    },
    remove: (path) => entries.delete(path),
    requests: (path) => seen.filter((one) => path === undefined || one.path === path),
    onRequest: (next) => {
      listener = next
    },
    connections: () => sockets.size,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function respond(entry: Entry | undefined, request: IncomingMessage, response: ServerResponse): void {
  if (entry === undefined) return end(response, 404)
  if ('location' in entry) {
    if (entry.location !== undefined) response.setHeader('location', entry.location)
    return end(response, entry.status)
  }
  const { file, left } = entry
  if (left.failure > 0 && file.failure !== undefined) {
    left.failure -= 1
    if (file.failure.retryAfter !== undefined) response.setHeader('retry-after', file.failure.retryAfter)
    return end(response, file.failure.status)
  }
  if (file.password !== undefined && request.headers.authorization !== basic(file.password)) return end(response, 401)
  if (request.method === 'HEAD' && file.headStatus !== undefined) return end(response, file.headStatus)
  if (request.headers.range !== undefined && file.rangeStatus !== undefined) return end(response, file.rangeStatus)
  sendFile(entry, request, response)
}

function sendFile(entry: Served, request: IncomingMessage, response: ServerResponse): void {
  const { file } = entry
  const etag = file.etag === undefined ? etagOf(file.bytes) : file.etag
  const { lastModified = 'Wed, 21 Oct 2015 07:28:00 GMT' } = file
  if (etag !== null) response.setHeader('etag', etag)
  if (lastModified !== null) response.setHeader('last-modified', lastModified)
  if (file.contentEncoding !== undefined) response.setHeader('content-encoding', file.contentEncoding)
  response.setHeader('content-type', 'text/csv')
  const wanted = rangeOf(request, file)
  const condition = request.headers['if-range']
  const stale =
    condition !== undefined && condition !== etag && condition !== lastModified && file.ignoresIfRange !== true
  if (wanted === null || stale) {
    response.statusCode = 200
    return send(entry, request, { response, body: file.bytes })
  }
  const size = file.ranges === 'unsized' ? '*' : String(file.bytes.byteLength)
  if (wanted.start >= file.bytes.byteLength) {
    response.setHeader('content-range', `bytes */${size}`)
    return end(response, 416)
  }
  const last = file.ranges === 'short' ? wanted.start + Math.ceil((wanted.end - wanted.start) / 2) : wanted.end
  response.statusCode = 206
  response.setHeader('content-range', `bytes ${wanted.start}-${last - 1}/${size}`)
  send(entry, request, { response, body: file.bytes.subarray(wanted.start, last) })
}

function send(entry: Served, request: IncomingMessage, answer: { response: ServerResponse; body: Uint8Array }): void {
  const { file, left } = entry
  const { response } = answer
  const { surplus = 0 } = file.chunked ?? {}
  const body =
    surplus > 0
      ? Buffer.concat([answer.body, Buffer.alloc(surplus, 0x58)])
      : answer.body.subarray(0, answer.body.byteLength + surplus)
  if (file.chunked === undefined) response.setHeader('content-length', body.byteLength + (file.lengthError ?? 0))
  if (request.method === 'HEAD') return void response.end()
  // Otherwise Node adds the length of a body that is sent in one piece.
  if (file.chunked !== undefined) response.flushHeaders()
  const faulty = answer.body.byteLength > 1
  if (faulty && left.cut > 0 && file.cut !== undefined) {
    left.cut -= 1
    response.write(body.subarray(0, file.cut.afterBytes), () => setTimeout(() => response.destroy(), 20))
  } else if (faulty && left.stall > 0 && file.stall !== undefined) {
    left.stall -= 1
    response.write(body.subarray(0, file.stall.afterBytes))
  } else if (faulty && file.lengthError !== undefined) {
    response.write(body, () => setTimeout(() => response.destroy(), 20))
  } else {
    response.end(body)
  }
}

function rangeOf(request: IncomingMessage, file: HttpFile): { start: number; end: number } | null {
  const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
  if (match === null || file.ranges === 'ignore') return null
  const last = match[2] === '' ? file.bytes.byteLength - 1 : Number(match[2])
  return { start: Number(match[1]), end: Math.min(file.bytes.byteLength, last + 1) }
}

function end(response: ServerResponse, status: number): void {
  response.statusCode = status
  response.end(`status ${status}\n`)
}

function etagOf(bytes: Uint8Array): string {
  return `"${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}"`
}

function basic(password: string): string {
  return `Basic ${Buffer.from(password).toString('base64')}`
}
