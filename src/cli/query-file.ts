import { readFileSync } from 'node:fs'
import { SluiceError } from '../core/errors.ts'
import type { CopyOptions } from '../core/options.ts'
import type { OwnSettings } from './context.ts'

/**
 * The options with the statement of `--query-file` as their query: the library reads no file of the command line.
 *
 * @throws SLUICE_USAGE for both flags at once, for a file that cannot be read and for one without a statement
 */
export function withQueryFile(options: CopyOptions, own: OwnSettings): CopyOptions {
  if (own.queryFile === undefined) return options
  if (options.query !== undefined)
    throw new SluiceError('SLUICE_USAGE', '--query and --query-file contradict each other', {
      hint: 'give one of them',
    })
  const query = readQuery(own.queryFile)
  if (query.trim() === '')
    throw new SluiceError('SLUICE_USAGE', `--query-file ${own.queryFile}: there is no statement in it`)
  return { ...options, query }
}

function readQuery(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    throw new SluiceError('SLUICE_USAGE', `--query-file ${path}: ${error instanceof Error ? error.message : ''}`, {
      cause: error,
    })
  }
}
