import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import type { Abortable, ObjectInfo, Store } from '../../core/ports.ts'

interface EntryWishes extends Abortable {
  readonly entry: string | undefined
  readonly spoolDir: string
  readonly count: (bytes: number) => void
  /** The archive's bytes, counted already, where it has to be spooled: it may be readable only once. */
  readonly bytes: () => AsyncIterable<Uint8Array>
}

interface OpenEntry {
  readonly name: string
  readonly chunks: AsyncIterable<Uint8Array>
  /** Removes the spooled copy, where there is one; to be called whether or not the chunks were read. */
  readonly close: () => Promise<void>
}

/**
 * The data entry of a zip, decompressed: by the archive's directory over ranges, or from a spooled copy where the server has no
 * ranges (the copy is as large as the archive).
 *
 * @throws SLUICE_ARCHIVE_ENTRY, SLUICE_COMPRESSION, SLUICE_DISK_FULL
 */
export async function openEntry(store: Store, info: ObjectInfo, wishes: EntryWishes): Promise<OpenEntry> {
  return readsByRanges(info) ? openRanged(store, info, wishes) : openSpooled(info, wishes)
}

/** Whether an archive can be read where it is. */
export function readsByRanges(info: ObjectInfo): boolean {
  return info.ranged && info.size !== null
}

/** Whether there is a zip in a file that does not begin like one: a program that unpacks itself. */
export async function holdsArchive(store: Store, info: ObjectInfo, o: Abortable): Promise<boolean> {
  if (!readsByRanges(info)) return false
  const { archiveWithin } = await import('../../compression/zip-place.ts')
  const reader = {
    size: info.size ?? 0,
    read: (range: { start: number; end: number }, abortable: Abortable) => store.read(info, range, abortable),
  }
  return (await archiveWithin(reader, { url: info.url, signal: o.signal })) !== null
}

async function openRanged(store: Store, info: ObjectInfo, wishes: EntryWishes): Promise<OpenEntry> {
  const { openZip, pickEntry } = await import('../../compression/zip.ts')
  const { countBytes } = await import('./chunks.ts')
  const reader = {
    size: info.size ?? 0,
    read: (range: { start: number; end: number }, o: Abortable) => countBytes(store.read(info, range, o), wishes.count),
  }
  const place = { url: info.url, signal: wishes.signal }
  const archive = await openZip(reader, place)
  const entry = pickEntry(archive, wishes.entry)
  return { name: entry.name, chunks: archive.readEntry(entry, place), close: async () => undefined }
}

async function openSpooled(info: ObjectInfo, wishes: EntryWishes): Promise<OpenEntry> {
  const { createLocalStore } = await import('../../stores/local-store.ts')
  const { mkdir, open } = await import('node:fs/promises')
  await mkdir(wishes.spoolDir, { recursive: true, mode: 0o700 })
  const folder = await mkdtemp(join(wishes.spoolDir, 'spool-'))
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const path = join(folder, 'archive.zip')
    const file = await open(path, 'wx', 0o600)
    try {
      for await (const chunk of wishes.bytes()) await file.write(chunk)
    } finally {
      await file.close()
    }
    const local = createLocalStore()
    const spooled = await local.head(path, wishes)
    const entry = await openRanged(local, { ...spooled, url: info.url }, { ...wishes, count: () => undefined })
    return { ...entry, close: remove }
  } catch (error) {
    await remove()
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
      throw new SluiceError('SLUICE_DISK_FULL', 'no space is left to spool the zip', {
        where: { url: folder },
        hint: 'set --state-dir to a larger disk',
        cause: error,
      })
    throw error
  }
}
