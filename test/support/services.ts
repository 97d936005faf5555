import { inject } from 'vitest'
import type { PostgresAddress } from './postgres.ts'
import type { S3Address } from './s3-request.ts'

export {
  freshDatabase,
  type PostgresAddress,
  type PostgresServer,
  psql,
  startPostgres13,
  startPostgres15,
  startPostgres18,
  startStandby15,
} from './postgres.ts'
export { freshBucket, type S3Address, s3Do, s3Request } from './s3-request.ts'
export { startSeaweedfs } from './seaweedfs.ts'
export { type S3Server, startVersitygw } from './versitygw.ts'

/** What is started once for a test run (test/support/services-setup.ts). Never stop, kill or reconfigure these: start your own. */
export interface SharedServices {
  /** PostgreSQL 15, without TLS. Make a `freshDatabase` per test file. */
  readonly postgres15: PostgresAddress
  /** PostgreSQL 18, without TLS. */
  readonly postgres18: PostgresAddress
  /** Strict as AWS. Make a `freshBucket` per test file. */
  readonly versitygw: S3Address
  /** A second implementation of S3. */
  readonly seaweedfs: S3Address
}

declare module 'vitest' {
  interface ProvidedContext {
    sharedServices: SharedServices
  }
}

/** The services of this test run; for the projects conformance, integration and e2e. */
export function sharedServices(): SharedServices {
  return inject('sharedServices')
}
