import { SluiceError, type ErrorCode } from '../../core/errors.ts'

/** What was being done, for the message: "connecting to h:5432", "loading into public.t". */
export interface PgErrorContext {
  readonly while: string
  /** Whether rows may have moved already: a connection that is refused now is a server that went away. */
  readonly rowsMoved?: boolean
  /** What a role has to be granted on a table for this; default: INSERT, SELECT. */
  readonly privilege?: 'SELECT'
}

/** Row values in a DETAIL are the user's own data and help; more than this many characters of them do not. */
const LONGEST_DETAIL = 200
const LONGEST_MESSAGE = 500

interface Meaning {
  readonly code: ErrorCode
  readonly hint?: string
  readonly retryable?: boolean
}

/** By whole SQLSTATE (PostgreSQL documentation, appendix A). */
const BY_STATE: Readonly<Record<string, Meaning>> = {
  '08001': { code: 'SLUICE_UNREACHABLE' },
  '08004': { code: 'SLUICE_UNREACHABLE' },
  '08P01': { code: 'SLUICE_PROTOCOL' },
  '22021': { code: 'SLUICE_ENCODING', hint: 'the value is no valid text in UTF-8: check --encoding' },
  '22023': { code: 'SLUICE_USAGE', hint: 'check the options of the connection and --time-zone' },
  '22P04': { code: 'SLUICE_CSV_FIELD_COUNT' },
  '22P05': {
    code: 'SLUICE_ENCODING',
    hint: String.raw`jsonb and the database's encoding lack this character: json holds \u0000, a database in UTF8 all others; or take it out with --replace`,
  },
  '23505': { code: 'SLUICE_DUPLICATE_KEY' },
  '23P01': { code: 'SLUICE_CONSTRAINT' },
  '25006': {
    code: 'SLUICE_ACCESS_DENIED',
    hint: 'the server takes no writes (a standby, or default_transaction_read_only): name the primary, or give several hosts and target_session_attrs=read-write',
  },
  '25P03': {
    code: 'SLUICE_SERVER_GONE',
    hint: 'the server ended an idle transaction: raise idle_in_transaction_session_timeout',
  },
  '28000': {
    code: 'SLUICE_CREDENTIALS',
    hint: 'check the user, the database and sslmode against the pg_hba.conf of the server',
  },
  '28P01': { code: 'SLUICE_CREDENTIALS', hint: 'check the user and the password (URL, PGPASSWORD, .pgpass)' },
  '3D000': { code: 'SLUICE_NOT_FOUND', hint: 'check the name of the database: psql -l lists them' },
  '3F000': { code: 'SLUICE_NOT_FOUND', hint: 'check the name of the schema' },
  '40001': { code: 'SLUICE_LOCKED', hint: 'another session changed the same rows: it is tried again' },
  '40P01': { code: 'SLUICE_LOCKED', hint: 'two sessions waited for each other: it is tried again' },
  '40002': { code: 'SLUICE_CONSTRAINT' },
  '428C9': { code: 'SLUICE_COLUMN_GENERATED' },
  '42501': { code: 'SLUICE_ACCESS_DENIED' },
  '42701': {
    code: 'SLUICE_SQL',
    hint: "a column's name comes twice, or is one that PostgreSQL keeps for itself (ctid, xmin …): use --rename",
  },
  '42703': { code: 'SLUICE_COLUMN_MISSING' },
  '42704': { code: 'SLUICE_NOT_FOUND', hint: 'no type, role or setting has this name: check its spelling' },
  '42710': { code: 'SLUICE_EXISTS' },
  '42883': { code: 'SLUICE_SQL' },
  '42P01': { code: 'SLUICE_NOT_FOUND' },
  '42P04': { code: 'SLUICE_EXISTS' },
  '42P06': { code: 'SLUICE_EXISTS' },
  '42P07': { code: 'SLUICE_EXISTS', hint: 'the table is there already: leave out --create, or name another' },
  '44000': { code: 'SLUICE_CONSTRAINT' },
  '53100': { code: 'SLUICE_DISK_FULL', hint: "free space on the server's disk, then resume" },
  '53200': { code: 'SLUICE_SERVER', hint: 'the server ran out of memory' },
  '53300': {
    code: 'SLUICE_THROTTLED',
    hint: 'the server has no connection left: lower --concurrency, or raise max_connections',
  },
  '53400': { code: 'SLUICE_SERVER', hint: 'a limit of the server or of the role is reached' },
  '54000': { code: 'SLUICE_VALUE', hint: 'a value is too long for the server, or for an index on its column' },
  '55006': { code: 'SLUICE_LOCKED' },
  '55P03': {
    code: 'SLUICE_LOCKED',
    hint: 'another session holds the lock: look at pg_blocking_pids, end that session, then resume',
  },
  '57014': {
    code: 'SLUICE_SERVER',
    retryable: false,
    hint: 'the statement was cancelled by an operator or by statement_timeout; resume goes on',
  },
  '57P01': { code: 'SLUICE_SERVER_GONE' },
  '57P02': { code: 'SLUICE_SERVER_GONE' },
  '57P03': {
    code: 'SLUICE_SERVER_GONE',
    hint: 'the server is starting up, shutting down or recovering: try again shortly',
  },
  '57P04': { code: 'SLUICE_NOT_FOUND', hint: 'the database was dropped' },
  '57P05': { code: 'SLUICE_SERVER_GONE', hint: 'the server ended an idle session: raise idle_session_timeout' },
  XX001: { code: 'SLUICE_SERVER', retryable: false, hint: "the server's data are damaged: see its log" },
  XX002: { code: 'SLUICE_SERVER', retryable: false, hint: 'an index is damaged: REINDEX it' },
}

