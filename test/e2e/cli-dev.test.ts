import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { startCli } from './cli-process.ts'

/** Whether something listens. */
async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const open = await new Promise<boolean>((resolve) =>
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
  )
  socket.destroy()
  return open
}

describe('dev', () => {
  it('starts all services, says where they are, and stops them on a signal', async () => {
    const child = startCli(['dev', '--json'])
    let stdout = ''
    child.stdout.setEncoding('utf8')
    for await (const text of child.stdout) {
      stdout += String(text)
      if (stdout.includes('\n')) break
    }
    const { services, env } = JSON.parse(stdout) as {
      services: { name: string; url: string }[]
      env: Record<string, string>
    }
    const ports = services.map(({ url }) => Number(new URL(url).port))
    try {
      expect(services.map(({ name }) => name)).toEqual(['S3', 'PostgreSQL 18', 'DynamoDB'])
      expect(services.map(({ url }) => url).join(' ')).not.toContain(env['PGPASSWORD'])
      for (const port of ports) expect(await listens(port)).toBe(true)
      expect((await fetch(`${env['AWS_ENDPOINT_URL_S3'] ?? ''}/sluice`)).status).toBeLessThan(500)
    } finally {
      // Twice in a row is what timeout(1) and npm make of one: it counts once.
      child.kill('SIGTERM')
      child.kill('SIGTERM')
    }
    const [code] = (await once(child, 'close')) as [number | null]
    expect(code).toBe(0)
    for (const port of ports) expect(await listens(port)).toBe(false)
  })
})
