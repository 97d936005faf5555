import { setMaxListeners } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { SluiceError } from '../core/errors.ts'
import { decodeChunks, parseHead } from './http1.ts'
import { translateNetworkError } from './network-error.ts'

export interface PostPoolOptions {
  /** `http://host:port` or `https://host`. */
  readonly origin: string
  readonly maxConnections: number
  /** Time to connect, TLS included. Default 4,000 ms, so that a silent address is told within 5 s. */
  readonly connectTimeoutMs?: number | undefined
  /** Time without a byte in either direction after which a request fails with SLUICE_NETWORK. Default 15,000 ms. */
  readonly stallTimeoutMs?: number | undefined
  readonly tls?: ConnectionOptions | undefined
}

export interface PostResponse {
  readonly status: number
  /** Names in lower case; empty for a 200, whose headers nobody asks for. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Buffer
}

/** Up to here one write of a copy costs less than one of two pieces. */
const JOINED_BYTES = 64 * 1024
const MAX_HEAD_BYTES = 64 * 1024
/** The largest answer that is taken: a page of a Scan is 1 MB of items, and its JSON a few times that; twice over that. */
const MAX_BODY_BYTES = 64 * 1024 * 1024
/** Idle connections close after this long, before the server would (AWS: some 20 s, inferred). */
const IDLE_MS = 15_000
/** How often clocks are looked at, instead of setting timers for each of thousands of requests a second. */
const SWEEP_MS = 500

/**
 * POSTs with small answers to one origin, straight from sockets that are kept alive, one request at a time on each. It exists for its price:
 * a request costs about 25 µs of CPU, 80 µs by node:http.
 */
export class PostPool {
  readonly #options: PostPoolOptions
  readonly #idle: PostConnection[] = []
  readonly #open = new Set<PostConnection>()
  readonly #waiting: (() => void)[] = []
  #sweep: NodeJS.Timeout | null = null
  #answered = false
  #tls: Promise<typeof import('node:tls')> | null = null

  constructor(options: PostPoolOptions) {
    this.#options = options
  }

  /** Whether the origin has ever answered: a refused connection is then an outage and no wrong address. */
  get answered(): boolean {
    return this.#answered
  }

