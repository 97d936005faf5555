import { mkdir } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { missingPackages, type StartedService } from './embedded.ts'

/** dynalite takes any key pair; the one that s3rver takes, so that both find what they want in one environment. */
const KEY = 'S3RVER'
/** A table takes half a second to be made otherwise. */
const TABLE_MS = 50

/** What is used of dynalite 4.0.0, which has no types. */
type Dynalite = (options: Readonly<Record<string, unknown>>) => Server

/** dynalite in this process, in memory unless `keep`. It never refuses a part of a batch: good for trying out. */
export async function startDynamodb(o: { readonly keep?: string | undefined }): Promise<StartedService> {
  const dynalite = loadDynalite()
  const folder = o.keep === undefined ? null : join(resolve(o.keep), 'dynamodb')
  if (folder !== null) await mkdir(folder, { recursive: true })
  const times = { createTableMs: TABLE_MS, deleteTableMs: TABLE_MS, updateTableMs: TABLE_MS }
  const server = dynalite({ ...times, ...(folder === null ? {} : { path: folder }) })
  await new Promise<void>((done, fail) => {
    server.once('error', fail)
    server.listen(0, '127.0.0.1', done)
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return {
    service: { name: 'DynamoDB', url },
    env: {
      AWS_ENDPOINT_URL_DYNAMODB: url,
      AWS_ACCESS_KEY_ID: KEY,
      AWS_SECRET_ACCESS_KEY: KEY,
      AWS_REGION: 'us-east-1',
    },
    async stop() {
      const closed = new Promise<void>((done) => server.close(() => done()))
      server.closeAllConnections()
      await closed
    },
  }
}

function loadDynalite(): Dynalite {
  try {
    return createRequire(import.meta.url)('dynalite') as Dynalite
  } catch (error) {
    throw missingPackages(['dynalite'], error)
  }
}
