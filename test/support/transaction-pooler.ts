import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { PostgresAddress } from './postgres.ts'

/** What stands between, as its clients see it. */
export interface TransactionPooler {
  /** `host:port` for a URL. */
  readonly address: string
  stop(): Promise<void>
}

/** `RESET ALL` as a message of the simple protocol. */
const RESET = Buffer.from([0x51, 0, 0, 0, 14, ...Buffer.from('RESET ALL\0')])
const BACKEND_KEY = 0x4b
const READY = 0x5a
const IDLE = 0x49

/**
 * A pooler of transactions (as pgbouncer and RDS Proxy are) in what its clients can see of it: the process of BackendKeyData is made up, and after
 * each transaction the session is another, without what was SET in it. For clients that ask for TLS first (sslmode=prefer); there is none.
 */
export async function startTransactionPooler(to: Pick<PostgresAddress, 'host' | 'port'>): Promise<TransactionPooler> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(to.port, to.host)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        sockets.delete(socket)
        for (const other of [client, upstream]) other.destroy()
      })
    }
    client.pipe(upstream)
    passAnswers(upstream, client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

/** Message by message (PostgreSQL documentation, "Message Formats"): type, length with itself, content. */
function passAnswers(upstream: Socket, client: Socket): void {
  let waiting = Buffer.alloc(0)
  /** ReadyForQuery that waits for the session to be reset. */
  let held: Buffer | null = null
  upstream.once('data', (answer: Buffer) => {
    // To SSLRequest: N, and no message.
    client.write(answer)
    upstream.on('data', pass)
  })
  const pass = (chunk: Buffer): void => {
    waiting = Buffer.concat([waiting, chunk])
    while (waiting.byteLength >= 5 && waiting.byteLength > waiting.readUInt32BE(1)) {
      const message = waiting.subarray(0, 1 + waiting.readUInt32BE(1))
      waiting = waiting.subarray(message.byteLength)
      const type = message[0]
      if (held !== null) {
        if (type !== READY) continue
        client.write(held)
        held = null
      } else if (type === READY && message[5] === IDLE) {
        held = Buffer.from(message)
        upstream.write(RESET)
      } else {
        if (type === BACKEND_KEY) message.writeInt32BE(message.readInt32BE(5) ^ 0x40_00_00_00, 5)
        client.write(Buffer.from(message))
      }
    }
  }
}
