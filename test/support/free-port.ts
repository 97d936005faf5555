import { createServer } from 'node:net'

/** Ports of 127.0.0.1 that are free now. All are held until all are known, so that no two are the same. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  try {
    return await Promise.all(
      servers.map(
        (server) =>
          new Promise<number>((resolve, reject) => {
            server.once('error', reject)
            server.listen(0, '127.0.0.1', () => {
              const address = server.address()
              if (address === null || typeof address === 'string') reject(new Error('no TCP address'))
              else resolve(address.port)
            })
          }),
      ),
    )
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

/** One port of 127.0.0.1 that is free now. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1)
  if (port === undefined) throw new Error('no free port')
  return port
}
