import { SluiceError } from '../core/errors.ts'
import type { Connector } from '../connectors/connector.ts'
import type { CopyOptions } from '../core/options.ts'

/**
 * Values of known options that later issues bring; nothing is done by halves.
 *
 * @throws SLUICE_NOT_YET, SLUICE_USAGE
 */
export function requireBuilt(options: CopyOptions, sink: Connector): void {
  requireMode(options, sink)
  refuseOfOthers(options, sink)
  if (options.sourceCompression === 'bzip2' || options.sinkCompression === 'bzip2') throw notYet('bzip2')
  if (options.sinkCompression === 'zip') throw notYet('--sink-compression zip')
  if (options.mode === 'truncate' && options.yes !== true)
    throw new SluiceError('SLUICE_USAGE', '--mode truncate empties the table', { hint: 'say --yes if that is meant' })
}

/** Flags that only one kind of sink heeds: another would do less than was asked for, without a word. */
const OF_SINK: readonly { key: keyof CopyOptions; flag: string; sink: string }[] = [
  { key: 'create', flag: '--create', sink: 'PostgreSQL' },
  { key: 'beforeSql', flag: '--before-sql', sink: 'PostgreSQL' },
  { key: 'afterSql', flag: '--after-sql', sink: 'PostgreSQL' },
  { key: 'createTable', flag: '--create-table', sink: 'DynamoDB' },
]

/** @throws SLUICE_USAGE */
function refuseOfOthers(options: CopyOptions, { name }: Connector): void {
  const other = OF_SINK.find(({ key, sink }) => sink !== name && options[key] !== undefined && options[key] !== false)
  if (other === undefined) return
  throw new SluiceError('SLUICE_USAGE', `${other.flag} is about a table of ${other.sink}, and the sink is ${name}`, {
    hint:
      other.key === 'create' && name === 'DynamoDB'
        ? '--create-table makes a table of DynamoDB'
        : 'leave it out, or check the URL of the sink',
  })
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
