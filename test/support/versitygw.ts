import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { freePort } from './free-port.ts'
import { type S3Address, s3Request } from './s3-request.ts'
import { makeFolder, removeFolder, startProcess, waitUntilReady } from './service-process.ts'
import { versitygwProgram } from './tools.mjs'

/** A running S3 service of a test's own. */
export interface S3Server extends S3Address {
  readonly host: string
  readonly port: number
  readonly pid: number
  readonly dataDir: string
  /** SIGKILL. */
  kill(): Promise<void>
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

const ACCESS_KEY = 'sluicetestaccess'
const SECRET_KEY = 'sluice-test-secret/with+signs'
const REGION = 'us-east-1'
const START_MS = 20_000

/** The address of a test service on this port. */
export function s3Address(port: number): S3Address & { host: string; port: number } {
  const endpoint = `http://127.0.0.1:${port}`
  return {
    endpoint,
    host: '127.0.0.1',
    port,
    env: {
      AWS_ACCESS_KEY_ID: ACCESS_KEY,
      AWS_SECRET_ACCESS_KEY: SECRET_KEY,
      AWS_REGION: REGION,
      AWS_ENDPOINT_URL_S3: endpoint,
    },
  }
}

/** Whether signed requests are answered. */
export async function s3Answers(address: S3Address): Promise<boolean> {
  return s3Request(address, { method: 'GET', path: '/' }).then(
    (answer) => answer.status === 200,
    () => false,
  )
}

/** versitygw over a folder: strict as AWS; ready in a fraction of a second. No versioning. Buckets are folders of `dataDir`. */
export async function startVersitygw(): Promise<S3Server> {
  const folder = makeFolder('versitygw')
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  const address = s3Address(await freePort())
  const service = startProcess({
    command: versitygwProgram(),
    args: [
      '--port',
      `${address.host}:${address.port}`,
      '--region',
      REGION,
      '--keep-alive',
      '--quiet',
      'posix',
      dataDir,
    ],
    env: { ROOT_ACCESS_KEY: ACCESS_KEY, ROOT_SECRET_KEY: SECRET_KEY },
    cwd: folder,
    stopSignal: 'SIGTERM',
  })
  await waitUntilReady(service, () => s3Answers(address), START_MS)
  return {
    ...address,
    pid: service.pid,
    dataDir,
    kill: () => service.kill(),
    stop: async () => {
      await service.stop()
      removeFolder(folder)
    },
  }
}
