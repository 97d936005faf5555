import { SluiceError } from '../core/errors.ts'
import type { Connector } from '../connectors/connector.ts'
import type { CopyOptions } from '../core/options.ts'
import { NEUTRAL_TYPES, parseDecimalType } from '../core/schema.ts'

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
