import { SluiceError } from '../../core/errors.ts'

/** The bucket that is there from the beginning. */
export const DEV_BUCKET = 'sluice'

/** A running service. */
export interface Service {
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

/** What to say where an optional package is not there. `version` is the one that sluice is tested with. */
export function missingPackage(name: string, version: string, cause: unknown): SluiceError {
  return new SluiceError('SLUICE_MISSING_PACKAGE', `the embedded services need the package ${name}`, {
    hint: `npm install ${name}@${version}`,
    cause,
  })
}
