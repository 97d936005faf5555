import type { CommandName } from './command-table.ts'
import { type Flag, flag, type FlagGroup } from './flag.ts'
import * as v from './flag-values.ts'

const FORMATS = ['csv', 'tsv', 'jsonl', 'parquet', 'dynamodb-json', 'raw']
const COMPRESSIONS = ['none', 'gzip', 'zstd', 'bzip2', 'zip']

const COPIES: readonly CommandName[] = ['copy', 'plan']
const PAIRS: readonly CommandName[] = [...COPIES, 'verify']
const READERS: readonly CommandName[] = [...PAIRS, 'inspect', 'cat']
const STORES: readonly CommandName[] = [...READERS, 'ls']
const AWS: readonly CommandName[] = [...STORES, 'table']
const STATEFUL: readonly CommandName[] = ['copy', 'plan', 'verify', 'jobs', 'show', 'resume', 'demo']
const JOBS: readonly CommandName[] = ['copy', 'resume']
const PRINTERS: readonly CommandName[] = [...STORES, 'jobs', 'show', 'resume', 'table', 'dev', 'demo']
const ALL: readonly CommandName[] = [...PRINTERS, 'completion', 'help']

const f = (group: FlagGroup, commands: readonly CommandName[]) => ({ group, commands })
/** Flags of the specification that are not built: they are refused by name. */
const later = (group: FlagGroup, commands: readonly CommandName[], spellings: readonly string[]): Flag[] =>
  spellings.map((spelling) => flag(spelling, 'not built yet', { ...f(group, commands), value: v.text, built: false }))

