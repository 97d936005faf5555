import { Socket } from 'node:net'
import type { Client } from 'pg'
import { SluiceError } from '../../../core/errors.ts'
import { pg } from './driver.ts'
import { translatePgError, sqlState } from '../errors.ts'
import { lookUpPassword } from './pgpass.ts'
import { plainSocket } from './plain-socket.ts'
import { quoteLiteral } from '../quote.ts'
import { encryptionsOf, tlsOptions, type Encryption } from './tls.ts'
import type { PostgresHost, PostgresTarget } from './url.ts'

export interface ConnectOptions {
  readonly signal: AbortSignal
  /** What pg_stat_activity shows, where the URL says nothing else. */
  readonly applicationName: string
  /** The session's TimeZone: what times without an offset are in. Default UTC. */
  readonly timeZone?: string | undefined
  /** How long one host may take until TCP stands, ms; the URL's connect_timeout comes first. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined
}

/** One connection with sluice's session settings. Statements run one after another. */
export interface PgConnection {
  readonly client: Client
  /** server_version_num: 150004 is 15.4. */
  readonly version: number
  /** 0 where a pooler stands between: the process changes with each transaction, and may be another client's by now. */
  readonly backendPid: number
  /**
   * Whether a pooler stands between (pgbouncer, RDS Proxy): it may give each transaction another session of the server, with other settings; and what we
   * would set in one stayed there for others.
   */
  readonly pooled: boolean
  /** The host that answered. */
  readonly host: PostgresHost
  /** Runs a statement and gives its rows as `pg` parses them (bigint and numeric as text). @throws translated by SQLSTATE */
  query<T extends object = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<T[]>
  /** Begins a transaction by these statements, in one round trip, and sees to it that our settings hold in it. @throws as `query` does */
  begin(statements: readonly string[]): Promise<void>
  /** Ends the session; waits at most 2 s for the server; never throws. Idempotent. */
  close(): Promise<void>
  /** What ended the connection behind our back; null while it stands. */
  lost(): SluiceError | null
}

const CONNECT_TIMEOUT_MS = 5_000
/** A server that took the connection may still be slow to begin the session (starting up, many clients); ms. */
const SESSION_TIMEOUT_MS = 30_000
const CLOSE_TIMEOUT_MS = 2_000
const KEEP_ALIVE_AFTER_MS = 30_000
/** Node gives each address 250 ms before it tries the next, which is too short for a far host. */
const NEXT_ADDRESS_AFTER_MS = 1_500

/**
 * Connects to the first host of the target that answers and is of the wanted kind (target_session_attrs), with TLS as sslmode
 * says, and sets the session up as cli.md lists. Hosts are tried in order; one that refuses the user ends the search, as in libpq.
 *
 * @throws SLUICE_UNREACHABLE, SLUICE_CREDENTIALS, SLUICE_NOT_FOUND, SLUICE_TLS, SLUICE_THROTTLED, SLUICE_ACCESS_DENIED; the signal's reason
 */
export async function connect(target: PostgresTarget, o: ConnectOptions): Promise<PgConnection> {
  const failures: SluiceError[] = []
  const wanted = target.sessionAttributes
  const rounds = wanted === 'prefer-standby' ? (['standby', 'any'] as const) : ([wanted] as const)
  for (const attributes of rounds) {
    for (const host of target.hosts) {
      try {
        const connection = await connectToHost(target, host, o)
        const objection = await objectionTo(connection, attributes)
        if (objection === null) return connection
        await connection.close()
        failures.push(
          new SluiceError('SLUICE_UNREACHABLE', `${place(host)} ${objection}`, {
            hint: `target_session_attrs is ${wanted}`,
          }),
        )
      } catch (thrown) {
        o.signal.throwIfAborted()
        const error = translatePgError(thrown, { while: `connecting to ${place(host)}` })
        if (!goesOn(error)) throw error.at({ url: target.url })
        failures.push(error)
      }
    }
  }
  throw joined(failures, target)
}

/** Errors after which the next host is worth a try: those of reaching a server, not those of what it thinks of us. */
function goesOn(error: SluiceError): boolean {
  return error.retryable || (error.code === 'SLUICE_NOT_FOUND' && sqlState(error) === null)
}

function joined(failures: readonly SluiceError[], target: PostgresTarget): SluiceError {
  const [first] = failures
  if (first === undefined) return new SluiceError('SLUICE_USAGE', `${target.url} names no host`)
  if (failures.length === 1) return first.at({ url: target.url })
  const reasons = [...new Set(failures.map((failure) => failure.message))]
  return new SluiceError(first.code, `no host will do: ${reasons.join('; ')}`, {
    where: { url: target.url },
    cause: first,
    hint: first.hint,
  })
}

function place(host: PostgresHost): string {
  if (host.host.startsWith('/')) return `${host.host}/.s.PGSQL.${host.port}`
  return `${host.host.includes(':') ? `[${host.host}]` : host.host}:${host.port}`
}

async function objectionTo(
  connection: PgConnection,
  wanted: PostgresTarget['sessionAttributes'],
): Promise<string | null> {
  if (wanted === 'any') return null
  const [row] = await connection.query<{ standby: boolean; read_only: string }>(
    "SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only",
  )
  const standby = row?.standby === true
  const readOnly = standby || row?.read_only === 'on'
  if (wanted === 'read-write') return readOnly ? 'takes no writes' : null
  if (wanted === 'read-only') return readOnly ? null : 'takes writes'
  if (wanted === 'primary') return standby ? 'is a standby' : null
  return standby ? null : 'is no standby'
}

async function connectToHost(target: PostgresTarget, host: PostgresHost, o: ConnectOptions): Promise<PgConnection> {
  const [first = 'plain', second] = encryptionsOf(target.tls.mode, host.host)
  try {
    return await openSession(target, host, { ...o, encryption: first })
  } catch (thrown) {
    o.signal.throwIfAborted()
    if (second === undefined || !worthOtherEncryption(thrown)) throw thrown
    return openSession(target, host, { ...o, encryption: second })
  }
}

/** What `prefer` and `allow` try again without or with TLS: a server that has none, a failed handshake, a line of pg_hba.conf. */
function worthOtherEncryption(thrown: unknown): boolean {
  return thrown instanceof SluiceError && (thrown.code === 'SLUICE_TLS' || sqlState(thrown) === '28000')
}

type Attempt = ConnectOptions & { readonly encryption: Encryption }

async function openSession(target: PostgresTarget, host: PostgresHost, o: Attempt): Promise<PgConnection> {
  o.signal.throwIfAborted()
  const client = newClient(target, host, o)
  const state: { lost: SluiceError | null } = { lost: null }
  const doing = `connection to ${place(host)}`
  client.on('error', (error) => {
    state.lost ??= translatePgError(error, { while: doing, rowsMoved: true })
  })
  try {
    await begin(client, target, o)
    return await settle(client, { host, state, timeZone: o.timeZone ?? 'UTC' })
  } catch (thrown) {
    socketOf(client).destroy()
    o.signal.throwIfAborted()
    throw neverBegan(translatePgError(thrown, { while: `connecting to ${place(host)}` }), target, o.encryption)
  }
}

/** A connection that ends before its session began is no server that went away: perhaps it was none of PostgreSQL's. */
function neverBegan(error: SluiceError, { tls }: PostgresTarget, encryption: Encryption): SluiceError {
  if (error.code !== 'SLUICE_SERVER_GONE' || sqlState(error) !== null) return error
  if (tls.direct && encryption === 'tls')
    return new SluiceError('SLUICE_TLS', error.message, {
      cause: error.cause,
      hint: 'sslnegotiation=direct wants PostgreSQL 17 or later; leave it out for older servers',
    })
  return new SluiceError('SLUICE_UNREACHABLE', error.message, {
    cause: error.cause,
    hint: 'something answers there, and begins no session: check host and port, and what stands before the server',
  })
}

function newClient(target: PostgresTarget, host: PostgresHost, o: Attempt): Client {
  const client = new pg.Client({
    user: target.user,
    database: target.database,
    host: host.host,
    port: host.port,
    // A function, so that pg looks for no password file by itself. It is called only where the server asks.
    password: () => passwordFor(target, host),
    ssl: o.encryption === 'tls' ? tlsOptions(target) : false,
    application_name: target.applicationName ?? o.applicationName,
    stream: () => newSocket(host, o.encryption),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
  })
  // pg fills what is falsy from process.env; what it may have found there is not ours to use.
  const { connectionParameters, connection } = internalsOf(client)
  Object.assign(connectionParameters, {
    options: target.options ?? undefined,
    replication: undefined,
    client_encoding: 'UTF8',
    fallback_application_name: undefined,
  })
  const negotiation = target.tls.direct && o.encryption === 'tls' ? 'direct' : 'postgres'
  connection.sslNegotiation = negotiation
  Reflect.set(client, 'sslNegotiation', negotiation)
  return client
}

/** A socket that goes to `hostaddr` where that is given, while the certificate is still checked against the host's name. */
function newSocket(host: PostgresHost, encryption: Encryption): Socket {
  const socket = encryption === 'tls' ? new Socket() : plainSocket()
  if (host.host.startsWith('/')) return socket
  const dial = socket.connect.bind(socket)
  const options = {
    host: host.address ?? host.host,
    port: host.port,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
  }
  socket.connect = (() => dial(options)) as typeof socket.connect
  return socket
}

function passwordFor(target: PostgresTarget, host: PostgresHost): string {
  if (target.password !== null) return target.password
  const found =
    target.passFile === null
      ? { password: null, problem: null }
      : lookUpPassword(target.passFile, {
          host:
            host.host.startsWith('/') && /^\/(var\/run\/postgresql|run\/postgresql|tmp)\/?$/.test(host.host)
              ? 'localhost'
              : host.host,
          port: host.port,
          database: target.database,
          user: target.user,
        })
  if (found.password !== null) return found.password
  throw new SluiceError(
    'SLUICE_CREDENTIALS',
    `the server at ${place(host)} wants a password for ${target.user}, and none is given`,
    {
      hint: found.problem ?? 'set PGPASSWORD, or add a line to ~/.pgpass',
    },
  )
}

/** Starts the session: TCP, TLS, authentication; each with its own time. */
async function begin(client: Client, target: PostgresTarget, o: Attempt): Promise<void> {
  const { connection } = internalsOf(client)
  let secured = false
  connection.once('sslconnect', () => {
    secured = true
  })
  const reachMs = target.connectTimeoutMs ?? o.connectTimeoutMs ?? CONNECT_TIMEOUT_MS
  const stop = (reason: unknown): void => {
    socketOf(client).destroy(reason instanceof Error ? reason : new Error(String(reason)))
  }
  const tooLate = (what: string): void => stop(new SluiceError('SLUICE_UNREACHABLE', what))
  let timer =
    reachMs === 0
      ? undefined
      : setTimeout(tooLate, reachMs, `no answer within ${reachMs / 1000} s from ${client.host}:${client.port}`)
  connection.once('connect', () => {
    clearTimeout(timer)
    const sessionMs = target.connectTimeoutMs ?? SESSION_TIMEOUT_MS
    if (sessionMs > 0)
      timer = setTimeout(
        tooLate,
        sessionMs,
        `${client.host}:${client.port} takes longer than ${sessionMs / 1000} s to begin a session`,
      )
  })
  const onAbort = (): void => stop(o.signal.reason)
  o.signal.addEventListener('abort', onAbort, { once: true })
  try {
    await client.connect()
  } catch (error) {
    // pg's own errors before TLS stands, which have no code: the server answered that it has no TLS.
    if (o.encryption === 'tls' && !secured && isPlainError(error) && !o.signal.aborted) {
      throw new SluiceError('SLUICE_TLS', `the server at ${client.host}:${client.port} offers no TLS`, {
        cause: error,
        hint: 'sslmode=prefer goes on without it, sslmode=disable does not ask for it',
      })
    }
    if (isPlainError(error) && !o.signal.aborted && isScram(client)) {
      throw new SluiceError(
        'SLUICE_CREDENTIALS',
        `the password check (SCRAM) with ${client.host}:${client.port} failed`,
        { cause: error },
      )
    }
    throw error
  } finally {
    clearTimeout(timer)
    o.signal.removeEventListener('abort', onAbort)
  }
}

function isPlainError(error: unknown): boolean {
  return error instanceof Error && error.constructor === Error && Reflect.get(error, 'code') === undefined
}

/** Whether a SASL exchange was under way. */
function isScram(client: Client): boolean {
  return Boolean(internalsOf(client).saslSession)
}

/** What of pg 8's insides we lean on (pinned exactly in package.json; test/integration shows that it holds). */
interface Internals {
  readonly connection: NodeJS.EventEmitter & { stream: Socket; sslNegotiation: string }
  readonly connectionParameters: Record<string, unknown>
  readonly saslSession?: unknown
  /** Of BackendKeyData; a pooler makes up its own. */
  readonly processID: number | null
}

function internalsOf(client: Client): Internals {
  return client as unknown as Internals
}

function socketOf(client: Client): Socket {
  return internalsOf(client).connection.stream
}

/** What every session of ours is set to (cli.md, "PostgreSQL"), whatever the server, the database or the role says. */
function settings(verb: 'SET' | 'SET LOCAL', timeZone: string): readonly string[] {
  const wanted = {
    DateStyle: 'ISO, YMD',
    IntervalStyle: 'postgres',
    TimeZone: timeZone,
    bytea_output: 'hex',
    extra_float_digits: '3',
    client_encoding: 'UTF8',
    standard_conforming_strings: 'on',
    statement_timeout: '0',
    idle_in_transaction_session_timeout: '0',
  }
  return Object.entries(wanted).map(([name, value]) => `${verb} ${name} = ${quoteLiteral(value)}`)
}

interface Settled {
  readonly host: PostgresHost
  readonly state: { lost: SluiceError | null }
  readonly timeZone: string
}

async function settle(client: Client, o: Settled): Promise<PgConnection> {
  const query = async <T extends object>(sql: string, values?: readonly unknown[]): Promise<T[]> => {
    try {
      const result = await (values === undefined ? client.query<T>(sql) : client.query<T>(sql, [...values]))
      return result.rows
    } catch (error) {
      throw translatePgError(error, { while: shorten(sql), rowsMoved: true })
    }
  }
  const [facts] = await query<{ version: number; pid: number }>(
    "SELECT current_setting('server_version_num')::int AS version, pg_backend_pid() AS pid",
  )
  const pooled = facts?.pid !== internalsOf(client).processID
  if (!pooled) await query(settings('SET', o.timeZone).join('; '))
  const localSettings = pooled ? settings('SET LOCAL', o.timeZone) : []
  let closing: Promise<void> | null = null
  return {
    client,
    version: facts?.version ?? 0,
    backendPid: pooled ? 0 : (facts?.pid ?? 0),
    pooled,
    host: o.host,
    query,
    begin: async (statements) => void (await query([...statements, ...localSettings].join('; '))),
    close: () => (closing ??= end(client)),
    lost: () => o.state.lost,
  }
}

/** The beginning of a statement, to say what was being done. */
function shorten(sql: string): string {
  const line = sql.replace(/\s+/g, ' ').trim()
  return line.length <= 80 ? line : `${line.slice(0, 79)}…`
}

async function end(client: Client): Promise<void> {
  // pg would wait for an event that has been.
  if (socketOf(client).destroyed) return
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CLOSE_TIMEOUT_MS)
  })
  await Promise.race([client.end().catch(() => undefined), late])
  clearTimeout(timer)
  socketOf(client).destroy()
}
