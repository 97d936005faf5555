import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttpPool } from '../../../src/aws/http-pool.ts'
import { makeCertificates, type Certificates } from '../../support/postgres-tls.ts'

describe('the pool over TLS', () => {
  const signal = new AbortController().signal
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
  const body = randomBytes(3_000_001)
  let certificates: Certificates
  let server: Server
  let origin = ''
  let connections = 0

  beforeAll(async () => {
    certificates = makeCertificates(folder)
    const { certFile, keyFile } = certificates
    server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (_, response) =>
      response.writeHead(200, { 'content-length': body.byteLength }).end(body),
    )
    server.on('secureConnection', () => (connections += 1))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `https://localhost:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true })
  })

  it.each([true, false])('reads all bytes and uses a connection again, bulk: %s', async (bulk) => {
    const before = connections
    const pool = createHttpPool({ tls: { ca: readFileSync(certificates.caFile) } })
    for (let i = 0; i < 3; i += 1) {
      const response = await pool.request({ method: 'GET', origin, path: '/', headers: {}, signal, bulk })
      const got: Uint8Array[] = []
      for await (const chunk of response.body) got.push(chunk)
      expect(Buffer.concat(got).equals(body)).toBe(true)
    }
    expect(connections - before).toBe(1)
    await pool.close()
  })

  it.each([true, false])('refuses a certificate of an authority that it does not know, bulk: %s', async (bulk) => {
    const pool = createHttpPool()
    await expect(pool.request({ method: 'GET', origin, path: '/', headers: {}, signal, bulk })).rejects.toMatchObject({
      code: 'SLUICE_TLS',
      hint: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    })
    await pool.close()
  })
})
