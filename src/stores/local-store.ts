import type { BigIntStats } from 'node:fs'
import { stat, unlink } from 'node:fs/promises'
import { SluiceError } from '../core/errors.ts'
import type { Abortable, ByteRange, ObjectInfo, ObjectWriter, WritableStore, WriteOptions } from '../core/ports.ts'
import { checkFilePlace, openFileWriter, removeTemporary } from './local/file-writer.ts'
import { listFiles, type ListOptions } from './local/list-folder.ts'
import { localErrorCode, translateLocalError } from './local/local-error.ts'
import { infoOf, isSpecial, statOf } from './local/local-info.ts'
import { readRegular, readSpecial } from './local/read-file.ts'
import { openSpecialWriter, ownDescriptor } from './local/special-writer.ts'
import { parseIntent } from './local/temporary-name.ts'

/** Eight MiB: large enough that a write costs nothing beside its bytes, small enough for several in flight. */
const PART_BYTES = 8 * 1024 * 1024

/** The local store's own `list` can leave folders out. */
export interface LocalStore extends WritableStore {
  list(prefix: string, o: ListOptions): AsyncIterable<ObjectInfo>
}

/**
 * Files of this machine; a key is an absolute path. Reads are pinned to time, size and inode. Writes go to a temporary name in the same
 * folder and are synced before the file gets its own; a writer that is taken up again begins anew (`present` is empty), since a
 * crash may have lost any of its parts. FIFOs, terminals and devices are read once, and written in place.
 */
export function createLocalStore(): LocalStore {
  const taken = new Set<string>()
  return {
    head: async (key, o) => {
      o.signal.throwIfAborted()
      return infoOf(key, await statOf(key))
    },
    read: (info, range, o) => (info.ranged ? readRegular(info, range, o) : readOnce(info, range, { ...o, taken })),
    list: (prefix, o) => listFiles(prefix, o),
    partBytes: (_size, wanted) => Math.max(1, wanted ?? PART_BYTES),
    checkPlace: async (key, o) => {
      o.signal.throwIfAborted()
      if ((await writtenInPlace(key)) === null) await checkFilePlace(key)
    },
    openWriter,
    discard: async (intent, o) => {
      o.signal.throwIfAborted()
      const ours = parseIntent(intent)
      if (ours !== null) await removeTemporary(ours)
    },
    delete: async (key, o) => {
      o.signal.throwIfAborted()
      await unlink(key).catch((error: unknown) => {
        if (localErrorCode(error) !== 'ENOENT') throw translateLocalError(error, key)
      })
    },
    close: () => Promise.resolve(),
  }
}

/** Whether there is a FIFO, a terminal, another device, or one of this process's own descriptors. */
export async function isSpecialFile(key: string): Promise<boolean> {
  if (ownDescriptor(key) !== null) return true
  return stat(key, { bigint: true }).then(isSpecial, () => false)
}

/** A listing that finds nothing asks whether there is anything to look through. @throws SLUICE_NOT_FOUND */
export async function requireFolder(key: string): Promise<void> {
  // With the slash at its end, the name of a file is none (ENOTDIR).
  await statOf(key.endsWith('/') ? key : `${key}/`)
}

/** `taken` grows by one name for each FIFO or device that is read. */
async function* readOnce(
  info: ObjectInfo,
  range: ByteRange,
  o: Abortable & { taken: Set<string> },
): AsyncGenerator<Uint8Array, void, undefined> {
  if (o.taken.has(info.key)) {
    throw new SluiceError('SLUICE_NOT_REPLAYABLE', 'a FIFO or device can be read only once', {
      where: { url: info.url },
      hint: 'write it to a file first, and load that',
    })
  }
  o.taken.add(info.key)
  yield* readSpecial(info, range, o)
}

async function openWriter(key: string, options: WriteOptions, o: Abortable): Promise<ObjectWriter> {
  o.signal.throwIfAborted()
  const special = await writtenInPlace(key)
  return special === null ? openFileWriter(key, options, o) : openSpecialWriter(key, special.isFIFO(), o)
}

/** What is there and is written in place; null for a regular file, or nothing. */
async function writtenInPlace(key: string): Promise<BigIntStats | null> {
  const there = await stat(key, { bigint: true }).catch((error: unknown) => {
    if (localErrorCode(error) === 'ENOENT') return null
    throw translateLocalError(error, key)
  })
  return there !== null && (isSpecial(there) || ownDescriptor(key) !== null) ? there : null
}
