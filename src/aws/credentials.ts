import { join } from 'node:path'
import { SluiceError } from '../core/errors.ts'
import type { Environment } from '../core/options.ts'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
  /** When they stop to work, in milliseconds since 1970; absent: never. */
  readonly expiresMs?: number | undefined
}

export interface CredentialSource {
  /**
   * Credentials good for at least five minutes where their maker gives such; null: requests go unsigned.
   *
   * @throws SLUICE_CREDENTIALS with a hint on the ways to give some; SLUICE_CREDENTIALS_EXPIRED where they can't be renewed
   */
  get(): Promise<AwsCredentials | null>
  /** The server called them expired: fetch others next time. */
  invalidate(): void
}

export interface CredentialOptions {
  readonly env: Environment
  /** `--profile`: then keys in the environment are not looked at, as the AWS CLI does. */
  readonly profile?: string | undefined
  /** False: `--no-sign-request`. */
  readonly signRequest?: boolean | undefined
  /** Replaces AWS's own chain of providers (profile, SSO, process, web identity, container, instance). */
  readonly load?: ((options: CredentialOptions) => Promise<AwsCredentials>) | undefined
}

/** Renewed this long before they expire, so that no request is signed with credentials about to end. */
const RENEW_BEFORE_MS = 5 * 60_000

const HINT =
  'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE or --profile (aws configure, aws sso login); --no-sign-request for public data'

/** Cached; at most one fetch at a time. */
export function createCredentialSource(options: CredentialOptions): CredentialSource {
  if (options.signRequest === false) return { get: () => Promise.resolve(null), invalidate: () => undefined }
  const load = options.load ?? loadByProviderChain
  let cached: AwsCredentials | null = null
  let pending: Promise<AwsCredentials> | null = null

  const fetchOnce = (): Promise<AwsCredentials> => {
    pending ??= fetchCredentials(options, load).finally(() => {
      pending = null
    })
    return pending
  }
  return {
    async get() {
      const expiresMs = cached?.expiresMs ?? Number.POSITIVE_INFINITY
      if (cached !== null && Date.now() < expiresMs - RENEW_BEFORE_MS) return cached
      try {
        cached = await fetchOnce()
      } catch (error) {
        // Renewing failed, but the old ones still work for a while: go on with them.
        if (cached === null || Date.now() >= expiresMs) throw error
      }
      return cached
    },
    invalidate() {
      cached = null
    },
  }
}

async function fetchCredentials(
  options: CredentialOptions,
  load: (options: CredentialOptions) => Promise<AwsCredentials>,
): Promise<AwsCredentials> {
  const { env, profile } = options
  if (profile === undefined) {
    const given = fromEnvironment(env)
    if (given !== null) return given
  }
  try {
    return await load(options)
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const of = profile === undefined ? '' : ` for the profile ${profile}`
    const detail = error instanceof Error ? error.message : String(error)
    const expired = /expired/i.test(detail)
    throw new SluiceError(
      expired ? 'SLUICE_CREDENTIALS_EXPIRED' : 'SLUICE_CREDENTIALS',
      `no AWS credentials${of}: ${detail}`,
      { hint: expired ? 'sign in again (aws sso login), then resume' : HINT, cause: error },
    )
  }
}

function fromEnvironment(env: Environment): AwsCredentials | null {
  const accessKeyId = env.AWS_ACCESS_KEY_ID ?? ''
  const secretAccessKey = env.AWS_SECRET_ACCESS_KEY ?? ''
  if (accessKeyId === '' && secretAccessKey === '') return null
  if (accessKeyId === '' || secretAccessKey === '') {
    const missing = accessKeyId === '' ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY'
    throw new SluiceError('SLUICE_CREDENTIALS', `${missing} is not set, though its partner is`, {
      hint: `set ${missing} too`,
    })
  }
  const sessionToken = env.AWS_SESSION_TOKEN === '' ? undefined : env.AWS_SESSION_TOKEN
  return { accessKeyId, secretAccessKey, sessionToken }
}

/** The chain warns on the console where process.env has keys and a profile is named: the library prints nothing. */
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/**
 * AWS's own chain. Loaded only here: 50 ms and more. Files come from the environment handed in; what else the chain looks
 * up (container, web identity, AWS_EC2_METADATA_DISABLED) it reads from the process's own environment. Not so keys: a profile that is
 * named, `default` too, keeps it from those (credential-provider-node, defaultProvider).
 */
async function loadByProviderChain(options: CredentialOptions): Promise<AwsCredentials> {
  const { env, profile } = options
  const { fromIni, fromNodeProviderChain } = await import('@aws-sdk/credential-providers')
  const files = awsFiles(env)
  const shared = { filepath: files.credentials, configFilepath: files.config, ignoreCache: true }
  const provider =
    profile === undefined
      ? fromNodeProviderChain({ ...shared, profile: env.AWS_PROFILE || 'default', logger: SILENT })
      : fromIni({ ...shared, profile, logger: SILENT })
  const found = await provider()
  return {
    accessKeyId: found.accessKeyId,
    secretAccessKey: found.secretAccessKey,
    sessionToken: found.sessionToken,
    expiresMs: found.expiration?.getTime(),
  }
}

/** Where AWS's two files lie: AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, else ~/.aws. */
export function awsFiles(env: Environment): { credentials: string; config: string } {
  const folder = join(env.HOME ?? env.USERPROFILE ?? '', '.aws')
  return {
    credentials: env.AWS_SHARED_CREDENTIALS_FILE ?? join(folder, 'credentials'),
    config: env.AWS_CONFIG_FILE ?? join(folder, 'config'),
  }
}
