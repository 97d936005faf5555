import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { ArmedRule } from './fault-proxy.ts'

export type Direction = 'client' | 'server'

/** What a connection asks of its proxy. */
export interface LinkOwner {
  rules(): readonly ArmedRule[]
  pace(): { readonly latencyMs: number; readonly bytesPerSecond: number | null }
  passed(from: Direction, bytes: number): void
  happened(rule: ArmedRule): void
  closed(): void
}

interface Side {
  readonly from: Direction
  readonly source: Socket
  readonly target: Socket
  /** Bytes forwarded. */
  forwarded: number
  /** The last bytes forwarded, as many as the longest pattern could need. */
  tail: Buffer
  /** The end of what came, held back since a pattern that must not pass may begin in it. */
  held: Buffer
}

interface Hit {
  readonly rule: ArmedRule
  /** How many bytes of the data pass before it happens. */
  readonly pass: number
}

/** How long bytes that may begin a `before` pattern are held back, before they pass all the same. */
const HOLD_MS = 30
const NOTHING = Buffer.alloc(0)

/** One connection through the proxy: two directions, each handled chunk by chunk, in order. */
export class FaultedStream {
  readonly #owner: LinkOwner
  readonly #sides: readonly Side[]
  #stalled: Promise<void> | null = null
  #unstall: () => void = () => undefined
  #losing: Direction | null = null
  #over = false

  constructor(client: Socket, server: Socket, owner: LinkOwner) {
    this.#owner = owner
    const side = (from: Direction, source: Socket, target: Socket): Side => {
      return { from, source, target, forwarded: 0, tail: NOTHING, held: NOTHING }
    }
    this.#sides = [side('client', client, server), side('server', server, client)]
    for (const one of this.#sides) {
      one.source.on('error', () => this.cut())
      one.source.on('close', () => this.#closed())
      void this.#pump(one).catch(() => this.cut())
    }
  }

  /** RST to both sides. */
  cut(): void {
    for (const side of this.#sides) side.source.resetAndDestroy()
    this.#closed()
  }

  /** Lets a stalled connection go on. */
  unstall(): void {
    this.#stalled = null
    this.#unstall()
  }

  #closed(): void {
    if (this.#sides.some((side) => !side.source.destroyed)) {
      // A side that is gone without a FIN having been passed on takes the other with it.
      if (this.#sides.some((side) => side.source.destroyed && !side.source.readableEnded)) this.cut()
      return
    }
    if (this.#over) return
    this.#over = true
    this.unstall()
    this.#owner.closed()
  }

  async #pump(side: Side): Promise<void> {
    let flush: NodeJS.Timeout | undefined
    for await (const chunk of side.source) {
      clearTimeout(flush)
      if (this.#stalled !== null) await this.#stalled
      if (this.#over) return
      if (this.#losing === side.from) {
        this.cut()
        return
      }
      await this.#pace(chunk.length)
      await this.#handle(side, Buffer.concat([side.held, chunk]))
      if (side.held.length > 0) flush = setTimeout(() => void this.#flush(side), HOLD_MS)
    }
    clearTimeout(flush)
    await this.#flush(side)
    side.target.end()
  }

  async #flush(side: Side): Promise<void> {
    const data = side.held
    side.held = NOTHING
    await this.#forward(side, data)
  }

  async #pace(bytes: number): Promise<void> {
    const { latencyMs, bytesPerSecond } = this.#owner.pace()
    const ms = latencyMs + (bytesPerSecond === null ? 0 : (bytes / bytesPerSecond) * 1000)
    if (ms > 0) await delay(ms)
  }

  async #handle(side: Side, data: Buffer): Promise<void> {
    side.held = NOTHING
    const hit = this.#firstHit(side, data)
    if (hit === null) {
      const hold = this.#holdBack(side, data)
      await this.#forward(side, data.subarray(0, data.length - hold))
      side.held = data.subarray(data.length - hold)
      return
    }
    await this.#forward(side, data.subarray(0, hit.pass))
    this.#owner.happened(hit.rule)
    await this.#act(side, hit, data.subarray(hit.pass))
  }

  async #act(side: Side, hit: Hit, rest: Buffer): Promise<void> {
    switch (hit.rule.action) {
      case 'cut':
        this.cut()
        return
      case 'end':
        for (const one of this.#sides) one.target.end()
        return
      case 'stall':
        this.#stalled = new Promise((resolve) => {
          this.#unstall = resolve
        })
        await this.#stalled
        if (!this.#over) await this.#handle(side, rest)
        return
      case 'lose-answer':
        this.#losing = side.from === 'client' ? 'server' : 'client'
        await this.#forward(side, rest)
        return
    }
  }

  #firstHit(side: Side, data: Buffer): Hit | null {
    let first: Hit | null = null
    for (const rule of this.#owner.rules()) {
      if (rule.from !== side.from) continue
      const pass = passBefore(rule, side, data)
      if (pass !== null && (first === null || pass < first.pass)) first = { rule, pass }
    }
    return first
  }

  /** Bytes at the end of the data that may be the beginning of a pattern that must not pass. */
  #holdBack(side: Side, data: Buffer): number {
    let hold = 0
    for (const rule of this.#owner.rules()) {
      if (rule.from !== side.from || rule.at === undefined || rule.when !== 'before') continue
      const pattern = Buffer.from(rule.at)
      for (let length = Math.min(pattern.length - 1, data.length); length > hold; length -= 1) {
        if (data.subarray(data.length - length).equals(pattern.subarray(0, length))) hold = length
      }
    }
    return hold
  }

  async #forward(side: Side, data: Buffer): Promise<void> {
    if (data.length === 0 || side.target.destroyed) return
    side.forwarded += data.length
    side.tail = Buffer.concat([side.tail, data]).subarray(-1024)
    this.#owner.passed(side.from, data.length)
    if (side.target.write(data)) return
    await drained(side.target)
  }
}

/** How many bytes of the data pass before the rule happens; null: it does not happen here. */
function passBefore(rule: ArmedRule, side: Side, data: Buffer): number | null {
  if (rule.afterBytes !== undefined) {
    const left = rule.afterBytes - side.forwarded
    return left <= data.length ? Math.max(0, left) : null
  }
  if (rule.at === undefined) return 0
  const pattern = Buffer.from(rule.at)
  // An `after` pattern may have begun in what was forwarded already.
  const before = rule.when === 'before' ? NOTHING : side.tail.subarray(-(pattern.length - 1) || side.tail.length)
  const index = Buffer.concat([before, data]).indexOf(pattern)
  if (index < 0) return null
  const inData = index - before.length
  return rule.when === 'before' ? inData : inData + pattern.length
}

/** Resolves when a stream takes more, or is gone. */
export function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done)
      stream.off('close', done)
      resolve()
    }
    stream.on('drain', done)
    stream.on('close', done)
  })
}
