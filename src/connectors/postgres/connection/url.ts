import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { SluiceError } from '../../../core/errors.ts'
import type { Environment } from '../../../core/options.ts'
import { nearest } from '../nearest.ts'
import { readService } from './service-file.ts'
import { parseTableReference, type TableReference } from '../table/table-reference.ts'
import { checkParameterNames, environmentParameters } from './url-parameters.ts'

export const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
export type SslMode = (typeof SSL_MODES)[number]

const SESSION_ATTRIBUTES = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const
export type SessionAttributes = (typeof SESSION_ATTRIBUTES)[number]

export interface PostgresHost {
  /** A name, an address, or the folder of a Unix socket (begins with `/`). What certificates and password files are checked against. */
  readonly host: string
  /** The address to connect to where it is given apart (hostaddr); else null. */
  readonly address: string | null
  readonly port: number
}

export interface TlsSettings {
  readonly mode: SslMode
  /** Files; null where there is none. `system` in `rootCert` means the roots that Node trusts. */
  readonly rootCert: string | null
  readonly cert: string | null
  readonly key: string | null
  readonly minVersion: string | null
  readonly maxVersion: string | null
  /** TLS from the first byte (PostgreSQL 17 and later) instead of asking first. */
  readonly direct: boolean
}

/** Where a postgres:// URL leads. The members that hold secrets are not enumerable, so that no log or JSON shows them. */
export interface PostgresTarget {
  /** For people, logs and the state folder: without any secret. */
  readonly url: string
  /** Tried in this order. At least one. */
  readonly hosts: readonly PostgresHost[]
  readonly user: string
  readonly database: string
  readonly password: string | null
  readonly passFile: string | null
  readonly tls: TlsSettings
  readonly keyPassword: string | null
  /** How long one host may take to answer, ms; null: the default. 0: for ever. */
  readonly connectTimeoutMs: number | null
  readonly applicationName: string | null
  readonly options: string | null
  readonly sessionAttributes: SessionAttributes
  readonly table: TableReference | null
}

/** Where servers put their socket: Debian's folder, then PostgreSQL's own default. */
const SOCKET_FOLDERS = ['/var/run/postgresql', '/tmp']
const DEFAULT_PORT = 5432

/**
 * Reads a URL `postgres://user:password@host:port,host2:port/database?parameter=value` (PostgreSQL documentation, "Connection
 * URIs"), with what is missing taken from a service file, the PG* variables of `env`, and defaults, in this order. Every libpq
 * parameter counts; `table` (and `schema`) name the table. Reads service files; connects to nothing.
 *
 * @throws SLUICE_USAGE, SLUICE_NOT_YET, SLUICE_NOT_FOUND (service)
 */
export function parsePostgresUrl(url: string, env: Environment): PostgresTarget {
  const parts = splitUrl(url)
  const given = new Map(parts.parameters)
  checkParameterNames(given.keys(), 'the URL', true)
  const table = tableOf(given)
  for (const [name, value] of parts.head) if (!given.has(name)) given.set(name, value)
  return targetOf(withDefaults(given, env), table, env)
}

/** Whether a source or sink is ours. */
export function isPostgresUrl(url: string): boolean {
  return /^postgres(ql)?:\/\//i.test(url)
}

interface SplitUrl {
  readonly head: ReadonlyMap<string, string>
  readonly parameters: ReadonlyMap<string, string>
}

function splitUrl(url: string): SplitUrl {
  const scheme = /^postgres(ql)?:\/\//i.exec(url)
  if (scheme === null)
    throw new SluiceError('SLUICE_USAGE', 'a PostgreSQL URL begins with postgres:// or postgresql://')
  const rest = url.slice(scheme[0].length)
  const [beforeQuery = '', query = null] = cutAt(rest, '?')
  const [authority = '', database = null] = cutAt(beforeQuery, '/')
  const at = authority.lastIndexOf('@')
  // With a raw / or ? in the password the @ comes later than the part that we would show: show nothing then.
  const secretive = at < 0 && rest.includes('@') && /^[^@/?]*:/.test(rest)
  const head = new Map<string, string>()
  if (at >= 0) {
    const [user = '', password = null] = cutAt(authority.slice(0, at), ':')
    if (user !== '') head.set('user', decode(user, 'the user'))
    if (password !== null && password !== '') head.set('password', decode(password, 'the password'))
  }
  const { hosts, ports } = splitHosts(authority.slice(at + 1), secretive)
  if (hosts.some((host) => host !== '')) head.set('host', hosts.join(','))
  if (ports.some((port) => port !== '')) head.set('port', ports.join(','))
  if (database !== null && database !== '') head.set('dbname', decode(database, 'the database'))
  return { head, parameters: splitQuery(query ?? '') }
}

function cutAt(text: string, mark: string): [string, string | null] {
  const index = text.indexOf(mark)
  return index < 0 ? [text, null] : [text.slice(0, index), text.slice(index + 1)]
}