/** By class, the first two characters, where the whole state is not above. */
const BY_CLASS: Readonly<Record<string, Meaning>> = {
  '08': { code: 'SLUICE_SERVER_GONE' },
  '09': { code: 'SLUICE_CONSTRAINT', hint: 'a trigger of the table refuses' },
  '22': { code: 'SLUICE_VALUE' },
  '23': { code: 'SLUICE_CONSTRAINT' },
  '27': { code: 'SLUICE_CONSTRAINT', hint: 'a trigger of the table refuses' },
  '28': { code: 'SLUICE_CREDENTIALS' },
  '40': { code: 'SLUICE_LOCKED' },
  '53': { code: 'SLUICE_SERVER' },
  '57': { code: 'SLUICE_SERVER' },
  '58': { code: 'SLUICE_SERVER' },
  P0: { code: 'SLUICE_CONSTRAINT', hint: 'a trigger or function of the database refuses' },
  XX: { code: 'SLUICE_SERVER' },
}

/** By `code` of Node's own errors. */
const BY_NODE_CODE: Readonly<Record<string, Meaning>> = {
  ECONNREFUSED: { code: 'SLUICE_UNREACHABLE' },
  EHOSTUNREACH: { code: 'SLUICE_UNREACHABLE' },
  EHOSTDOWN: { code: 'SLUICE_UNREACHABLE' },
  ENETUNREACH: { code: 'SLUICE_UNREACHABLE' },
  ENETDOWN: { code: 'SLUICE_UNREACHABLE' },
  EADDRNOTAVAIL: { code: 'SLUICE_UNREACHABLE' },
  ETIMEDOUT: { code: 'SLUICE_UNREACHABLE' },
  EAI_AGAIN: { code: 'SLUICE_UNREACHABLE', hint: 'the name server does not answer: check the network' },
  ENOTFOUND: { code: 'SLUICE_NOT_FOUND', hint: 'no such host name: check its spelling' },
  ENOENT: { code: 'SLUICE_UNREACHABLE', hint: 'no server listens at that socket: check the folder and the port' },
  EACCES: { code: 'SLUICE_ACCESS_DENIED', hint: 'the socket may not be opened by this user' },
  ECONNRESET: { code: 'SLUICE_SERVER_GONE' },
  ECONNABORTED: { code: 'SLUICE_SERVER_GONE' },
  EPIPE: { code: 'SLUICE_SERVER_GONE' },
  ERR_STREAM_DESTROYED: { code: 'SLUICE_SERVER_GONE' },
  ERR_STREAM_WRITE_AFTER_END: { code: 'SLUICE_SERVER_GONE' },
  ERR_STREAM_PREMATURE_CLOSE: { code: 'SLUICE_SERVER_GONE' },
}

const TLS_CODE =
  /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|EPROTO$)/

/** The fields of a server's ErrorResponse that we use (PostgreSQL documentation, "Error and Notice Message Fields"), as `pg` names them. */
interface ServerError {
  readonly message: string
  readonly code: string
  readonly detail?: string
  readonly hint?: string
  readonly schema?: string
  readonly table?: string
  readonly column?: string
  readonly constraint?: string
  readonly dataType?: string
}

/** The SQLSTATE of an error that the server sent (also as the cause of a SluiceError); null for any other. */
export function sqlState(error: unknown): string | null {
  if (error instanceof SluiceError) return sqlState(error.cause)
  return isServerError(error) ? error.code : null
}

/**
 * An error of `pg`, of Node's sockets or of the server as a SluiceError; by SQLSTATE and `code`, never by its text, which may be
 * in any language. A SluiceError comes back as it is.
 */
export function translatePgError(error: unknown, o: PgErrorContext): SluiceError {
  if (error instanceof SluiceError) return error
  if (isServerError(error)) return fromServer(error, o)
  const code = nodeCode(error)
  const text = error instanceof Error ? error.message : String(error)
  const known = BY_NODE_CODE[code] ?? (TLS_CODE.test(code) ? { code: 'SLUICE_TLS' as const } : undefined)
  if (known !== undefined) {
    const gone = o.rowsMoved === true && known.code === 'SLUICE_UNREACHABLE'
    const meaning = gone ? { code: 'SLUICE_SERVER_GONE' as const } : known
    return build(meaning, `${o.while}: ${code === 'ECONNREFUSED' ? 'nothing listens there' : text || code}`, {
      cause: error,
    })
  }
  // What pg says of a connection that ended has neither a code nor a class of its own: it is a plain Error.
  if (error instanceof Error && error.constructor === Error && code === '') {
    return build({ code: 'SLUICE_SERVER_GONE' }, `${o.while}: the connection ended unexpectedly`, { cause: error })
  }
  return build({ code: 'SLUICE_INTERNAL' }, `${o.while}: ${text}`, { cause: error })
}

