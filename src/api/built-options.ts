import { SluiceError } from '../core/errors.ts'
import type { CopyOptions } from '../core/options.ts'

/**
 * Values of known options that later issues bring; nothing is done by halves.
 *
 * @throws SLUICE_NOT_YET, SLUICE_USAGE
 */
export function requireBuilt(options: CopyOptions): void {
  const { mode } = options
  if (mode !== undefined && mode !== 'append' && mode !== 'truncate') throw notYet(`--mode ${mode}`)
  for (const flag of ['sourceFormat', 'sinkFormat'] as const) {
    const format = options[flag]
    if (format === 'dynamodb-json')
      throw notYet(`${flag === 'sourceFormat' ? '--source-format' : '--sink-format'} ${format}`)
  }
  if (options.sourceCompression === 'bzip2' || options.sinkCompression === 'bzip2') throw notYet('bzip2')
  if (options.sinkCompression === 'zip') throw notYet('--sink-compression zip')
  if (options.mode === 'truncate' && options.yes !== true)
    throw new SluiceError('SLUICE_USAGE', '--mode truncate empties the table', { hint: 'say --yes if that is meant' })
}

function notYet(what: string): SluiceError {
  return new SluiceError('SLUICE_NOT_YET', `${what} is specified and not built yet`)
}
