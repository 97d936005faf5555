/** When an error of this code ends a job: how it is classed for the exit code (product.md, "Exit codes"). */
export type ExitClass = 'usage' | 'failed' | 'resumable'

interface ErrorRule {
  /** The engine may try the same operation again within `--retry-for`. */
  readonly retryable: boolean
  /** Exit class where no row has been read yet. */
  readonly before: ExitClass
  /** Exit class once rows have moved. */
  readonly during: ExitClass
  /** What this means, one sentence: a row of docs/errors.md. */
  readonly meaning: string
  /** What the user can do, where the throw site knows nothing better. */
  readonly hint: string
}

const usage = (meaning: string, hint: string): ErrorRule => ({
  retryable: false,
  before: 'usage',
  during: 'failed',
  meaning,
  hint,
})
const input = (meaning: string, hint: string): ErrorRule => ({
  retryable: false,
  before: 'failed',
  during: 'failed',
  meaning,
  hint,
})
const outside = (meaning: string, hint: string): ErrorRule => ({
  retryable: true,
  before: 'usage',
  during: 'resumable',
  meaning,
  hint,
})

/** Every code that sluice reports. The table decides what is retried and how the job exits, never a message's text. */
export const ERROR_RULES = {
  SLUICE_USAGE: usage('a flag, a URL or a combination of them makes no sense', 'see sluice COMMAND --help'),
  SLUICE_NOT_YET: usage(
    'a flag or a route that is specified and not built yet',
    'see the README for the routes that work today',
  ),
  SLUICE_MISSING_PACKAGE: usage(
    'a command needs an optional package that is not installed',
    'npm install the package that the message names',
  ),
  SLUICE_NOT_FOUND: usage(
    'the file, object, bucket, host name or table does not exist',
    'check the spelling; sluice ls shows what is there',
  ),
  SLUICE_NOTHING_MATCHES: usage(
    'a prefix or glob matches no file and no object',
    'check the pattern, or quote it so that the shell leaves it alone',
  ),
  SLUICE_EXISTS: usage(
    'the output exists already and --if-exists is fail',
    'choose another name, or --if-exists overwrite or skip',
  ),
  SLUICE_ACCESS_DENIED: usage('the server knows us and refuses', 'ask for the permission that the message names'),
  SLUICE_CREDENTIALS: usage(
    'credentials are missing, wrong or expired',
    'check the user, the password, the profile or the keys',
  ),
  SLUICE_CREDENTIALS_EXPIRED: {
    retryable: false,
    before: 'usage',
    during: 'resumable',
    meaning: 'credentials expired while the job ran',
    hint: 'renew them, then resume',
  },
  SLUICE_UNREACHABLE: outside('nothing answers at the address', 'check host and port, and that the server runs'),
  SLUICE_TLS: usage(
    'the TLS handshake or the certificate check failed',
    'check sslmode, sslrootcert and the host name',
  ),
  SLUICE_NETWORK: outside('the connection broke or stalled', 'check the network, then resume'),
  SLUICE_THROTTLED: outside('the server asks us to slow down', 'try later, or lower --concurrency'),
  SLUICE_SERVER: outside('the server failed on its side', 'check the server, then resume'),
  // In mid-work by its name: a row may have been read, though none is counted yet.
  SLUICE_SERVER_GONE: {
    ...outside('the server went away in mid-work', 'bring it back, then resume'),
    before: 'failed',
  },
  SLUICE_PROTOCOL: input(
    'the server answered with something that the protocol does not allow',
    'check that the endpoint is what you think it is',
  ),
  SLUICE_SOURCE_CHANGED: input(
    'the source changed while it was read',
    'start over with --new-job once the source rests',
  ),
  SLUICE_SOURCE_SHORT: outside('fewer bytes came than were announced', 'check the source, then resume'),
  SLUICE_NOT_REPLAYABLE: input('a source that can be read only once broke', 'run the command again'),
  SLUICE_DISK_FULL: {
    retryable: false,
    before: 'usage',
    during: 'resumable',
    meaning: 'no space is left where we write',
    hint: 'free space, then resume',
  },
  SLUICE_LOCAL_IO: usage('the local file system refuses', 'check the path and its permissions'),
  SLUICE_COMPRESSION: input('compressed input is corrupt or cut', 'fetch or make the file anew'),
  SLUICE_ARCHIVE_ENTRY: usage(
    'the archive has no such entry, or more than one candidate',
    'name the entry with --entry',
  ),
  SLUICE_UNKNOWN_FORMAT: usage(
    'neither the name nor the bytes tell the format',
    'say --source-format or --sink-format',
  ),
  SLUICE_ENCODING: input(
    'bytes that are not valid in the encoding',
    'check --encoding, or set --on-invalid-utf8 replace',
  ),
  SLUICE_NUL: input('a NUL character, which the sink cannot hold', 'set --on-nul strip to drop such characters'),
  SLUICE_CSV_HEADER: usage(
    'the header has a duplicate or empty name, or is missing',
    'name the columns with --columns, or use --by-position',
  ),
  SLUICE_CSV_UNTERMINATED_QUOTE: input(
    'unterminated quoted field',
    'check --quote and --escape; --quote none makes quotes plain characters',
  ),
  SLUICE_CSV_QUOTE: input(
    'a quote inside an unquoted field, or text after a closing quote',
    'mend the row; --quote none makes quotes plain characters',
  ),
  SLUICE_CSV_FIELD_COUNT: input('a row has too many or too few fields', 'mend the row, or set --ragged fill or trim'),
  SLUICE_ROW_TOO_LONG: input(
    'a row longer than the memory that may hold it',
    'check --quote; raise --max-memory if the row is right',
  ),
  SLUICE_JSON: input('a line that is not a JSON object', 'mend the line'),
  SLUICE_PARQUET: input(
    'a Parquet file is broken or holds what cannot be read, or columns cannot be written as one',
    'make the file anew; for a file that another program can read, please report it',
  ),
  SLUICE_COLUMN_MISSING: usage(
    'a column is in the source and not in the table, or the other way round',
    'use --select or --rename',
  ),
  SLUICE_COLUMN_GENERATED: usage('the source has values for a generated column', 'leave it out with --select'),
  SLUICE_VALUE: input(
    'a value that its column cannot hold exactly',
    'mend the value, or load into a column of another type',
  ),
  SLUICE_CONSTRAINT: input('a row breaks a constraint of the table', 'mend the row'),
  SLUICE_DUPLICATE_KEY: input('a key comes twice, or is in the table already', 'remove the duplicate'),
  SLUICE_SQL: usage('PostgreSQL refuses a statement', 'check the statement that the message names'),
  SLUICE_LOCKED: outside('another session holds a lock for too long', 'end the other session, then resume'),
  SLUICE_JOB_EXISTS: usage(
    'a job with this id, or for this source and sink, is there already',
    'resume it, or pass --new-job',
  ),
  SLUICE_JOB_UNKNOWN: usage('no job has this id', 'sluice jobs lists them'),
  SLUICE_JOB_RUNNING: usage('another process works on this job', 'wait for it, or stop it'),
  SLUICE_STATE: usage('the state folder cannot be read or written', 'check --state-dir'),
  SLUICE_COUNTS: input(
    'rows read and rows written do not balance',
    'do not trust this load; please report it with the output of sluice show',
  ),
  SLUICE_THREADS: usage('threads cannot be started', 'a smaller --workers, or --workers 0, which does without'),
  SLUICE_INTERRUPTED: {
    retryable: false,
    before: 'resumable',
    during: 'resumable',
    meaning: 'stopped by a signal',
    hint: 'resume goes on from here',
  },
  SLUICE_INTERNAL: input('a fault of sluice itself', 'please report it with the stack that -v shows'),
} as const satisfies Record<string, ErrorRule>

