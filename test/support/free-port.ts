import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Ports below the range from which Linux (32768, ip(7)) and macOS (49152) take those of outgoing connections: a port that is
 * free now is not taken by one of these before the service listens.
 */
const LOWEST = 12_000
const HIGHEST = 32_767
const TRIES = 200

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Different ports of 127.0.0.1 that are free now. */
export async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>()
  for (let tries = 0; tries < TRIES && found.size < count; tries += 1) {
    const port = randomInt(LOWEST, HIGHEST + 1)
    if (!found.has(port) && (await isFree(port))) found.add(port)
  }
  if (found.size < count) throw new Error(`no ${count} free ports between ${LOWEST} and ${HIGHEST}`)
  return [...found]
}

/** One port of 127.0.0.1 that is free now. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}
