import { fstatSync } from 'node:fs'
import { SluiceError } from '../core/errors.ts'

/**
 * Standard input, where a source is `-`. Node takes a folder (`< .`) for an input without bytes.
 *
 * @throws SLUICE_USAGE
 */
export function standardInputFor(source: string): NodeJS.ReadStream | undefined {
  if (source !== '-') return undefined
  if (isFolder())
    throw new SluiceError('SLUICE_USAGE', 'standard input is a folder', {
      where: { url: '-' },
      hint: 'redirect a file into it, or name the folder with a / at its end',
    })
  return process.stdin
}

function isFolder(): boolean {
  try {
    return fstatSync(0).isDirectory()
  } catch {
    return false
  }
}
