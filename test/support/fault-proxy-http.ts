import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { drained } from './fault-stream.ts'
import { freePort } from './free-port.ts'
import type { S3Address } from './s3-request.ts'

/** One thing that goes wrong with a request. It happens to `times` requests that match, beginning with the nth. */
export interface HttpFaultRule {
  readonly method?: string
  /** Tested against path and query as they are on the wire. */
  readonly url?: RegExp
  /** The first request that it happens to, counted from 1 among those that match. Default 1. */
  readonly nth?: number
  /** Default 1; Infinity for all from the nth on. */
  readonly times?: number
  /** What the client gets. `cut`: a reset before any answer; `stall`: no answer until the proxy stops. */
  readonly answer:
    | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
    | 'cut'
    | 'stall'
    /** The service's own answer, its body cut off after so many bytes. */
    | { readonly cutBodyAfter: number }
    /** The service's own answer, later. */
    | { readonly delayMs: number }
  /** Whether the service gets the request first: what it did stands, and its answer is lost. Default false. */
  readonly forward?: boolean
}

/** What went through. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Of what the client got; 0 where it got none. */
  readonly status: number
  readonly bodyBytes: number
  /** Whether a rule happened to it. */
  readonly faulted: boolean
}

/** An HTTP proxy with faults in front of an S3 service. Signatures stay valid, since the Host header is passed on as it is. */
export interface HttpFaultProxy extends S3Address {
  readonly host: string
  readonly port: number
  /** In the order in which they ended. */
  readonly requests: readonly SeenRequest[]
  /** Most requests that were under way at the same time. */
  readonly mostInFlight: number
  readonly connections: number
  add(rule: HttpFaultRule): () => void
  clear(): void
  stop(): Promise<void>
}

interface ArmedHttpRule extends HttpFaultRule {
  matched: number
  left: number
}

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'expect', 'upgrade', 'te', 'trailer'])

class HttpProxy implements HttpFaultProxy {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly endpoint: string
  readonly env: S3Address['env']
  readonly requests: SeenRequest[] = []
  mostInFlight = 0
  connections = 0
  readonly #target: URL
  readonly #rules = new Set<ArmedHttpRule>()
  readonly #stopped = new AbortController()
  readonly #server = createServer((incoming, answer) => {
    void this.#serve(incoming, answer)
  })
  #inFlight = 0

  constructor(port: number, target: S3Address) {
    this.port = port
    this.endpoint = `http://127.0.0.1:${port}`
    this.env = { ...target.env, AWS_ENDPOINT_URL_S3: this.endpoint }
    this.#target = new URL(target.endpoint)
    this.#server.on('connection', () => {
      this.connections += 1
    })
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.port, this.host, resolve)
    })
  }

  add(rule: HttpFaultRule): () => void {
    const armed: ArmedHttpRule = { ...rule, matched: 0, left: rule.times ?? 1 }
    this.#rules.add(armed)
    return () => this.#rules.delete(armed)
  }

  clear(): void {
    this.#rules.clear()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #ruleFor(incoming: IncomingMessage): ArmedHttpRule | null {
    for (const rule of this.#rules) {
      if (rule.method !== undefined && rule.method !== incoming.method) continue
      if (rule.url !== undefined && !rule.url.test(incoming.url ?? '')) continue
      rule.matched += 1
      if (rule.matched < (rule.nth ?? 1) || rule.left <= 0) continue
      rule.left -= 1
      return rule
    }
    return null
  }

  async #serve(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    this.#inFlight += 1
    this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight)
    const rule = this.#ruleFor(incoming)
    let status = 0
    let bodyBytes = 0
    incoming.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length
    })
    incoming.pause()
    try {
      status = rule === null ? await this.#pass(incoming, answer, null) : await this.#fail(incoming, answer, rule)
    } catch {
      answer.destroy()
    } finally {
      this.#inFlight -= 1
      const { method = '', url = '', headers } = incoming
      this.requests.push({ method, url, headers, status, bodyBytes, faulted: rule !== null })
    }
  }

  async #fail(incoming: IncomingMessage, answer: ServerResponse, rule: ArmedHttpRule): Promise<number> {
    const wanted = rule.answer
    if (typeof wanted === 'object' && 'cutBodyAfter' in wanted) {
      return this.#pass(incoming, answer, wanted.cutBodyAfter)
    }
    if (typeof wanted === 'object' && 'delayMs' in wanted) {
      await delay(wanted.delayMs, undefined, { signal: this.#stopped.signal })
      return this.#pass(incoming, answer, null)
    }
    if (rule.forward === true) await this.#swallow(incoming)
    else if (wanted !== 'cut') await drain(incoming)
    if (wanted === 'cut') {
      incoming.socket.resetAndDestroy()
      return 0
    }
    if (wanted === 'stall') {
      await new Promise((resolve) => this.#stopped.signal.addEventListener('abort', resolve, { once: true }))
      return 0
    }
    answer.writeHead(wanted.status, { ...wanted.headers })
    answer.end(incoming.method === 'HEAD' ? '' : (wanted.body ?? ''))
    return wanted.status
  }

  #forward(incoming: IncomingMessage): Promise<IncomingMessage> {
    const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !HOP_BY_HOP.has(name)))
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: this.#target.hostname,
          port: this.#target.port,
          method: incoming.method,
          path: incoming.url,
          headers,
          agent: false,
          setHost: false,
        },
        resolve,
      )
      sent.on('error', reject)
      incoming.on('error', () => sent.destroy())
      incoming.pipe(sent)
    })
  }

  /** Lets the service do it, and throws its answer away. */
  async #swallow(incoming: IncomingMessage): Promise<void> {
    await drain(await this.#forward(incoming))
  }

  async #pass(incoming: IncomingMessage, answer: ServerResponse, cutAfter: number | null): Promise<number> {
    const got = await this.#forward(incoming)
    const status = got.statusCode ?? 502
    const headers = Object.entries(got.headers).filter(([name]) => !HOP_BY_HOP.has(name))
    answer.writeHead(status, Object.fromEntries(headers))
    answer.on('close', () => got.destroy())
    let left = cutAfter ?? Infinity
    for await (const chunk of got as AsyncIterable<Buffer>) {
      const piece = chunk.subarray(0, Math.min(left, chunk.length))
      left -= piece.length
      if (!answer.write(piece) && !answer.destroyed) await drained(answer)
      if (left > 0) continue
      // Let the piece out before the reset, which would throw away what the socket still holds.
      await new Promise((resolve) => setTimeout(resolve, 20))
      incoming.socket.resetAndDestroy()
      return status
    }
    answer.end()
    return status
  }
}

async function drain(stream: IncomingMessage): Promise<void> {
  stream.resume()
  await new Promise((resolve) => stream.once('end', resolve).once('close', resolve))
}

/** Starts a proxy in front of an S3 service; it has the service's keys and an endpoint of its own. */
export async function startHttpFaultProxy(target: S3Address): Promise<HttpFaultProxy> {
  const proxy = new HttpProxy(await freePort(), target)
  await proxy.listen()
  return proxy
}
