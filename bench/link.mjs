// Forwards TCP, each connection at its own rate in each direction, as a long link does: `node link.mjs PORT TARGET_PORT BYTES_PER_SECOND`.
import { connect, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

const [port, targetPort, rate] = process.argv.slice(2).map(Number)
const TICK_MS = 5

async function pump(from, to) {
  let allowedMs = performance.now()
  try {
    for await (const chunk of from) {
      allowedMs = Math.max(allowedMs, performance.now() - 2 * TICK_MS) + (chunk.byteLength / rate) * 1000
      const waitMs = allowedMs - performance.now()
      if (waitMs > TICK_MS) await delay(waitMs)
      if (!to.write(chunk)) await new Promise((resolve) => to.once('drain', resolve).once('close', resolve))
    }
    to.end()
  } catch {
    to.destroy()
  }
}

createServer((client) => {
  const server = connect({ port: targetPort, host: '127.0.0.1', highWaterMark: 64 * 1024 })
  for (const socket of [client, server]) socket.on('error', () => undefined)
  void pump(client, server)
  void pump(server, client)
}).listen(port, '127.0.0.1')
