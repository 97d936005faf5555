import type { Client, Connection } from 'pg'
import type { Socket } from 'node:net'
import { translatePgError } from '../errors.ts'

/** What of pg's connection is used; see connection.ts on leaning on pg 8's insides. */
interface CopyConnection extends Connection {
  readonly stream: Socket
}

/** Bytes of one CopyData message; and after how many the event loop is given a turn, so that the server's objection is heard early. */
const MESSAGE_BYTES = 512 * 1024
const TURN_EVERY_BYTES = 1024 * 1024

/**
 * One `COPY … FROM STDIN` on a connection, with our own framing (PostgreSQL documentation, "Message Formats": a byte d, a length of
 * four bytes that counts itself, the data). Hands buffers on as they are; they belong to it until `end` resolves.
 */
export class CopyIn {
  readonly #client: Client
  readonly #what: string
  readonly #started: Promise<void>
  readonly #done: Promise<number>
  #connection: CopyConnection | null = null
  #rows = 0
  #failure: Error | null = null
  #sinceTurn = 0
  #onDrained: (() => void) | null = null
  #resolveStarted: () => void = () => undefined
  #rejectStarted: (error: Error) => void = () => undefined
  #resolveDone: (rows: number) => void = () => undefined
  #rejectDone: (error: Error) => void = () => undefined

  private constructor(client: Client, what: string) {
    this.#client = client
    this.#what = what
    this.#started = new Promise((resolve, reject) => {
      this.#resolveStarted = resolve
      this.#rejectStarted = reject
    })
    this.#done = new Promise((resolve, reject) => {
      this.#resolveDone = resolve
      this.#rejectDone = reject
    })
    this.#started.catch(() => undefined)
    this.#done.catch(() => undefined)
  }

  /** Sends the statement and waits for the server to want data. `what` is for errors. @throws translated by SQLSTATE */
  static async start(client: Client, sql: string, what: string): Promise<CopyIn> {
    const copy = new CopyIn(client, what)
    client.query(copy.#submittable(sql))
    await copy.#settle(copy.#started)
    return copy
  }

  /** Resolves when the socket wants more. @throws what the server objected to, translated */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; at += MESSAGE_BYTES) {
      if (this.#failure !== null) throw translatePgError(this.#failure, { while: this.#what, rowsMoved: true })
      const piece = bytes.subarray(at, at + MESSAGE_BYTES)
      const taken = this.#send(piece)
      this.#sinceTurn += piece.byteLength
      if (!taken) await this.#drained()
      else if (this.#sinceTurn >= TURN_EVERY_BYTES) await new Promise((resolve) => setImmediate(resolve))
      if (!taken || this.#sinceTurn >= TURN_EVERY_BYTES) this.#sinceTurn = 0
    }
  }

  /** @returns rows that the server took. @throws what it objected to, translated */
  async end(): Promise<number> {
    if (this.#failure === null) this.#connection?.stream.write(Buffer.from([0x63, 0, 0, 0, 4]))
    return this.#settle(this.#done)
  }

  /** Makes the server forget the COPY; the transaction is void then. Never throws. */
  async fail(reason: string): Promise<void> {
    if (this.#failure === null) {
      const text = Buffer.from(`${reason}\0`)
      const head = Buffer.alloc(5)
      head[0] = 0x66
      head.writeUInt32BE(text.length + 4, 1)
      this.#connection?.stream.write(Buffer.concat([head, text]))
    }
    await this.#done.catch(() => undefined)
  }

  async #settle<T>(promise: Promise<T>): Promise<T> {
    try {
      return await promise
    } catch (error) {
      throw translatePgError(error, { while: this.#what, rowsMoved: true })
    }
  }

  #send(piece: Uint8Array): boolean {
    const stream = this.#connection?.stream
    if (stream === undefined) return true
    const head = Buffer.allocUnsafe(5)
    head[0] = 0x64
    head.writeUInt32BE(piece.byteLength + 4, 1)
    stream.cork()
    stream.write(head)
    const taken = stream.write(piece)
    stream.uncork()
    return taken
  }

  /** Ends on an error, too: the next write tells it. */
  #drained(): Promise<void> {
    const stream = this.#connection?.stream
    return new Promise((resolve) => {
      const done = (): void => {
        stream?.off('drain', done)
        stream?.off('close', done)
        this.#onDrained = null
        resolve()
      }
      this.#onDrained = done
      stream?.once('drain', done)
      stream?.once('close', done)
    })
  }

  /** What pg's client runs instead of a query of its own. */
  #submittable(sql: string): { submit(connection: Connection): void } {
    const fail = (error: Error): void => {
      this.#failure ??= error
      this.#rejectStarted(error)
      this.#rejectDone(error)
      this.#onDrained?.()
    }
    return Object.assign(
      {
        submit: (connection: Connection): void => {
          this.#connection = connection as CopyConnection
          connection.query(sql)
        },
      },
      {
        handleCopyInResponse: () => this.#resolveStarted(),
        handleError: fail,
        handleCommandComplete: (message: { text?: string }) => {
          this.#rows = Number(/^COPY (\d+)/.exec(message.text ?? '')?.[1] ?? 0)
        },
        handleReadyForQuery: () => this.#resolveDone(this.#rows),
      },
    )
  }

  /** The client it runs on, for a statement after it. */
  get client(): Client {
    return this.#client
  }
}
