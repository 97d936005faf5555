import { readFileSync, statSync } from 'node:fs'
import type { ConnectionOptions, SecureVersion } from 'node:tls'
import { SluiceError } from '../../../core/errors.ts'
import type { PostgresTarget, SslMode } from './url.ts'

/** One way to try a host: TLS or not. */
export type Encryption = 'tls' | 'plain'

/** In which order libpq tries them (PostgreSQL documentation, "SSL Mode Descriptions"); a Unix socket is never encrypted. */
export function encryptionsOf(mode: SslMode, host: string): readonly Encryption[] {
  if (host.startsWith('/') || mode === 'disable') return ['plain']
  if (mode === 'allow') return ['plain', 'tls']
  return mode === 'prefer' ? ['tls', 'plain'] : ['tls']
}

/**
 * Node's options for a target's TLS. `verify-full` checks the chain and the host name, `verify-ca` the chain, the others neither.
 *
 * @throws SLUICE_TLS where a file is missing, unreadable, or a key that others may read
 */
export function tlsOptions(target: PostgresTarget): ConnectionOptions {
  const { tls } = target
  const verify = tls.mode === 'verify-ca' || tls.mode === 'verify-full'
  const options: ConnectionOptions = { rejectUnauthorized: verify }
  if (tls.mode === 'verify-ca') options.checkServerIdentity = () => undefined
  if (verify && tls.rootCert !== null && tls.rootCert !== 'system') options.ca = readPem(tls.rootCert, 'sslrootcert')
  if (tls.cert !== null) {
    if (tls.key === null)
      throw new SluiceError('SLUICE_TLS', `sslcert ${tls.cert} needs its key`, { hint: 'name it by sslkey=FILE' })
    options.cert = readPem(tls.cert, 'sslcert')
    checkPrivate(tls.key)
    options.key = readPem(tls.key, 'sslkey')
    if (target.keyPassword !== null) options.passphrase = target.keyPassword
  }
  if (tls.minVersion !== null) options.minVersion = versionOf(tls.minVersion)
  if (tls.maxVersion !== null) options.maxVersion = versionOf(tls.maxVersion)
  return options
}

function readPem(path: string, parameter: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SluiceError('SLUICE_TLS', `${parameter} ${path} can't be read (${code})`, {
      cause: error,
      hint: `check ${parameter}`,
    })
  }
}

/** libpq's rule: a key is the user's own and 0600, or root's and 0640. */
function checkPrivate(path: string): void {
  if (process.platform === 'win32') return
  const info = statSync(path, { throwIfNoEntry: false })
  if (info === undefined) return
  const allowed = info.uid === 0 ? 0o027 : 0o077
  if ((info.mode & allowed) !== 0) {
    throw new SluiceError('SLUICE_TLS', `sslkey ${path} may be read by others`, { hint: `chmod 0600 ${path}` })
  }
}

function versionOf(text: string): SecureVersion {
  const versions: readonly SecureVersion[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']
  const found = versions.find((version) => version.toLowerCase() === text.toLowerCase())
  if (found === undefined) throw new SluiceError('SLUICE_USAGE', `${text} is none of ${versions.join(', ')}`)
  return found
}
