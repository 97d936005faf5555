import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePorts } from './free-port.ts'
import { s3Do } from './s3-request.ts'
import { makeFolder, removeFolder, startProcess, waitUntilReady } from './service-process.ts'
import { seaweedfsProgram } from './tools.mjs'
import { s3Address, s3Answers, type S3Server } from './versitygw.ts'

const START_MS = 60_000

/** SeaweedFS (master, volume, filer and S3 in one process): has versioning; about 10 s to be ready. */
export async function startSeaweedfs(): Promise<S3Server> {
  const folder = makeFolder('seaweedfs')
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  const ports = await freePorts(8)
  const [master = 0, masterGrpc = 0, volume = 0, volumeGrpc = 0, filer = 0, filerGrpc = 0, s3 = 0, s3Grpc = 0] = ports
  const address = s3Address(s3)
  const identity = {
    name: 'test',
    credentials: [{ accessKey: address.env.AWS_ACCESS_KEY_ID, secretKey: address.env.AWS_SECRET_ACCESS_KEY }],
    actions: ['Admin', 'Read', 'List', 'Tagging', 'Write'],
  }
  const configFile = join(folder, 's3.json')
  writeFileSync(configFile, JSON.stringify({ identities: [identity] }), { mode: 0o600 })
  const service = startProcess({
    command: seaweedfsProgram(),
    args: [
      'server',
      '-ip=127.0.0.1',
      '-ip.bind=127.0.0.1',
      `-dir=${dataDir}`,
      `-master.port=${master}`,
      `-master.port.grpc=${masterGrpc}`,
      '-master.volumeSizeLimitMB=128',
      `-volume.port=${volume}`,
      `-volume.port.grpc=${volumeGrpc}`,
      '-volume.max=0',
      '-filer',
      `-filer.port=${filer}`,
      `-filer.port.grpc=${filerGrpc}`,
      '-s3',
      `-s3.port=${s3}`,
      `-s3.port.grpc=${s3Grpc}`,
      `-s3.config=${configFile}`,
      '-s3.port.iceberg=0',
      '-s3.port.lance=0',
      '-s3.iam=false',
      '-s3.autoCreateBucket=false',
    ],
    cwd: folder,
    stopSignal: 'SIGTERM',
  })
  // It answers before its volume server has joined; only a stored object shows that it is ready.
  const stores = async (): Promise<boolean> => {
    if (!(await s3Answers(address))) return false
    try {
      await s3Do(address, { method: 'PUT', path: '/ready-probe' })
    } catch {
      // there from the last probe, or not yet possible: the object tells
    }
    return s3Do(address, { method: 'PUT', path: '/ready-probe/object', body: 'ready' }).then(
      () => true,
      () => false,
    )
  }
  await waitUntilReady(service, stores, START_MS)
  await s3Do(address, { method: 'DELETE', path: '/ready-probe/object' })
  await s3Do(address, { method: 'DELETE', path: '/ready-probe' })
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