/** What a standby says that ends a reader of it: changes that it must replay come first. */
export const STANDBY_CONFLICT = '40001'
export const STANDBY_HINT =
  'the standby had to replay changes: raise max_standby_streaming_delay, set hot_standby_feedback, or read from the primary'

/** What a state means where sluice only reads, and what to do about it. By whole SQLSTATE, then by class. */
const NO_TEXT: Meaning = {
  code: 'SLUICE_ENCODING',
  hint: "the table holds bytes that are no text in UTF-8, as a database in SQL_ASCII may: read such a column by a query that says what they are, convert_from(convert(convert_to(x, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'UTF8')",
}

const BY_STATE_READING: Readonly<Record<string, Meaning>> = {
  '22021': NO_TEXT,
  '22P05': NO_TEXT,
  '25006': {
    code: 'SLUICE_USAGE',
    hint: 'sluice reads in a transaction that is read-only: leave out what writes, as nextval() and functions that change tables',
  },
  [STANDBY_CONFLICT]: { code: 'SLUICE_SERVER', hint: STANDBY_HINT },
  '42703': { code: 'SLUICE_COLUMN_MISSING', hint: "check the column's name in the query" },
  '42P01': { code: 'SLUICE_NOT_FOUND', hint: String.raw`check the table's name and its schema: psql -c \d lists them` },
  '21': { code: 'SLUICE_SQL', hint: 'a subquery of the query gives more than one row: mend the query' },
  '22': {
    code: 'SLUICE_SQL',
    hint: 'the query fails on a value: mend the query, as with NULLIF(divisor, 0) or a WHERE',
  },
}

/** The same error, told of what was being read: what is missing is the right to SELECT, what conflicts is a standby's replay. */
export function whileReading(error: unknown, what: string): SluiceError {
  const own = error instanceof SluiceError && sqlState(error) !== null ? error.cause : error
  const translated = translatePgError(own, { while: what, rowsMoved: true, privilege: 'SELECT' })
  const state = sqlState(own) ?? ''
  const meaning = BY_STATE_READING[state] ?? BY_STATE_READING[state.slice(0, 2)]
  if (meaning === undefined) return translated
  const said = isServerError(own) && own.hint ? cut(own.hint, LONGEST_DETAIL) : meaning.hint
  return new SluiceError(meaning.code, translated.message, { hint: said, where: translated.where, cause: own })
}

function fromServer(error: ServerError, o: PgErrorContext): SluiceError {
  const meaning = BY_STATE[error.code] ?? BY_CLASS[error.code.slice(0, 2)] ?? { code: 'SLUICE_SQL' as const }
  const parts = [cut(error.message, LONGEST_MESSAGE)]
  if (error.detail) parts.push(cut(error.detail, LONGEST_DETAIL))
  const message = `${o.while}: ${parts.join(': ')} (SQLSTATE ${error.code})`
  const hint =
    meaning.hint ??
    grantHint(error, o.privilege ?? 'INSERT, SELECT') ??
    constraintHint(error) ??
    (error.hint ? cut(error.hint, LONGEST_DETAIL) : undefined)
  return build({ ...meaning, ...(hint === undefined ? {} : { hint }) }, message, { cause: error, column: error.column })
}

/** A role that lacks a privilege is told what to ask for; PostgreSQL names the table only where it knows it. */
function grantHint(error: ServerError, privilege: string): string | undefined {
  if (error.code !== '42501') return undefined
  if (!error.table) return `ask the owner for GRANT ${privilege} on the table and GRANT USAGE on its schema`
  const table = error.schema ? `${error.schema}.${error.table}` : error.table
  return `ask the owner for GRANT ${privilege} ON ${table}`
}

function constraintHint(error: ServerError): string | undefined {
  if (!error.constraint) return undefined
  return `constraint ${error.constraint}${error.table ? ` of table ${error.table}` : ''}: mend the row`
}

function build(meaning: Meaning, message: string, o: { cause: unknown; column?: string | undefined }): SluiceError {
  return new SluiceError(meaning.code, message, {
    cause: o.cause,
    hint: meaning.hint,
    retryable: meaning.retryable,
    where: o.column ? { column: o.column } : undefined,
  })
}

function isServerError(error: unknown): error is ServerError {
  if (typeof error !== 'object' || error === null) return false
  const { code, severity } = error as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && typeof severity === 'string'
}

function nodeCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`
}
