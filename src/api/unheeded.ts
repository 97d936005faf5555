import { SluiceError } from '../core/errors.ts'
import type { EndpointRequest } from '../connectors/connector.ts'
import type { CopyOptions } from '../core/options.ts'
import { endpointRequest, flagName } from './endpoints.ts'
import type { Route, Surroundings } from './endpoints.ts'
import type { CopyRequest } from './requests.ts'

/** Who heeds a flag: a connector by its name, or one of a file's formats. */
type Heeder = 'PostgreSQL' | 'DynamoDB' | 'file' | 'Parquet' | 'CSV'

/** Flags that only one kind of source or sink heeds: another would do less than was asked for, without a word. */
const OF_ONE: Readonly<Record<'source' | 'sink', Partial<Record<Heeder, readonly (keyof CopyOptions)[]>>>> = {
  sink: {
    PostgreSQL: ['create', 'beforeSql', 'afterSql', 'commit', 'ledgerSchema'],
    DynamoDB: ['createTable', 'partitionKey', 'sortKey', 'warmWrites', 'writeUnits', 'dedupe'],
    file: ['ifExists', 'sinkFormat', 'sinkCompression', 'manifest', 'singleFile', 'maxFileSize', 'partSize'],
    Parquet: ['rowGroupRows', 'rowGroupBytes', 'parquetCodec'],
    CSV: ['lineEnd'],
  },
  source: {
    PostgreSQL: ['query'],
    DynamoDB: ['readUnits'],
    file: ['sourceFormat', 'sourceCompression', 'entry', 'encoding', 'onInvalidUtf8', 'onNul'],
    CSV: ['delimiter', 'quote', 'escape', 'header', 'skipLines', 'null', 'ragged'],
  },
}

interface Flag {
  readonly key: keyof CopyOptions
  readonly end: 'source' | 'sink'
  readonly of: Heeder
}

const FLAGS: readonly Flag[] = (['sink', 'source'] as const).flatMap((end) =>
  (Object.entries(OF_ONE[end]) as [Heeder, readonly (keyof CopyOptions)[]][]).flatMap(([of, keys]) =>
    keys.map((key) => ({ key, end, of })),
  ),
)

/** What a flag is about, for people. */
function aboutOf({ of, end }: Flag): string {
  if (of === 'PostgreSQL' || of === 'DynamoDB') return `a table of ${of}`
  const done = end === 'source' ? 'read' : 'written'
  return of === 'file' ? `files that are ${done}` : `${of} that is ${done}`
}

/** What an end is: the names that a flag may be about, and the one to tell people. */
interface Heeding {
  readonly kinds: readonly string[]
  readonly name: string
}

/**
 * That an option which only one kind of source, or sink, heeds has such a one. Those of `defaults` stand for any copy (a config file's), and are passed over.
 *
 * @throws SLUICE_USAGE
 */
export function refuseUnheeded(
  options: CopyOptions,
  ends: { readonly source?: Heeding; readonly sink?: Heeding; readonly defaults?: readonly string[] | undefined },
): void {
  const other = FLAGS.find(({ key, end, of }) => {
    const wanted = options[key] !== undefined && (options[key] !== false || key === 'header')
    return wanted && ends.defaults?.includes(key) !== true && ends[end]?.kinds.includes(of) === false
  })
  if (other === undefined) return
  const name = ends[other.end]?.name ?? ''
  const flag = other.key === 'header' && options.header === false ? 'no-header' : flagName(other.key)
  throw new SluiceError('SLUICE_USAGE', `--${flag} is about ${aboutOf(other)}, and the ${other.end} is ${name}`, {
    hint: hintFor(other, name),
  })
}

function hintFor({ key, end, of }: Flag, name: string): string {
  if (key === 'create' && name === 'DynamoDB') return '--create-table makes a table of DynamoDB'
  if (key === 'ifExists' && name === 'PostgreSQL')
    return 'rows are added to those that are there; --mode truncate takes those away first'
  if (of === 'Parquet' && name === 'file')
    return 'leave it out, or say --sink-format parquet; bytes that are copied as they are stay so'
  if (of === 'CSV' && end === 'source') return 'leave it out; CSV is written with commas, quotes and a header'
  return `leave it out, or check the ${end === 'source' ? 'URL and the format of the source' : 'URL of the sink'}`
}
/**
 * `refuseUnheeded` for a copy.
 *
 * @throws SLUICE_USAGE
 */
export function refuseUnheededBy(route: Route, request: CopyRequest, around: Surroundings): void {
  const { source, sink, options, defaults } = request
  const ends = endsOf(route, { source: endpointRequest(source, around), sink: endpointRequest(sink, around) })
  refuseUnheeded(options, { ...ends, defaults })
}

/** The ends of a copy. A file's format counts where rows are; unknown (a prefix, by its name alone), it may be any. */
export function endsOf(route: Route, request: { source: EndpointRequest; sink: EndpointRequest }): EndsOfCopy {
  const { source, sink, raw } = route
  const { options } = request.sink
  const read = options.sourceFormat ?? source.fileKind?.(request.source).format
  const from = read === undefined ? onlyName(source.name) : fileEnd(source.name, read)
  if (sink.fileKind === undefined) return { source: from, sink: onlyName(sink.name) }
  const own = options.sinkFormat ?? sink.fileKind(request.sink).format
  const format = own === 'raw' ? (read ?? own) : own
  const to = fileEnd(sink.name, format)
  return { source: from, sink: raw ? { ...to, kinds: to.kinds.filter((kind) => kind !== 'Parquet') } : to }
}

/** A file by its format; `raw` is one that is not known, and may be any. */
function fileEnd(name: string, format: string): Heeding {
  const csv = format === 'csv' || format === 'tsv' || format === 'raw'
  const parquet = format === 'parquet' || format === 'raw'
  return {
    kinds: [name, ...(csv ? ['CSV'] : []), ...(parquet ? ['Parquet'] : [])],
    name: format === 'raw' ? name : (NAMES_OF_FORMATS[format] ?? name),
  }
}

const NAMES_OF_FORMATS: Readonly<Record<string, string>> = {
  jsonl: 'JSON Lines',
  parquet: 'Parquet',
  'dynamodb-json': 'DynamoDB JSON',
}

interface EndsOfCopy {
  readonly source: Heeding
  readonly sink: Heeding
}

/** An end that is known by its connector alone; a file may be of any format. */
export function onlyName(name: string): Heeding {
  return { kinds: name === 'file' ? [name, 'CSV', 'Parquet'] : [name], name }
}
