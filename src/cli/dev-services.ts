import { SluiceError } from '../core/errors.ts'

/** A running service. */
interface Service {
  readonly name: string
  /** Without a secret: the password is in the environment. */
  readonly url: string
}

/** One service on its way up: what it adds to the environment, and how it ends. */
export interface StartedService {
  readonly service: Service
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

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

/** The bucket that is there from the beginning. */
export const DEV_BUCKET = 'sluice'

/**
 * Starts embedded services on free loopback ports. Their packages are optional and loaded here only.
 *
 * @throws SLUICE_MISSING_PACKAGE, SLUICE_LOCAL_IO, SLUICE_INTERRUPTED
 */
export async function startDev(o: DevOptions): Promise<DevServices> {
  const started: StartedService[] = []
  const stop = async (): Promise<void> => {
    for (const service of started.splice(0).reverse()) await service.stop()
  }
  try {
    if (o.s3) started.push(await (await import('./dev-s3.ts')).startS3(o))
    o.signal.throwIfAborted()
    if (o.postgres) started.push(await (await import('./dev-postgres.ts')).startPostgres(o))
    o.signal.throwIfAborted()
    if (o.dynamodb) started.push(await (await import('./dev-dynamodb.ts')).startDynamodb(o))
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

/** What to say where an optional package is not there. `version` is the one that sluice is tested with. */
export function missingPackage(name: string, version: string, cause: unknown): SluiceError {
  return new SluiceError('SLUICE_MISSING_PACKAGE', `the embedded services need the package ${name}`, {
    hint: `npm install ${name}@${version}`,
    cause,
  })
}
