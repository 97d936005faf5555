import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of what was made, all PEM. */
export interface Certificates {
  readonly caFile: string
  readonly certFile: string
  readonly keyFile: string
}

/** Makes an authority and a server certificate for localhost and 127.0.0.1 of it, valid for two days, by openssl. */
export function makeCertificates(folder: string): Certificates {
  const at = (name: string): string => join(folder, name)
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-days',
    '2',
    '-subj',
    '/CN=sluice test authority',
  )
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost')
  writeFileSync(at('server.ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
  const signing = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'server.ext']
  openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.crt', ...signing)
  return { caFile: at('ca.crt'), certFile: at('server.crt'), keyFile: at('server.key') }
}