/** A stable code, to be matched instead of a message. */
export type ErrorCode = keyof typeof ERROR_RULES

/** Where an error was met. Rows and lines count from 1 (data rows; physical lines), bytes from 0 in the decompressed input. */
export interface ErrorPlace {
  readonly url?: string | undefined
  readonly row?: number | undefined
  readonly line?: number | undefined
  readonly byte?: number | undefined
  readonly column?: string | undefined
  readonly partition?: string | undefined
}

interface SluiceErrorOptions {
  readonly where?: ErrorPlace | undefined
  readonly hint?: string | undefined
  readonly cause?: unknown
  /** How long the server asked us to wait (Retry-After), in milliseconds. */
  readonly retryAfterMs?: number | undefined
  /** Overrides the table where the throw site knows (a lost COMMIT answer, say, is never simply retried). */
  readonly retryable?: boolean | undefined
}

/** Names and values of the data stand in messages: a header of 10 MB shall not be printed whole. In characters. */
const LONGEST_TEXT = 4000

function cut(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`
}

/** The one error class. `message` says what; `where` says where; `hint` says what to do. None of them ever holds a secret. */
export class SluiceError extends Error {
  override readonly name = 'SluiceError'
  readonly code: ErrorCode
  readonly where: ErrorPlace
  readonly hint: string
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  constructor(code: ErrorCode, message: string, options: SluiceErrorOptions = {}) {
    super(cut(message), options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.where = options.where ?? {}
    this.hint = cut(options.hint ?? ERROR_RULES[code].hint)
    this.retryable = options.retryable ?? ERROR_RULES[code].retryable
    this.retryAfterMs = options.retryAfterMs
  }

  /** The same error with more of its place filled in; what is known already stays. */
  at(where: ErrorPlace): SluiceError {
    const merged = new SluiceError(this.code, this.message, {
      where: { ...where, ...definedOnly(this.where) },
      hint: this.hint,
      cause: this.cause,
      retryAfterMs: this.retryAfterMs,
      retryable: this.retryable,
    })
    if (this.stack !== undefined) merged.stack = this.stack
    return merged
  }

  /** Exit class of a job that this error ends. */
  exitClass(rowsMoved: boolean): ExitClass {
    const rule = ERROR_RULES[this.code]
    return rowsMoved ? rule.during : rule.before
  }
}

function definedOnly(place: ErrorPlace): ErrorPlace {
  return Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined))
}

/** Any thrown thing as a SluiceError; an unknown one becomes SLUICE_INTERNAL with the original as its cause. */
export function toSluiceError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const message = error instanceof Error ? error.message : String(error)
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  // Whoever opens anything can meet it: sockets, threads, sluice's own modules.
  if (code === 'EMFILE' || code === 'ENFILE')
    return new SluiceError('SLUICE_LOCAL_IO', 'too many open files', { cause: error, hint: 'raise ulimit -n' })
  return new SluiceError('SLUICE_INTERNAL', message, { cause: error })
}

/** What is there, or null where it is not (SLUICE_NOT_FOUND). */
export async function nullIfMissing<T>(looking: Promise<T>): Promise<T | null> {
  try {
    return await looking
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'SLUICE_NOT_FOUND') return null
    throw error
  }
}

/** "s3://b/k.csv row 1042 (byte 88123), column age, partition 7/64" */
export function formatPlace(place: ErrorPlace): string {
  const row = place.row === undefined ? '' : `row ${place.row}`
  const finer = [
    place.line === undefined ? '' : `line ${place.line}`,
    place.byte === undefined ? '' : `byte ${place.byte}`,
  ].filter(Boolean)
  const spot = [row, finer.length > 0 ? (row ? `(${finer.join(', ')})` : finer.join(', ')) : '']
    .filter(Boolean)
    .join(' ')
  const head = [place.url ?? '', spot].filter(Boolean).join(' ')
  const rest = [
    place.column === undefined ? '' : cut(`column ${place.column}`),
    place.partition === undefined ? '' : `partition ${place.partition}`,
  ].filter(Boolean)
  return [head, ...rest].filter(Boolean).join(', ')
}
