import type { BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { SluiceError } from '../../core/errors.ts'
import type { ObjectInfo } from '../../core/ports.ts'
import { translateLocalError } from './local-error.ts'

/**
 * What pins a regular file: `mtime:<ns>;size:<bytes>;inode:<number>`. A change that keeps the size and falls into the same
 * tick of the kernel's clock (4 ms or less on Linux) as the last one is not seen.
 */
export function localPin(stats: BigIntStats): string {
  return `mtime:${stats.mtimeNs};size:${stats.size};inode:${stats.ino}`
}

/** A FIFO, a terminal or another device: bytes come once, in order, and nobody knows how many. */
export function isSpecial(stats: BigIntStats): boolean {
  return stats.isFIFO() || stats.isCharacterDevice() || stats.isBlockDevice()
}

/** @throws SLUICE_USAGE for a folder, SLUICE_LOCAL_IO for a socket */
export function infoOf(path: string, stats: BigIntStats): ObjectInfo {
  if (stats.isDirectory()) throw folderError(path)
  if (isSpecial(stats)) {
    return { key: path, url: path, size: null, etag: null, modifiedMs: null, ranged: false, replayable: false }
  }
  if (!stats.isFile())
    throw new SluiceError('SLUICE_LOCAL_IO', 'a socket cannot be read as a file', { where: { url: path } })
  return {
    key: path,
    url: path,
    size: Number(stats.size),
    etag: localPin(stats),
    modifiedMs: Number(stats.mtimeMs),
    ranged: true,
    replayable: true,
  }
}

/** Follows links. @throws what translateLocalError makes of it */
export async function statOf(path: string): Promise<BigIntStats> {
  return stat(path, { bigint: true }).catch((error: unknown) => {
    throw translateLocalError(error, path)
  })
}

export function folderError(path: string): SluiceError {
  const folder = path.endsWith('/') ? path : `${path}/`
  return new SluiceError('SLUICE_USAGE', 'this is a folder, not a file', {
    where: { url: path },
    hint: `write ${folder} to mean every file in it, or name a file`,
  })
}
