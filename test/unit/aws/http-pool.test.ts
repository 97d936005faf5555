import { randomBytes } from 'node:crypto'
import { createServer as createHttpServer, type RequestListener, type Server as HttpServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createHttpPool,
  retryAfterMs,
  type HttpPool,
  type HttpPoolOptions,
  type HttpRequest,
} from '../../../src/aws/http-pool.ts'
import type { SluiceError } from '../../../src/core/errors.ts'

const never = new AbortController().signal
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

async function listening(server: Server | HttpServer): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function tcp(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = []
  const server = createTcpServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return listening(server)
}

async function http(listener: RequestListener): Promise<{ origin: string; connections: () => number }> {
  const server = createHttpServer(listener)
  let connections = 0
  server.on('connection', () => (connections += 1))
  cleanups.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { origin: await listening(server), connections: () => connections }
}

function pool(options: HttpPoolOptions = {}): HttpPool {
  const made = createHttpPool(options)
  cleanups.push(() => made.close())
  return made
}

let bulk = false
function get(origin: string, over: Partial<HttpRequest> = {}): HttpRequest {
  return { method: 'GET', origin, path: '/x?y=1', headers: {}, signal: never, bulk, ...over }
}

async function failure(promise: Promise<unknown>): Promise<SluiceError> {
  const error = await promise.then(
    () => null,
    (thrown: SluiceError) => thrown,
  )
  if (error === null) throw new Error('nothing failed')
  return error
}