  /**
   * One request, one answer: any status is an answer. `head` ends with its blank line and announces the body's length. The body is not to be changed until the answer is there.
   *
   * @throws what translateNetworkError makes of it; the signal's reason where that ended it
   */
  async post(head: string, body: Uint8Array, signal: AbortSignal): Promise<PostResponse> {
    signal.throwIfAborted()
    const connection = this.#takeIdle() ?? (await this.#connectOrWait(signal))
    try {
      const response = await connection.post(head, body, signal)
      this.#answered = true
      return response
    } catch (error) {
      throw signal.aborted ? signal.reason : translateNetworkError(error, this.#options.origin)
    }
  }

  close(): void {
    if (this.#sweep !== null) clearInterval(this.#sweep)
    this.#sweep = null
    for (const connection of this.#open) connection.destroy(new Error('the pool is closed'))
  }

  /** An idle connection that is whole: one whose last request's signal came afterwards is broken, and its close is not told yet. */
  #takeIdle(): PostConnection | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) if (!idle.destroyed) return idle
    return undefined
  }

  /** At most as many wait as there are callers. */
  async #connectOrWait(signal: AbortSignal): Promise<PostConnection> {
    while (this.#open.size >= this.#options.maxConnections) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
      signal.throwIfAborted()
      const idle = this.#takeIdle()
      if (idle !== undefined) return idle
    }
    const { origin, tls, connectTimeoutMs = 4_000, stallTimeoutMs = 15_000 } = this.#options
    const url = new URL(origin)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const secure = url.protocol === 'https:'
    const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
    // Loaded only where it is used: TLS costs a start-up 10 ms.
    const module = secure ? await (this.#tls ??= import('node:tls')) : null
    const socket =
      module === null
        ? connectTcp({ host, port })
        : module.connect({ ...tls, host, port, servername: /^[\d.]+$|:/.test(host) ? '' : host })
    const connection = new PostConnection(socket, {
      host: url.host,
      readyEvent: secure ? 'secureConnect' : 'connect',
      connectTimeoutMs,
      stallTimeoutMs,
      onIdle: () => {
        this.#idle.push(connection)
        this.#waiting.shift()?.()
      },
      onClose: () => {
        this.#open.delete(connection)
        const at = this.#idle.indexOf(connection)
        if (at >= 0) this.#idle.splice(at, 1)
        this.#waiting.shift()?.()
      },
    })
    this.#open.add(connection)
    // One listener a connection: Node would warn of the eleventh.
    setMaxListeners(0, signal)
    this.#startSweep()
    return connection
  }

  #startSweep(): void {
    this.#sweep ??= setInterval(() => {
      const nowMs = performance.now()
      for (const connection of this.#open) connection.checkClocks(nowMs)
    }, SWEEP_MS).unref()
  }
}

interface Hooks {
  readonly host: string
  readonly readyEvent: 'connect' | 'secureConnect'
  readonly connectTimeoutMs: number
  readonly stallTimeoutMs: number
  readonly onIdle: () => void
  readonly onClose: () => void
}

interface Exchange {
  readonly resolve: (response: PostResponse) => void
  readonly reject: (error: unknown) => void
}

class PostConnection {
  readonly #socket: Socket
  readonly #hooks: Hooks
  readonly #onAbort: () => void
  readonly #beganMs = performance.now()
  #ready = false
  #exchange: Exchange | null = null
  #signal: AbortSignal | null = null
  #received: Buffer = Buffer.alloc(0)
  /** Bytes that left and came when the clocks were looked at last. */
  #moved = 0
  #lastMoveMs = performance.now()
  #error: unknown = null

  constructor(socket: Socket, hooks: Hooks) {
    this.#socket = socket
    this.#hooks = hooks
    this.#onAbort = () => this.destroy(new Error('aborted'))
    socket.setNoDelay(true)
    socket.once(hooks.readyEvent, () => {
      this.#ready = true
    })
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', (error) => {
      this.#error ??= error
    })
    socket.once('end', () => socket.destroy())
    socket.once('close', () => this.#onClose())
  }

  get destroyed(): boolean {
    return this.#socket.destroyed
  }

  post(head: string, body: Uint8Array, signal: AbortSignal): Promise<PostResponse> {
    return new Promise((resolve, reject) => {
      this.#exchange = { resolve, reject }
      if (this.#socket.destroyed) {
        this.#onClose()
        return
      }
      this.#listenTo(signal)
      this.#lastMoveMs = performance.now()
      this.#socket.ref()
      if (body.byteLength <= JOINED_BYTES) this.#socket.write(joined(head, body))
      else {
        this.#socket.cork()
        this.#socket.write(head, 'latin1')
        this.#socket.write(body)
        this.#socket.uncork()
      }
    })
  }

  destroy(reason: unknown): void {
    this.#error ??= reason
    this.#socket.destroy()
  }