function splitHosts(text: string, secretive: boolean): { hosts: string[]; ports: string[] } {
  const hosts: string[] = []
  const ports: string[] = []
  for (const one of text === '' ? [] : text.split(',')) {
    const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d*))?$/.exec(one)
    if (match === null) {
      throw new SluiceError(
        'SLUICE_USAGE',
        secretive ? 'the URL has no readable host' : `${one} is no host or host:port`,
        {
          hint: 'percent-encode @ : / ? # in the user and the password; IPv6 addresses go in [ ]',
        },
      )
    }
    hosts.push(decode(match[1] ?? match[2] ?? '', 'the host'))
    ports.push(match[3] ?? '')
  }
  return { hosts, ports }
}

function splitQuery(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const [rawName, rawValue] = cutAt(pair, '=')
    const name = decode(rawName, 'a parameter')
    if (rawValue === null)
      throw new SluiceError('SLUICE_USAGE', `parameter ${name} of the URL has no value`, { hint: `write ${name}=…` })
    const value = decode(rawValue, `parameter ${name}`)
    // JDBC's spelling, which libpq takes as well.
    if (name === 'ssl' && value === 'true') parameters.set('sslmode', 'require')
    else parameters.set(name, value)
  }
  return parameters
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new SluiceError('SLUICE_USAGE', `${what} of the URL has a % that begins no valid percent-encoding`, {
      hint: 'write % as %25',
    })
  }
}

function tableOf(given: Map<string, string>): TableReference | null {
  const table = given.get('table')
  const schema = given.get('schema')
  given.delete('table')
  given.delete('schema')
  if (table === undefined || table === '') {
    if (schema === undefined && table === undefined) return null
    throw new SluiceError('SLUICE_USAGE', 'the URL names no table', { hint: 'add table=NAME' })
  }
  if (schema === undefined) return parseTableReference(table)
  return { schema: { name: schema, literal: true }, table: { name: table, literal: true } }
}

function withDefaults(given: Map<string, string>, env: Environment): Map<string, string> {
  const fromEnvironment = environmentParameters(env)
  const merged = new Map(given)
  const service = merged.get('service') ?? fromEnvironment.get('service')
  const layers = [fromEnvironment]
  if (service !== undefined) {
    const file = merged.get('servicefile') ?? fromEnvironment.get('servicefile')
    layers.unshift(readService(service, { file, home: env['HOME'], systemFolder: env['PGSYSCONFDIR'] }))
  }
  for (const layer of layers) for (const [name, value] of layer) if (!merged.has(name)) merged.set(name, value)
  return merged
}

function targetOf(values: ReadonlyMap<string, string>, table: TableReference | null, env: Environment): PostgresTarget {
  const user = values.get('user') ?? systemUser()
  if (user === null)
    throw new SluiceError('SLUICE_USAGE', 'the URL names no user', { hint: 'write postgres://user@host/database' })
  const database = values.get('dbname') ?? user
  if (values.get('gssencmode') === 'require')
    throw new SluiceError('SLUICE_NOT_YET', 'gssencmode=require is not supported')
  if (values.get('channel_binding') === 'require')
    throw new SluiceError('SLUICE_NOT_YET', 'channel_binding=require is not supported')
  const hosts = hostsOf(values)
  const target = {
    url: shownUrl({ user, hosts, database, table }),
    hosts: values.get('load_balance_hosts') === 'random' ? shuffled(hosts) : hosts,
    user,
    database,
    passFile: values.get('passfile') ?? defaultPassFile(env),
    tls: tlsOf(values, env),
    connectTimeoutMs: timeoutOf(values.get('connect_timeout')),
    applicationName: values.get('application_name') ?? null,
    options: values.get('options') ?? null,
    sessionAttributes: oneOf('target_session_attrs', values.get('target_session_attrs') ?? 'any', SESSION_ATTRIBUTES),
    table,
  }
  const secrets = { password: values.get('password') ?? null, keyPassword: values.get('sslpassword') ?? null }
  return Object.defineProperties(target, {
    password: { value: secrets.password, enumerable: false },
    keyPassword: { value: secrets.keyPassword, enumerable: false },
  }) as typeof target & typeof secrets
}

function hostsOf(values: ReadonlyMap<string, string>): PostgresHost[] {
  const names = values.get('host')?.split(',') ?? []
  const addresses = values.get('hostaddr')?.split(',') ?? []
  const ports = values.get('port')?.split(',') ?? []
  const count = Math.max(names.length, addresses.length, 1)
  if (names.length > 0 && addresses.length > 0 && names.length !== addresses.length) {
    throw new SluiceError(
      'SLUICE_USAGE',
      `the URL has ${names.length} hosts and ${addresses.length} addresses (hostaddr)`,
    )
  }
  if (ports.length > 1 && ports.length !== count) {
    throw new SluiceError('SLUICE_USAGE', `the URL has ${count} hosts and ${ports.length} ports`)
  }
  return Array.from({ length: count }, (_, index) => {
    const port = portOf(ports[ports.length === 1 ? 0 : index] ?? '')
    const address = addresses[index] || null
    return { host: names[index] || address || defaultHost(port), address, port }
  })
}