describe.each([false, true])('the pool, bulk: %s', (isBulk) => {
  beforeEach(() => {
    bulk = isBulk
  })

  it('sends and receives, and uses a connection again', async () => {
    const { origin, connections } = await http((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => response.writeHead(201, { 'x-path': request.url }).end(Buffer.concat(chunks)))
    })
    const one = pool()
    expect(one.hasAnswered(origin)).toBe(false)
    for (let i = 0; i < 3; i += 1) {
      const body = [Buffer.from('ab'), Buffer.alloc(0), Buffer.alloc(1_000_000, 'c')]
      const response = await one.request(get(origin, { method: 'PUT', body }))
      expect([response.status, response.headers['x-path']]).toEqual([201, '/x?y=1'])
      expect(await response.body.text(5_000_000)).toBe(`ab${'c'.repeat(1_000_000)}`)
    }
    expect(one.hasAnswered(origin)).toBe(true)
    expect(connections()).toBe(1)
  })

  it('sends no path but the one it was given', async () => {
    const { origin } = await http((request, response) => response.end(request.url))
    const response = await pool().request(get(origin, { path: '/b/a//b/./c/../%2F' }))
    expect(await response.body.text()).toBe('/b/a//b/./c/../%2F')
  })

  it('opens no more connections than it may', async () => {
    const { origin, connections } = await http((_, response) => void setTimeout(() => response.end('x'), 10))
    const one = pool({ maxConnections: 2 })
    await Promise.all(Array.from({ length: 8 }, async () => (await one.request(get(origin))).body.text()))
    expect(connections()).toBe(2)
  })

  it('takes an answer that comes before all is sent', async () => {
    const { origin } = await http((_, response) => response.writeHead(403).end('no'))
    const response = await pool().request(get(origin, { method: 'PUT', body: [Buffer.alloc(200_000)] }))
    expect([response.status, await response.body.text()]).toEqual([403, 'no'])
  })

  it('holds the server up where the consumer does not read', async () => {
    const total = 100 * 1024 * 1024
    let sent = 0
    const { origin } = await http((_, response) => {
      const chunk = Buffer.alloc(1024 * 1024)
      response.writeHead(200, { 'content-length': total })
      const more = (): void => {
        while (sent < total) {
          sent += chunk.byteLength
          if (!response.write(chunk)) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    })
    const response = await pool({ stallTimeoutMs: 100 }).request(get(origin))
    // Longer than the time for a stall: our own pause is none.
    await delay(400)
    expect(sent).toBeLessThan(total / 2)
    let bytes = 0
    for await (const chunk of response.body) bytes += chunk.byteLength
    expect(bytes).toBe(total)
  })

  it('calls silence after the request, in the body and while sending a stall', async () => {
    const one = pool({ stallTimeoutMs: 150 })
    const silent = await tcp(() => undefined)
    expect(await failure(one.request(get(silent)))).toMatchObject({
      code: 'SLUICE_NETWORK',
      message: expect.stringContaining('stalled'),
    })
    const half = await tcp((socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'))
    const response = await one.request(get(half))
    expect((await failure(response.body.text())).message).toContain('stalled')
    const deaf = await tcp((socket) => void socket.pause())
    const body = [Buffer.alloc(64 * 1024 * 1024)]
    expect((await failure(one.request(get(deaf, { method: 'PUT', body })))).message).toContain('stalled')
  })

  it('calls a cut a broken connection, before and in the body', async () => {
    const before = await tcp((socket) => void socket.once('data', () => socket.destroy()))
    expect((await failure(pool().request(get(before)))).code).toBe('SLUICE_NETWORK')
    const inside = await tcp((socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'))
    const response = await pool().request(get(inside))
    expect((await failure(response.body.text())).code).toBe('SLUICE_NETWORK')
  })

  it('tells what is no HTTP, no TLS, no host and nobody at home', async () => {
    const garbage = await tcp((socket) => void socket.end('SSH-2.0-OpenSSH_9\r\n'))
    expect((await failure(pool().request(get(garbage)))).code).toBe('SLUICE_PROTOCOL')
    const { origin } = await http((_, response) => response.end())
    expect((await failure(pool().request(get(origin.replace('http:', 'https:'))))).code).toBe('SLUICE_TLS')
    expect((await failure(pool().request(get('http://127.0.0.1:1')))).code).toBe('SLUICE_UNREACHABLE')
    const nowhere = await failure(pool().request(get('http://no-such-host.invalid')))
    expect(['SLUICE_NOT_FOUND', 'SLUICE_UNREACHABLE']).toContain(nowhere.code)
  })

  it('waits for a connection, TLS included, no longer than it may', async () => {
    const mute = await tcp(() => undefined)
    const error = await failure(pool({ connectTimeoutMs: 150 }).request(get(mute.replace('http:', 'https:'))))
    expect(error).toMatchObject({ code: 'SLUICE_UNREACHABLE', message: expect.stringContaining('0.15 s') })
  })

  it('stops at a signal: waiting for a place, for the head, in the body', async () => {
    const { origin } = await http((request, response) => {
      if (request.url === '/body') response.writeHead(200).write('x')
    })
    const one = pool({ maxConnections: 1 })
    const stop = new AbortController()
    const first = failure(one.request(get(origin, { signal: stop.signal })))
    const queued = failure(one.request(get(origin, { signal: stop.signal })))
    await delay(50)
    const reason = new Error('stop')
    stop.abort(reason)
    expect(await Promise.all([first, queued])).toEqual([reason, reason])
    expect(await failure(one.request(get(origin, { signal: stop.signal })))).toBe(reason)

    const later = new AbortController()
    const response = await one.request(get(origin, { path: '/body', signal: later.signal }))
    const reading = failure(response.body.text())
    later.abort(reason)
    expect(await reading).toBe(reason)
  })

  it('reads chunks, whole and refused', async () => {
    const { origin } = await http((request, response) => {
      response.writeHead(request.url === '/no' ? 503 : 200)
      response.write('first ')
      setTimeout(() => response.end('second'), 20)
    })
    for (const [path, status] of [
      ['/yes', 200],
      ['/no', 503],
      ['/no', 503],
    ] as const) {
      const response = await pool().request(get(origin, { path }))
      expect([response.status, await response.body.text()]).toEqual([status, 'first second'])
    }
  })

  it('reads every byte whatever the pauses', async () => {
    const body = randomBytes(3_000_001)
    const { origin, connections } = await http((_, response) =>
      response.writeHead(200, { 'content-length': body.byteLength }).end(body),
    )
    const one = pool({ maxConnections: 3 })
    await Promise.all(
      Array.from({ length: 9 }, async (_, i) => {
        const got: Uint8Array[] = []
        const response = await one.request(get(origin))
        for await (const chunk of response.body) {
          got.push(chunk)
          if (got.length % (i + 1) === 0) await delay(1)
        }
        expect(Buffer.concat(got).equals(body)).toBe(true)
      }),
    )
    expect(connections()).toBe(3)
  })

  it('closes a connection whose body is left early, and goes on with another', async () => {
    const { origin, connections } = await http((_, response) => response.end(Buffer.alloc(20_000_000)))
    const one = pool({ maxConnections: 1 })
    for (let i = 0; i < 2; i += 1) {
      const response = await one.request(get(origin))
      for await (const chunk of response.body) {
        expect(chunk.byteLength).toBeGreaterThan(0)
        break
      }
    }
    expect(connections()).toBe(2)
  })
})

describe('retryAfterMs', () => {
  const now = Date.UTC(2026, 0, 1)
  it.each([
    ['7', 7000],
    [' 0 ', 0],
    ['999999', 3_600_000],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    ['Wed, 31 Dec 2025 23:59:30 GMT', undefined],
    ['soon', undefined],
    ['-1', undefined],
    [undefined, undefined],
  ])('of %s is %s', (header, ms) => {
    expect(retryAfterMs(header, now)).toBe(ms)
  })
})