  checkClocks(nowMs: number): void {
    const { host, connectTimeoutMs, stallTimeoutMs } = this.#hooks
    if (!this.#ready) {
      if (nowMs - this.#beganMs > connectTimeoutMs)
        this.destroy(
          new SluiceError('SLUICE_UNREACHABLE', `no connection to ${host} within ${connectTimeoutMs / 1000} s`),
        )
      return
    }
    const moved = this.#socket.bytesRead + this.#socket.bytesWritten - this.#socket.writableLength
    if (moved !== this.#moved) {
      this.#moved = moved
      this.#lastMoveMs = nowMs
    }
    if (this.#exchange === null) {
      if (nowMs - this.#lastMoveMs > IDLE_MS) this.#socket.destroy()
    } else if (nowMs - this.#lastMoveMs > stallTimeoutMs)
      this.destroy(
        new SluiceError('SLUICE_NETWORK', `the connection to ${host} stalled: no byte for ${stallTimeoutMs / 1000} s`),
      )
  }

  /** Most requests have the signal of the one before: the listener stays between them, which is cheaper. */
  #listenTo(signal: AbortSignal | null): void {
    if (signal === this.#signal) return
    this.#signal?.removeEventListener('abort', this.#onAbort)
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    this.#signal = signal
  }

  #read(bytes: Buffer): void {
    if (this.#exchange === null) {
      this.destroy(new SluiceError('SLUICE_PROTOCOL', `${this.#hooks.host} sends what it was not asked for`))
      return
    }
    const all = this.#received.byteLength === 0 ? bytes : Buffer.concat([this.#received, bytes])
    const answer = parseAnswer(all)
    if (answer === 'more') this.#received = all
    else if (answer === 'odd')
      this.destroy(new SluiceError('SLUICE_PROTOCOL', `${this.#hooks.host} does not answer in HTTP as we know it`))
    else this.#finish(answer)
  }

  #finish(answer: Answer): void {
    const exchange = this.#exchange
    if (exchange === null) return
    this.#exchange = null
    this.#received = EMPTY
    if (answer.last) this.#socket.destroy()
    else {
      this.#socket.unref()
      this.#hooks.onIdle()
    }
    exchange.resolve(answer)
  }

  #onClose(): void {
    const exchange = this.#exchange
    this.#exchange = null
    this.#listenTo(null)
    this.#hooks.onClose()
    exchange?.reject(
      this.#error ?? Object.assign(new Error('the other side closed the connection'), { code: 'ECONNRESET' }),
    )
  }
}

const EMPTY = Buffer.alloc(0)

function joined(head: string, body: Uint8Array): Buffer {
  const all = Buffer.allocUnsafe(head.length + body.byteLength)
  all.write(head, 0, 'latin1')
  all.set(body, head.length)
  return all
}

interface Answer extends PostResponse {
  /** The server wants the connection closed. */
  readonly last: boolean
}

/** `more`: not all is there; `odd`: no HTTP/1, or one that we do not read. */
function parseAnswer(all: Buffer): Answer | 'more' | 'odd' {
  const headEnd = all.indexOf('\r\n\r\n')
  if (headEnd < 0) {
    const begin = all.toString('latin1', 0, Math.min(7, all.byteLength))
    return all.byteLength > MAX_HEAD_BYTES || !'HTTP/1.'.startsWith(begin) ? 'odd' : 'more'
  }
  const text = all.toString('latin1', 0, headEnd)
  const raw = all.subarray(headEnd + 4)
  const length = /\r\ncontent-length:[ \t]*(\d+)/i.exec(text)?.[1]
  const bytes = length === undefined ? Number.NaN : Number(length)
  if (raw.byteLength < bytes) return bytes > MAX_BODY_BYTES ? 'odd' : 'more'
  const head = text.startsWith('HTTP/1.1 200 ') ? OK : parseHead(text)
  if (head === null) return 'odd'
  // 100 Continue and its like precede the answer.
  if (head.status < 200) return parseAnswer(raw)
  const last = head.version !== '1.1' || /\r\nconnection:[^\r]*\bclose\b/i.test(text)
  if (length !== undefined)
    return raw.byteLength === bytes ? { status: head.status, headers: head.headers, body: raw, last } : 'odd'
  if (!/\r\ntransfer-encoding:[ \t]*chunked/i.test(text)) return 'odd'
  const body = decodeChunks(raw)
  if (body === 'more') return raw.byteLength > MAX_BODY_BYTES ? 'odd' : 'more'
  return body === 'odd' ? 'odd' : { status: head.status, headers: head.headers, body, last }
}

const OK: { readonly status: number; readonly version: string; readonly headers: Record<string, string> } = {
  status: 200,
  version: '1.1',
  headers: {},
}