function portOf(text: string): number {
  if (text === '') return DEFAULT_PORT
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new SluiceError('SLUICE_USAGE', 'the port is no number from 1 to 65535')
  return port
}

function defaultHost(port: number): string {
  if (process.platform === 'win32') return 'localhost'
  return SOCKET_FOLDERS.find((folder) => existsSync(join(folder, `.s.PGSQL.${port}`))) ?? 'localhost'
}

function tlsOf(values: ReadonlyMap<string, string>, env: Environment): TlsSettings {
  const rootCert = values.get('sslrootcert') ?? homeFile(env, 'root.crt')
  const named = values.get('sslmode')
  const mode = oneOf('sslmode', named ?? (rootCert === 'system' ? 'verify-full' : 'prefer'), SSL_MODES)
  if (rootCert === 'system' && mode !== 'verify-full') {
    throw new SluiceError('SLUICE_USAGE', `sslrootcert=system needs sslmode=verify-full, not ${mode}`, {
      hint: 'leave sslmode out',
    })
  }
  if ((mode === 'verify-ca' || mode === 'verify-full') && rootCert === null) {
    throw new SluiceError(
      'SLUICE_TLS',
      `sslmode=${mode} needs the certificate of the authority that signed the server's`,
      {
        hint: 'name its file by sslrootcert=FILE, put it at ~/.postgresql/root.crt, or take sslrootcert=system',
      },
    )
  }
  const direct =
    oneOf('sslnegotiation', values.get('sslnegotiation') ?? 'postgres', ['postgres', 'direct']) === 'direct'
  if (direct && SSL_MODES.indexOf(mode) < SSL_MODES.indexOf('require')) {
    throw new SluiceError('SLUICE_USAGE', `sslnegotiation=direct needs sslmode=require or stronger, not ${mode}`)
  }
  return {
    // libpq: where a root certificate is there, `require` checks against it as verify-ca does.
    mode: mode === 'require' && rootCert !== null ? 'verify-ca' : mode,
    rootCert,
    cert: values.get('sslcert') ?? homeFile(env, 'postgresql.crt'),
    key: values.get('sslkey') ?? homeFile(env, 'postgresql.key'),
    minVersion: values.get('ssl_min_protocol_version') ?? null,
    maxVersion: values.get('ssl_max_protocol_version') ?? null,
    direct,
  }
}

function homeFile(env: Environment, name: string): string | null {
  const home = env['HOME']
  if (!home) return null
  const path = join(home, '.postgresql', name)
  return existsSync(path) ? path : null
}

function defaultPassFile(env: Environment): string | null {
  if (process.platform === 'win32') return env['APPDATA'] ? join(env['APPDATA'], 'postgresql', 'pgpass.conf') : null
  return env['HOME'] ? join(env['HOME'], '.pgpass') : null
}

function timeoutOf(text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^-?\d+$/.test(text.trim()))
    throw new SluiceError('SLUICE_USAGE', `connect_timeout=${text} is no number of seconds`)
  return Math.max(0, Number(text)) * 1000
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value)
  if (found !== undefined) return found
  const likely = nearest(value, allowed)
  throw new SluiceError('SLUICE_USAGE', `${name}=${value} is none of ${allowed.join(', ')}`, {
    ...(likely === null ? {} : { hint: `did you mean ${likely}?` }),
  })
}

function systemUser(): string | null {
  try {
    return userInfo().username
  } catch {
    return null
  }
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item)
}

interface Shown {
  readonly user: string
  readonly hosts: readonly PostgresHost[]
  readonly database: string
  readonly table: TableReference | null
}

function shownUrl({ user, hosts, database, table }: Shown): string {
  const sockets = hosts.filter(({ host }) => host.startsWith('/'))
  const authority =
    sockets.length > 0
      ? ''
      : hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',')
  const parameters: string[] = []
  if (sockets.length > 0)
    parameters.push(
      `host=${hosts.map(({ host }) => host).join(',')}`,
      `port=${hosts.map(({ port }) => port).join(',')}`,
    )
  if (table !== null) {
    if (table.schema?.literal && table.table.literal)
      parameters.push(`schema=${table.schema.name}`, `table=${table.table.name}`)
    else parameters.push(`table=${table.schema === null ? '' : `${shownName(table.schema)}.`}${shownName(table.table)}`)
  }
  const query = parameters.length === 0 ? '' : `?${parameters.join('&')}`
  return `postgres://${encodeURIComponent(user)}@${authority}/${encodeURIComponent(database)}${query}`
}

function shownName(part: { name: string; literal: boolean }): string {
  return part.literal ? `"${part.name.replaceAll('"', '""')}"` : part.name
}
