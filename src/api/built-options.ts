import { SluiceError } from '../core/errors.ts'
import type { Connector, EndpointRequest } from '../connectors/connector.ts'
import type { CopyOptions } from '../core/options.ts'
import { NEUTRAL_TYPES, parseDecimalType } from '../core/schema.ts'
import { endpointRequest } from './endpoints.ts'
import type { Route, Surroundings } from './endpoints.ts'
import type { CopyRequest } from './requests.ts'

/**
 * Values of known options that later issues bring; nothing is done by halves.
 *
 * @throws SLUICE_NOT_YET, SLUICE_USAGE
 */
export function requireBuilt(options: CopyOptions, sink: Connector): void {
  requireMode(options, sink)
  refuseUnknownTypes(options, sink)
  if (options.sourceCompression === 'bzip2' || options.sinkCompression === 'bzip2') throw notYet('bzip2')
  if (options.sinkCompression === 'zip') throw notYet('--sink-compression zip')
  if (options.mode === 'truncate' && options.yes !== true)
    throw new SluiceError('SLUICE_USAGE', '--mode truncate empties the table', { hint: 'say --yes if that is meant' })
}

/** Flags that only one kind of source or sink heeds: another would do less than was asked for, without a word. */
const OF_ONE: readonly { key: keyof CopyOptions; flag: string; end: 'source' | 'sink'; of: string }[] = [
  { key: 'create', flag: '--create', end: 'sink', of: 'PostgreSQL' },
  { key: 'beforeSql', flag: '--before-sql', end: 'sink', of: 'PostgreSQL' },
  { key: 'afterSql', flag: '--after-sql', end: 'sink', of: 'PostgreSQL' },
  { key: 'commit', flag: '--commit', end: 'sink', of: 'PostgreSQL' },
  { key: 'ledgerSchema', flag: '--ledger-schema', end: 'sink', of: 'PostgreSQL' },
  { key: 'query', flag: '--query', end: 'source', of: 'PostgreSQL' },
  { key: 'createTable', flag: '--create-table', end: 'sink', of: 'DynamoDB' },
  { key: 'partitionKey', flag: '--partition-key', end: 'sink', of: 'DynamoDB' },
  { key: 'sortKey', flag: '--sort-key', end: 'sink', of: 'DynamoDB' },
  { key: 'warmWrites', flag: '--warm-writes', end: 'sink', of: 'DynamoDB' },
  { key: 'writeUnits', flag: '--write-units', end: 'sink', of: 'DynamoDB' },
  { key: 'dedupe', flag: '--dedupe', end: 'sink', of: 'DynamoDB' },
  { key: 'readUnits', flag: '--read-units', end: 'source', of: 'DynamoDB' },
  { key: 'rowGroupRows', flag: '--row-group-rows', end: 'sink', of: 'Parquet' },
  { key: 'rowGroupBytes', flag: '--row-group-bytes', end: 'sink', of: 'Parquet' },
  { key: 'parquetCodec', flag: '--parquet-codec', end: 'sink', of: 'Parquet' },
]

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
  const other = OF_ONE.find(({ key, end, of }) => {
    const wanted = options[key] !== undefined && options[key] !== false && ends.defaults?.includes(key) !== true
    return wanted && ends[end]?.kinds.includes(of) === false
  })
  if (other === undefined) return
  const about = other.of === 'Parquet' ? 'Parquet that is written' : `a table of ${other.of}`
  throw new SluiceError(
    'SLUICE_USAGE',
    `${other.flag} is about ${about}, and the ${other.end} is ${ends[other.end]?.name ?? ''}`,
    { hint: hintFor(other, ends[other.end]?.name) },
  )
}

function hintFor({ key, end, of }: (typeof OF_ONE)[number], name: string | undefined): string {
  if (key === 'create' && name === 'DynamoDB') return '--create-table makes a table of DynamoDB'
  if (of === 'Parquet' && name === 'file')
    return 'leave it out, or say --sink-format parquet; bytes that are copied as they are stay so'
  return `leave it out, or check the URL of the ${end}`
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

/** The ends of a copy. A file's format counts where rows are written in it; unknown (a prefix, by its name alone), it may be any. */
export function endsOf(route: Route, request: { source: EndpointRequest; sink: EndpointRequest }): EndsOfCopy {
  const { source, sink, raw } = route
  if (sink.fileKind === undefined)
    return { source: onlyName(source.name), sink: { kinds: [sink.name], name: sink.name } }
  const { options } = request.sink
  const own = options.sinkFormat ?? sink.fileKind(request.sink).format
  const format = own === 'raw' ? (options.sourceFormat ?? source.fileKind?.(request.source).format ?? own) : own
  const parquet = !raw && (format === 'parquet' || format === 'raw')
  return {
    source: onlyName(source.name),
    sink: { kinds: parquet ? [sink.name, 'Parquet'] : [sink.name], name: sink.name },
  }
}

interface EndsOfCopy {
  readonly source: Heeding
  readonly sink: Heeding
}

/** An end that is known by its connector alone. */
export const onlyName = (name: string): Heeding => ({ kinds: [name], name })

/** Names of types that a file's format knows: sluice's own, and decimals of Parquet. @throws SLUICE_USAGE */
function refuseUnknownTypes({ type = [] }: CopyOptions, sink: Connector): void {
  if (sink.fileKind === undefined) return
  const unknown = type.find((pair) => !isFileType(pair.slice(pair.indexOf('=') + 1)))
  if (unknown === undefined) return
  throw new SluiceError('SLUICE_USAGE', `--type ${unknown}: a file has no such type`, {
    hint: `one of ${NEUTRAL_TYPES.join(', ')}, binary:hex or numeric(p,s)`,
  })
}

function isFileType(name: string): boolean {
  return (
    NEUTRAL_TYPES.some((own) => own === name) || /^binary:(hex|base64)$/.test(name) || parseDecimalType(name) !== null
  )
}

/** @throws SLUICE_NOT_YET where the sink lacks the mode, SLUICE_USAGE where it has none */
function requireMode({ mode = 'append' }: CopyOptions, { name, modes }: Connector): void {
  if (modes === undefined) {
    if (mode === 'append') return
    throw new SluiceError('SLUICE_USAGE', `--mode ${mode} is about the rows of a table, and the sink is a ${name}`, {
      hint: 'leave it out; --if-exists overwrite replaces an output that is there',
    })
  }
  if (modes.includes(mode)) return
  throw new SluiceError('SLUICE_NOT_YET', `--mode ${mode} into ${name} is specified and not built yet`, {
    hint: `${name} has ${modes.map((one) => `--mode ${one}`).join(' and ')}`,
  })
}

function notYet(what: string): SluiceError {
  return new SluiceError('SLUICE_NOT_YET', `${what} is specified and not built yet`)
}
