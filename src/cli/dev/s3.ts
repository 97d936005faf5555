import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DEV_BUCKET, missingPackages, type StartedService } from './embedded.ts'

/** The one key pair that s3rver knows (its README). */
const KEY = 'S3RVER'

/** What is used of s3rver 3.7.1, which has no types. */
interface S3rver {
  run(): Promise<AddressInfo>
  readonly httpServer: Server
}
type S3rverClass = new (options: Readonly<Record<string, unknown>>) => S3rver

/** s3rver in this process, with one bucket. It lacks aborting and listing of uploads: good for trying out, not for more. */
export async function startS3(o: { readonly keep?: string | undefined }): Promise<StartedService> {
  const Server = loadS3rver()
  const directory = o.keep === undefined ? await mkdtemp(join(tmpdir(), 'sluice-s3-')) : join(resolve(o.keep), 's3')
  await mkdir(directory, { recursive: true })
  const server = new Server({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    vhostBuckets: false,
    configureBuckets: [{ name: DEV_BUCKET }],
  })
  const { port } = await server.run()
  return {
    service: { name: 'S3', url: `http://127.0.0.1:${port}` },
    env: {
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
      AWS_ACCESS_KEY_ID: KEY,
      AWS_SECRET_ACCESS_KEY: KEY,
      AWS_REGION: 'us-east-1',
    },
    async stop() {
      const closed = new Promise<void>((done) => server.httpServer.close(() => done()))
      server.httpServer.closeAllConnections()
      await closed
      if (o.keep === undefined) await rm(directory, { recursive: true, force: true })
    },
  }
}

function loadS3rver(): S3rverClass {
  try {
    return createRequire(import.meta.url)('s3rver') as S3rverClass
  } catch (error) {
    throw missingPackages(['s3rver'], error)
  }
}
