import type { Socket } from 'node:net'
import type { Connection } from 'pg'
import { SluiceError } from '../../../core/errors.ts'
import type { PgConnection } from '../connection/connection.ts'
import { whileReading } from '../errors.ts'
import { readInPlace } from '../connection/plain-socket.ts'

/** What makes something of the rows that a COPY gives. `T`: a block of rows. */
export interface CopyConsumer<T> {
  /**
   * Takes whole CopyData messages from `at` on, each a byte `d`, four bytes of length (big-endian, itself counted) and the payload. Copies what it
   * keeps: the bytes are overwritten by the next. Gives where the first begins that it did not take: one of another kind, or cut.
   */
  take(bytes: Buffer, at: number): number
  /** No more rows come: the last block is finished. */
  finish(): void
  /** The oldest finished block. */
  shift(): T | undefined
  /** Finished blocks wait that are enough for now: the socket pauses. */
  readonly sated: boolean
  /** No more rows are wanted. */
  readonly done: boolean
  /** Rows were to be passed over that never came. */
  readonly short: boolean
}

interface CopyOutOptions<T> {
  readonly consumer: CopyConsumer<T>
  /** What is being done, for errors: `reading public.people`. */
  readonly what: string
  readonly signal: AbortSignal
}

const HEADER_BYTES = 5
const COPY_DATA = 0x64
const COPY_DONE = 0x63
const COPY_OUT_RESPONSE = 0x48
const COMMAND_COMPLETE = 0x43
const ERROR_RESPONSE = 0x45

/**
 * One `COPY … TO STDOUT`, read from pg's socket in place: pg makes an event and a copy of each row (measured: three times the CPU). pg's own listener gets
 * everything that is no row, and the socket back when the rows are over. Holds at most what its consumer keeps, one chunk and one message that is cut.
 */
export class CopyOut<T> {
  readonly #connection: PgConnection
  readonly #consumer: CopyConsumer<T>
  readonly #what: string
  readonly #signal: AbortSignal
  readonly #onData = (chunk: Buffer): void => this.#receive(chunk)
  readonly #onAbort = (): void => this.#fail(this.#signal.reason)
  #stream: Socket | null = null
  #pgData: ((chunk: Buffer) => void) | null = null
  /** Pieces of the message that is cut, and their bytes. */
  #pieces: Buffer[] = []
  #have = 0
  #failure: { readonly reason: unknown } | null = null
  #complete = false
  #wake: (() => void) | null = null

