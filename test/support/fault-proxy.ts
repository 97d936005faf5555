import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './free-port.ts'
import { type Direction, FaultedStream } from './fault-stream.ts'

/** One thing that goes wrong. By default once; it is disarmed when it has happened `times` times. */
export interface FaultRule {
  /** Whose bytes are watched. */
  readonly from: Direction
  /** Happens when this many bytes of that side have passed, counted per connection. */
  readonly afterBytes?: number
  /** Happens at these bytes (text as UTF-8), also where they are split over chunks. Useless under TLS. */
  readonly at?: string | Uint8Array
  /** Whether the bytes of `at` are forwarded first. Default after. */
  readonly when?: 'before' | 'after'
  /**
   * cut: RST to both sides. end: FIN to both sides. stall: nothing more passes in either direction, connections stay.
   * lose-answer: the next bytes of the other side are awaited, thrown away, and then cut: it was done, and nobody is told.
   */
  readonly action: 'cut' | 'end' | 'stall' | 'lose-answer'
  /** Default 1; Infinity for always. */
  readonly times?: number
  /** Only in the nth connection since the proxy began, from 1. Default any. */
  readonly connection?: number
}

/** What passed, since the proxy began. */
export interface FaultCounters {
  connections: number
  /** Connections open now. */
  open: number
  /** How often a rule happened. */
  faults: number
  bytesFromClient: number
  bytesFromServer: number
}

/** A TCP proxy with faults. */
export interface FaultProxy {
  readonly host: string
  readonly port: number
  readonly counters: Readonly<FaultCounters>
  /** Arms a rule, for open connections too. Returns what disarms it. */
  add(rule: FaultRule): () => void
  /** Disarms all rules, resumes what is stalled, and takes latency and rate away. */
  clear(): void
  /** New connections are refused (ECONNREFUSED) until `accept`; open ones go on. */
  refuse(): Promise<void>
  accept(): Promise<void>
  /** Milliseconds that each chunk is held back, per direction. */
  setLatency(ms: number): void
  /** Bytes a second, per direction and connection; null: no limit. */
  setRate(bytesPerSecond: number | null): void
  /** RST to every open connection; returns how many. */
  cutAll(): number
  /** Resolves when `done` is true of the counters; looked at whenever one changes. */
  until(done: (counters: Readonly<FaultCounters>) => boolean): Promise<void>
  stop(): Promise<void>
}

/** Where the proxy leads to. */
export interface FaultTarget {
  readonly host: string
  readonly port: number
}

/** A rule with what is left of it. */
export interface ArmedRule extends FaultRule {
  left: number
}

class Proxy implements FaultProxy {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly counters: FaultCounters = { connections: 0, open: 0, faults: 0, bytesFromClient: 0, bytesFromServer: 0 }
  readonly #target: FaultTarget
  readonly #rules = new Set<ArmedRule>()
  readonly #links = new Set<FaultedStream>()
  readonly #waiting = new Set<() => void>()
  #server: Server | null = null
  #latencyMs = 0
  #bytesPerSecond: number | null = null

  constructor(port: number, target: FaultTarget) {
    this.port = port
    this.#target = target
  }

  add(rule: FaultRule): () => void {
    const armed: ArmedRule = { ...rule, left: rule.times ?? 1 }
    this.#rules.add(armed)
    return () => this.#rules.delete(armed)
  }

  clear(): void {
    this.#rules.clear()
    this.#latencyMs = 0
    this.#bytesPerSecond = null
    for (const link of this.#links) link.unstall()
  }

  setLatency(ms: number): void {
    this.#latencyMs = ms
  }

  setRate(bytesPerSecond: number | null): void {
    this.#bytesPerSecond = bytesPerSecond
  }

  async accept(): Promise<void> {
    if (this.#server !== null) return
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#connect(client))
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.port, this.host, resolve)
    })
  }

  async refuse(): Promise<void> {
    // close() frees the port at once; its callback would wait for the open connections.
    this.#server?.close()
    this.#server = null
    await new Promise((resolve) => setImmediate(resolve))
  }

  cutAll(): number {
    const links = [...this.#links]
    for (const link of links) link.cut()
    return links.length
  }

  async until(done: (counters: Readonly<FaultCounters>) => boolean): Promise<void> {
    while (!done(this.counters)) {
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve)
      })
    }
  }

  async stop(): Promise<void> {
    await this.refuse()
    this.cutAll()
  }

  #changed(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const resolve of waiting) resolve()
  }

  #connect(client: Socket): void {
    this.counters.connections += 1
    this.counters.open += 1
    const number = this.counters.connections
    const server = createConnection({ ...this.#target, allowHalfOpen: true, noDelay: true })
    const link: FaultedStream = new FaultedStream(client, server, {
      rules: () => [...this.#rules].filter((rule) => rule.connection === undefined || rule.connection === number),
      pace: () => ({ latencyMs: this.#latencyMs, bytesPerSecond: this.#bytesPerSecond }),
      passed: (from, bytes) => {
        this.counters[from === 'client' ? 'bytesFromClient' : 'bytesFromServer'] += bytes
        this.#changed()
      },
      happened: (rule) => {
        rule.left -= 1
        if (rule.left <= 0) this.#rules.delete(rule)
        this.counters.faults += 1
        this.#changed()
      },
      closed: () => {
        if (!this.#links.delete(link)) return
        this.counters.open -= 1
        this.#changed()
      },
    })
    this.#links.add(link)
    this.#changed()
  }
}

/** Starts a proxy in front of a TCP service (PostgreSQL without TLS, say; for S3 see fault-proxy-http.ts). */
export async function startFaultProxy(target: FaultTarget): Promise<FaultProxy> {
  const proxy = new Proxy(await freePort(), target)
  await proxy.accept()
  return proxy
}
