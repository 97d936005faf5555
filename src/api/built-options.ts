import { SluiceError } from '../core/errors.ts'
import type { CopyOptions } from '../core/options.ts'

/**
 * Values of known options that later issues bring; nothing is done by halves.
 *
 * @throws SLUICE_NOT_YET, SLUICE_USAGE
 */
export function requireBuilt(options: CopyOptions, sink: string): void {
  const { mode } = options
  // A put replaces the item with the same key: into DynamoDB it is what append does.
  const upserts = mode === 'upsert' && /^dynamodb:/i.test(sink)
  if (mode !== undefined && mode !== 'append' && mode !== 'truncate' && !upserts) throw notYet(`--mode ${mode}`)
  if (options.sourceCompression === 'bzip2' || options.sinkCompression === 'bzip2') throw notYet('bzip2')
  if (options.sinkCompression === 'zip') throw notYet('--sink-compression zip')
  if (options.mode === 'truncate' && options.yes !== true)
    throw new SluiceError('SLUICE_USAGE', '--mode truncate empties the table', { hint: 'say --yes if that is meant' })
}

function notYet(what: string): SluiceError {
  return new SluiceError('SLUICE_NOT_YET', `${what} is specified and not built yet`)
}