/** Every flag of the command line, in the order of the help. */
export const FLAGS: readonly Flag[] = [
  flag('source-format FORMAT', 'format of the source, where name and bytes do not tell', {
    ...f('format', READERS),
    value: v.choice(FORMATS),
  }),
  flag('sink-format FORMAT', 'format of the sink, where its name does not tell', {
    ...f('format', PAIRS),
    value: v.choice(FORMATS),
  }),
  flag('source-compression NAME', 'compression of the source; magic bytes tell by default', {
    ...f('format', READERS),
    value: v.choice(COMPRESSIONS, ['bzip2']),
  }),
  flag('sink-compression NAME', 'compression of the sink; its name tells by default', {
    ...f('format', PAIRS),
    value: v.choice(COMPRESSIONS, ['bzip2']),
  }),
  flag('entry NAME', 'entry of a zip; by default its only data file', { ...f('format', READERS), value: v.text }),
  flag('no-glob', 'take *?[{ in names as themselves', { ...f('format', STORES), key: 'glob', value: v.toggle }),

  flag('delimiter C', 'between fields; default: comma, tab for .tsv', {
    ...f('CSV', READERS),
    value: v.oneByte({ none: false }),
  }),
  flag('quote C', 'around fields; none makes quotes plain characters', {
    ...f('CSV', READERS),
    value: v.oneByte({ none: true }),
  }),
  flag('escape C', 'before a quote inside quotes; default: the quote', {
    ...f('CSV', READERS),
    value: v.oneByte({ none: false }),
  }),
  flag('header', 'the first row names the columns (the default)', { ...f('CSV', READERS), value: v.toggle }),
  flag('no-header', 'the first row is data', { ...f('CSV', READERS), key: 'header', value: v.toggle }),
  flag('columns A,B', 'names of the columns where there is no header', { ...f('CSV', READERS), value: v.names }),
  flag('skip-lines N', 'physical lines to pass over at the beginning', {
    ...f('CSV', READERS),
    value: v.whole(0, { auto: false }),
  }),
  flag('null TEXT', 'unquoted text that means NULL (repeatable)', { ...f('CSV', READERS), value: v.texts }),
  flag('empty AS', 'what an unquoted empty field is; default: null', {
    ...f('CSV', READERS),
    value: v.choice(['null', 'string', 'omit']),
  }),
  flag('ragged WHAT', 'rows with too few or too many fields; default: reject', {
    ...f('CSV', READERS),
    value: v.choice(['reject', 'fill', 'trim']),
  }),
  flag('encoding NAME', 'of text, by its WHATWG name; default: utf-8', { ...f('CSV', READERS), value: v.encoding }),
  flag('on-invalid-utf8 WHAT', 'bytes that are no valid text; default: error', {
    ...f('CSV', READERS),
    value: v.choice(['error', 'reject', 'replace']),
  }),
  flag('on-nul WHAT', 'NUL characters; default: error', {
    ...f('CSV', READERS),
    value: v.choice(['error', 'reject', 'strip']),
  }),
  flag('line-end HOW', 'of CSV output; default: auto (as in the source, else lf)', {
    ...f('CSV', COPIES),
    value: v.choice(['auto', 'lf', 'crlf']),
  }),
  ...later('CSV', READERS, ['comment C']),

  flag('by-position', 'match columns by position, not by name', { ...f('mapping', PAIRS), value: v.toggle }),
  flag('select A,B', 'only these columns, in this order', { ...f('mapping', PAIRS), value: v.names }),
  flag('rename OLD=NEW', 'rename a column (repeatable, or a=b,c=d)', {
    ...f('mapping', PAIRS),
    value: v.pairs({ split: true, form: 'old=new' }),
  }),
  flag('type COLUMN=TYPE', 'type of a column (repeatable, or a=b,c=d)', {
    ...f('mapping', PAIRS),
    value: v.pairs({ split: true, form: 'column=TYPE' }),
  }),
  flag('set COLUMN=TEXT', 'a column with the same text in each row (repeatable)', {
    ...f('mapping', PAIRS),
    value: v.pairs({ split: false, form: 'column=constant' }),
  }),
  flag('skip-if-empty A,B', 'leave out rows where one of these is empty', { ...f('mapping', PAIRS), value: v.names }),
  flag('replace COLUMN=/RE/TEXT/', 'replace every match in a column (repeatable)', {
    ...f('mapping', PAIRS),
    value: v.replacement,
  }),
  ...later('mapping', PAIRS, ['filename-column NAME', 'transform FILE']),

  flag('mode MODE', 'what happens to rows that are there; default: append', {
    ...f('mode', COPIES),
    value: v.choice(
      ['append', 'truncate', 'upsert', 'replace', 'skip-existing', 'sync'],
      ['replace', 'skip-existing', 'sync'],
    ),
  }),
  flag('create', 'create the table if it is missing', { ...f('mode', COPIES), value: v.toggle }),
  flag('if-exists WHAT', 'an output that is there already; default: fail', {
    ...f('mode', COPIES),
    value: v.choice(['fail', 'overwrite', 'skip']),
  }),
  flag('yes', 'do what destroys without asking', {
    ...f('mode', [...COPIES, 'table']),
    value: v.toggle,
    configurable: false,
  }),
  ...later('mode', PAIRS, ['key A,B']),
  ...later('bad rows', COPIES, ['reject-limit N', 'reject-file URL']),

  flag('commit WHEN', 'all at the end (job, the default), or each partition', {
    ...f('PostgreSQL', COPIES),
    value: v.choice(['job', 'partition']),
  }),
  flag('ledger-schema NAME', 'schema of the ledger of --commit partition; default: sluice', {
    ...f('PostgreSQL', COPIES),
    value: v.text,
  }),
  flag('time-zone NAME', 'of times without an offset; default: UTC', { ...f('PostgreSQL', PAIRS), value: v.text }),
  flag('before-sql SQL', 'run first (repeatable)', { ...f('PostgreSQL', COPIES), value: v.texts }),
  flag('after-sql SQL', 'run last (repeatable)', { ...f('PostgreSQL', COPIES), value: v.texts }),
  flag('query SQL', 'read what one statement gives, instead of a table', {
    ...f('PostgreSQL', READERS),
    value: v.text,
    configurable: false,
  }),
  flag('query-file FILE', 'the same, from a file', {
    ...f('PostgreSQL', READERS),
    value: v.text,
    scope: 'cli',
    configurable: false,
  }),
  flag('numeric TYPE', 'what numeric without precision is in Parquet: decimal(p,s); default: text', {
    ...f('PostgreSQL', PAIRS),
    value: v.decimalType,
  }),
  flag('on-special WHAT', 'what the format has no room for, as infinity in Parquet; default: error', {
    ...f('PostgreSQL', PAIRS),
    value: v.choice(['error', 'null', 'text']),
  }),
  ...later('PostgreSQL', READERS, ['via HOW', 'freeze', 'analyze', 'drop-indexes']),

  flag('create-table', 'create the table if it is missing, on demand, and wait for it', {
    ...f('DynamoDB', COPIES),
    value: v.toggle,
  }),
  flag('partition-key NAME:S', 'of a table that is created; its type is S, N or B', {
    ...f('DynamoDB', [...COPIES, 'table']),
    value: v.keyAttribute,
  }),
  flag('sort-key NAME:N', 'of a table that is created', {
    ...f('DynamoDB', [...COPIES, 'table']),
    value: v.keyAttribute,
  }),
  flag('warm-writes N', 'writes a second that a created table bears at once; default: what AWS gives, 4,000', {
    ...f('DynamoDB', [...COPIES, 'table']),
    value: v.whole(1, { auto: false }),
  }),
  flag('write-units N', 'write units a second kept to, or that table create provisions; default: auto', {
    ...f('DynamoDB', [...COPIES, 'table']),
    value: v.whole(1, { auto: true }),
  }),
  flag('read-units N', 'read units a second a scan keeps to, or table create provisions; default: auto', {
    ...f('DynamoDB', [...READERS, 'table']),
    value: v.whole(1, { auto: true }),
  }),
  flag('types HOW', 'what becomes of text: typed by its values (infer), or kept; default: infer', {
    ...f('DynamoDB', PAIRS),
    value: v.choice(['infer', 'string']),
  }),
  flag('dedupe WHICH', 'a key that comes again: the last wins, an error, or as it falls; default: last', {
    ...f('DynamoDB', COPIES),
    value: v.choice(['last', 'error', 'none']),
  }),
  ...later('DynamoDB', PAIRS, ['native WHEN']),

  flag('s3-endpoint URL', 'an S3-compatible store; or AWS_ENDPOINT_URL_S3', { ...f('S3', STORES), value: v.httpUrl }),
  flag('region NAME', 'AWS region', { ...f('S3', AWS), value: v.text }),
  flag('profile NAME', 'AWS profile', { ...f('S3', AWS), value: v.text }),
  flag('no-sign-request', 'anonymous requests, for public buckets', {
    ...f('S3', STORES),
    key: 'signRequest',
    value: v.toggle,
  }),
  flag('path-style WHEN', 'bucket in the path, not in the host name; default: auto', {
    ...f('S3', STORES),
    value: v.choice(['auto', 'always', 'never']),
  }),
  flag('part-size SIZE', 'of a part of a multipart upload', { ...f('S3', COPIES), value: v.sizeFrom('1B') }),
  flag('parallelism N', 'parts in flight beside production; 0: one at a time', {
    ...f('S3', COPIES),
    value: v.partsAtOnce,
  }),
  ...later('S3', STORES, ['role-arn ARN', 'external-id ID', 'request-payer', 'expected-bucket-owner ID']),
  ...later('S3', COPIES, [
    'equal-parts',
    'checksum NAME',
    'sse NAME',
    'sse-kms-key-id ID',
    'sse-c-key-file FILE',
    'storage-class NAME',
    'acl NAME',
    'tag K=V',
    'metadata K=V',
  ]),

  flag('row-group-rows N', 'most rows of a Parquet row group; default: 122880', {
    ...f('output files', COPIES),
    value: v.whole(1, { auto: false }),
  }),
  flag('row-group-bytes SIZE', 'most bytes of a Parquet row group in memory; default: 32MiB', {
    ...f('output files', COPIES),
    value: v.sizeFrom('1B'),
  }),
  flag('parquet-codec NAME', 'compression inside Parquet; default: snappy', {
    ...f('output files', COPIES),
    value: v.choice(['snappy', 'zstd', 'gzip', 'lz4', 'brotli', 'none']),
  }),
  flag('max-file-size SIZE', 'begin another file under the prefix before this', {
    ...f('output files', COPIES),
    value: v.sizeFrom('1B'),
  }),
  flag('single-file', 'one file under a prefix, not one a partition', {
    ...f('output files', COPIES),
    value: v.toggle,
  }),
  flag('manifest URL', 'write the list of files there, last', { ...f('output files', COPIES), value: v.text }),
  ...later('output files', COPIES, ['partition-by A,B']),

  flag('concurrency N', 'requests or connections at once; default: auto', {
    ...f('speed', STORES),
    value: v.atOnce,
  }),
  flag('workers N', 'threads that write (into DynamoDB, 0: none); default: auto', {
    ...f('speed', PAIRS),
    value: v.threads,
  }),
  flag('max-memory SIZE', 'bound of the buffers together; 1MiB at least', {
    ...f('speed', READERS),
    value: v.sizeFrom('1MiB'),
  }),
  flag('retry-for TIME', 'how long without progress before it stops; default: 5m', {
    ...f('speed', AWS),
    value: v.duration,
  }),
  ...later('speed', COPIES, ['partitions N', 'bandwidth SIZE/s']),

  flag('job-id ID', 'name the job, or with --resume the one to go on with', {
    ...f('job', ['copy']),
    value: v.text,
    scope: 'cli',
    configurable: false,
  }),
  flag('resume', 'go on with the job of --job-id', {
    ...f('job', ['copy']),
    value: v.toggle,
    scope: 'cli',
    configurable: false,
  }),
  flag('new-job', 'start over although an unfinished job is there', {
    ...f('job', ['copy']),
    value: v.toggle,
    scope: 'cli',
    configurable: false,
  }),
  flag('state-dir DIR', 'where jobs are kept; default: ~/.local/state/sluice', {
    ...f('job', STATEFUL),
    value: v.text,
    scope: 'cli',
  }),
  flag('dry-run', 'the same as sluice plan', {
    ...f('job', ['copy']),
    value: v.toggle,
    scope: 'cli',
    configurable: false,
  }),
  ...later('job', COPIES, ['job FILE', 'queue URL', 'check']),

  flag('rows N', 'sample rows; default: 10', {
    ...f('this command', ['inspect']),
    value: v.whole(0, { auto: false }),
    scope: 'cli',
  }),
  flag('full', 'read everything: exact counts, a profile of each column', {
    ...f('this command', ['inspect']),
    value: v.toggle,
    scope: 'cli',
  }),
  flag('ddl FOR', 'print the CREATE TABLE', {
    ...f('this command', ['inspect']),
    value: v.choice(['postgres']),
    scope: 'cli',
  }),
  flag('as FORMAT', 'rows in this format instead of the bytes', {
    ...f('this command', ['cat']),
    value: v.choice(['csv', 'jsonl']),
    scope: 'cli',
  }),
  flag('limit N', 'differences shown; default: 10', {
    ...f('this command', ['verify']),
    value: v.whole(0, { auto: false }),
    scope: 'cli',
  }),
  ...later('this command', ['verify'], ['sample P%']),
  ...later('this command', ['inspect'], ['job']),
  flag('postgres', 'start PostgreSQL', {
    ...f('this command', ['dev']),
    value: v.toggle,
    scope: 'cli',
    configurable: false,
  }),
  flag('s3', 'start S3', { ...f('this command', ['dev']), value: v.toggle, scope: 'cli', configurable: false }),
  flag('dynamodb', 'start DynamoDB', {
    ...f('this command', ['dev']),
    value: v.toggle,
    scope: 'cli',
    configurable: false,
  }),
  flag('keep DIR', 'keep the data in this folder', {
    ...f('this command', ['dev']),
    value: v.text,
    scope: 'cli',
    configurable: false,
  }),
  flag('rows N', 'rows to generate; default: 500,000', {
    ...f('this command', ['demo']),
    value: v.whole(1, { auto: false }),
    scope: 'cli',
    configurable: false,
  }),
  flag('keep', 'leave the services running until a signal', {
    ...f('this command', ['demo']),
    value: v.toggle,
    scope: 'cli',
    configurable: false,
  }),

  flag('progress HOW', 'bar, lines, JSON or nothing; default: auto', {
    ...f('output', [...PAIRS, 'resume']),
    value: v.choice(['auto', 'plain', 'json', 'none']),
    scope: 'cli',
  }),
  flag('json', 'one JSON object on standard output', {
    ...f(
      'output',
      PRINTERS.filter((name) => name !== 'cat' && name !== 'demo'),
    ),
    value: v.toggle,
    scope: 'cli',
  }),
  ...later('output', JOBS, ['report FILE']),
  flag('quiet', 'errors only', { ...f('output', ALL), short: 'q', value: v.toggle, scope: 'cli' }),
  flag('verbose', 'more, with the stack of internal errors', {
    ...f('output', ALL),
    short: 'v',
    value: v.toggle,
    scope: 'cli',
  }),
  flag('log-level LEVEL', 'least weight of what is printed; default: info', {
    ...f('output', ALL),
    value: v.choice(['error', 'warn', 'info', 'debug']),
    scope: 'cli',
  }),
  flag('no-color', 'no colours; NO_COLOR does the same', {
    ...f('output', ALL),
    key: 'color',
    value: v.toggle,
    scope: 'cli',
  }),
  flag('help', 'this text', { ...f('output', ALL), short: 'h', value: v.toggle, scope: 'cli', configurable: false }),
]

/** Flags of a command, built ones and others, in the order of the help. */
export function flagsOf(command: CommandName): readonly Flag[] {
  return FLAGS.filter((candidate) => candidate.commands.includes(command))
}

/** The name of the SLUICE_ variable that stands for a configurable flag: its camelCase key in capitals (`retryFor`: SLUICE_RETRY_FOR). */
export function variableOf(key: string): string {
  return `SLUICE_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}
