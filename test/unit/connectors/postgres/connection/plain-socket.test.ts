import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { plainSocket, readInPlace } from '../../../../../src/connectors/postgres/connection/plain-socket.ts'

let server: Server
let socket: Socket
let peer: Socket

beforeEach(async () => {
  server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  socket = plainSocket()
  socket.connect((server.address() as AddressInfo).port, '127.0.0.1')
  peer = (await accepted)[0]
})
afterEach(() => {
  socket.destroy()
  peer.destroy()
  server.close()
})

/** What came, each chunk as it is when its listener returns, and as it is at the end. */
async function receive(sent: Buffer): Promise<{ total: number; atOnce: Buffer; later: Buffer }> {
  const chunks: Buffer[] = []
  const copies: Buffer[] = []
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    copies.push(Buffer.from(chunk))
  })
  peer.end(sent)
  await once(socket, 'end')
  return { total: chunks.length, atOnce: Buffer.concat(copies), later: Buffer.concat(chunks) }
}

const LONG = Buffer.from(Array.from({ length: 400_000 }, (_, i) => (i * 31) % 251))

describe('a socket without encryption', () => {
  it('gives chunks that stay as they are', async () => {
    const { total, later } = await receive(LONG)
    expect(total).toBeGreaterThan(5)
    expect(later.equals(LONG)).toBe(true)
  })

  it('gives chunks in place where that is asked for: right when they come, overwritten later', async () => {
    readInPlace(socket, true)
    const { atOnce, later } = await receive(LONG)
    expect(atOnce.equals(LONG)).toBe(true)
    expect(later.equals(LONG)).toBe(false)
  })

  it('may be paused and resumed, and tells of its end', async () => {
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      socket.pause()
      setTimeout(() => socket.resume(), 1)
    })
    peer.end(LONG)
    await once(socket, 'end')
    expect(bytes).toBe(LONG.length)
  })

  it('does not read while it is paused', async () => {
    const first = once(socket, 'data')
    peer.write('first')
    await first
    socket.pause()
    let more = 0
    socket.on('data', () => (more += 1))
    peer.write('second')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(more).toBe(0)
    const second = once(socket, 'data') as Promise<[Buffer]>
    socket.resume()
    expect(String((await second)[0])).toBe('second')
  })
})
