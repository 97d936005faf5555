import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Makes a folder, and those above it that are missing. mkdir's own `recursive` tries for ever where a file system has no place for new names
 * (/proc/x: ENOENT below a folder that is there; Node 20); here each folder is tried twice at most.
 *
 * @throws the error of mkdir; an existing folder is none
 */
export async function makeFolders(path: string, mode: number): Promise<void> {
  try {
    await makeOne(path, mode)
  } catch (error) {
    const above = dirname(path)
    if (codeOf(error) !== 'ENOENT' || above === path) throw error
    await makeFolders(above, mode)
    await makeOne(path, mode)
  }
}

/** What stands there and is no folder is found by who puts the next one, or a file, into it. */
async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}