  constructor(connection: PgConnection, sql: string, o: CopyOutOptions<T>) {
    this.#connection = connection
    this.#consumer = o.consumer
    this.#what = o.what
    this.#signal = o.signal
    o.signal.addEventListener('abort', this.#onAbort, { once: true })
    if (o.signal.aborted) this.#fail(o.signal.reason)
    else connection.client.query(this.#submittable(sql))
  }

  /** Whether all rows have come, so that the connection is free for the next statement. */
  get complete(): boolean {
    return this.#complete
  }

  /** The next block; null behind the last. @throws what the server objected to, translated by SQLSTATE; the signal's reason */
  async next(): Promise<T | null> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure.reason
      const block = this.#consumer.shift()
      if (block !== undefined) {
        if (!this.#consumer.sated) this.#stream?.resume()
        return block
      }
      if (this.#complete || this.#consumer.done) return null
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = null
    }
  }

  /** Lets go of the signal, and of the connection where rows are still to come: it is destroyed, which ends the statement. Idempotent. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
    if (!this.#complete) this.#giveUp()
  }

  #giveUp(): void {
    this.#giveBack(null)
    const { connection } = this.#connection.client as unknown as { connection: { stream: Socket } }
    connection.stream.destroy()
  }

  #fail(reason: unknown): void {
    this.#failure ??= { reason }
    if (!this.#complete) this.#giveUp()
    this.#wake?.()
  }

  #failTranslated(error: Error): void {
    this.#giveBack(null)
    this.#failure ??= { reason: whileReading(error, this.#what) }
    this.#wake?.()
  }

  /** What pg's client runs instead of a query of its own. */
  #submittable(sql: string): { submit(connection: Connection): Error | undefined } {
    return Object.assign(
      {
        submit: (connection: Connection): Error | undefined => {
          const taken = this.#takeSocket(connection.stream as Socket)
          if (!taken) return new Error("pg's socket is not read as expected")
          connection.query(sql)
          return undefined
        },
      },
      {
        handleError: (error: Error) => this.#failTranslated(error),
        handleCommandComplete: () => undefined,
        handleReadyForQuery: () => {
          this.#complete = true
          this.#consumer.finish()
          this.#wake?.()
        },
      },
    )
  }

  #takeSocket(stream: Socket): boolean {
    const [pgData, ...others] = stream.listeners('data') as ((chunk: Buffer) => void)[]
    if (pgData === undefined || others.length > 0) return false
    this.#stream = stream
    this.#pgData = pgData
    readInPlace(stream, true)
    // In this order, for a stream whose last listener leaves stops flowing.
    stream.on('data', this.#onData)
    stream.off('data', pgData)
    return true
  }

  /** pg reads its socket again, from `rest` on. */
  #giveBack(rest: Buffer | null): void {
    const [stream, pgData] = [this.#stream, this.#pgData]
    if (stream === null || pgData === null) return
    this.#stream = null
    readInPlace(stream, false)
    stream.on('data', pgData)
    stream.off('data', this.#onData)
    stream.resume()
    this.#pieces = []
    if (rest !== null) pgData(Buffer.from(rest))
  }

  #receive(chunk: Buffer): void {
    try {
      this.#walk(chunk, this.#have === 0 ? 0 : this.#join(chunk))
    } catch (error) {
      this.#fail(error)
    }
    if (this.#consumer.done) this.#giveUp()
    else if (this.#consumer.sated) this.#stream?.pause()
    this.#wake?.()
  }

  #walk(chunk: Buffer, from: number): void {
    let at = from
    while (this.#stream !== null && !this.#consumer.done) {
      at = this.#consumer.take(chunk, at)
      if (at >= chunk.length || this.#consumer.done) return
      const code = chunk[at]
      // The rows are over, well or not: pg knows what to do with the rest.
      if (code === COMMAND_COMPLETE || code === ERROR_RESPONSE) return this.#giveBack(chunk.subarray(at))
      const end = chunk.length - at < HEADER_BYTES ? Infinity : at + 1 + chunk.readUInt32BE(at + 1)
      if (end > chunk.length) {
        this.#pieces = [Buffer.from(chunk.subarray(at))]
        this.#have = chunk.length - at
        return
      }
      this.#pass(chunk.subarray(at, end))
      at = end
    }
  }

  /** A message that is no row: a notice, a parameter's change; pg's own. */
  #pass(message: Buffer): void {
    const [code] = message
    if (code === COPY_DATA) throw new SluiceError('SLUICE_INTERNAL', `${this.#what}: a row was not taken`)
    if (code !== COPY_OUT_RESPONSE && code !== COPY_DONE) this.#pgData?.(Buffer.from(message))
  }

  /** Completes the message that was cut. Gives how much of the chunk went into it. */
  #join(chunk: Buffer): number {
    let at = 0
    if (this.#have < HEADER_BYTES) {
      at = Math.min(HEADER_BYTES - this.#have, chunk.length)
      this.#pieces = [Buffer.concat([...this.#pieces, chunk.subarray(0, at)])]
      this.#have += at
      if (this.#have < HEADER_BYTES) return chunk.length
    }
    const total = 1 + (this.#pieces[0]?.readUInt32BE(1) ?? 0)
    const piece = chunk.subarray(at, at + total - this.#have)
    this.#pieces.push(Buffer.from(piece))
    this.#have += piece.length
    if (this.#have < total) return chunk.length
    const message = Buffer.concat(this.#pieces, total)
    this.#pieces = []
    this.#have = 0
    if (message[0] !== COPY_DATA) this.#pass(message)
    else if (this.#consumer.take(message, 0) === 0 && !this.#consumer.done) this.#pass(message)
    return at + piece.length
  }
}
