import type { TestProject } from 'vitest/node'
import { type PostgresAddress, startPostgres15, startPostgres18 } from './postgres.ts'
import { startSeaweedfs } from './seaweedfs.ts'
import type { S3Address } from './s3-request.ts'
import type { SharedServices } from './services.ts'
import { removeStaleFolders } from './service-process.ts'
import { startVersitygw } from './versitygw.ts'

const postgresAddress = (s: PostgresAddress): PostgresAddress => ({
  url: s.url,
  host: s.host,
  port: s.port,
  user: s.user,
  password: s.password,
  database: s.database,
  env: s.env,
  caFile: s.caFile,
})

const storeAddress = (s: S3Address): S3Address => ({ endpoint: s.endpoint, env: s.env })

interface Running {
  readonly shared: SharedServices
  stop(): Promise<void>
}

/** Each project has its own copy of this module, but all run in one process: one set of services serves them all. */
interface Holder {
  sluiceTestServices?: { readonly running: Promise<Running>; users: number }
}
const holder: typeof globalThis & Holder = globalThis

/** vitest's global setup of every project that needs services: starts them once, and returns what ends them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const entry = (holder.sluiceTestServices ??= { running: startAll(), users: 0 })
  entry.users += 1
  const running = await entry.running
  project.provide('sharedServices', running.shared)
  return async () => {
    entry.users -= 1
    if (entry.users > 0) return
    delete holder.sluiceTestServices
    await running.stop()
  }
}

async function startAll(): Promise<Running> {
  removeStaleFolders()
  const started = await Promise.allSettled([startPostgres15(), startPostgres18(), startVersitygw(), startSeaweedfs()])
  const stop = async (): Promise<void> => {
    await Promise.allSettled(started.flatMap((result) => (result.status === 'fulfilled' ? [result.value.stop()] : [])))
  }
  const [postgres15, postgres18, versitygw, seaweedfs] = started
  if (
    postgres15.status === 'rejected' ||
    postgres18.status === 'rejected' ||
    versitygw.status === 'rejected' ||
    seaweedfs.status === 'rejected'
  ) {
    await stop()
    const reasons: unknown[] = started.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    throw new AggregateError(reasons, `services did not start: ${reasons.map(String).join('; ')}`)
  }
  const shared = {
    postgres15: postgresAddress(postgres15.value),
    postgres18: postgresAddress(postgres18.value),
    versitygw: storeAddress(versitygw.value),
    seaweedfs: storeAddress(seaweedfs.value),
  }
  return { shared, stop }
}
