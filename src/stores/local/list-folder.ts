import { isUtf8 } from 'node:buffer'
import { type BigIntStats, type Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { SluiceError } from '../../core/errors.ts'
import type { Listing, ObjectInfo } from '../../core/ports.ts'
import { localErrorCode, translateLocalError } from './local-error.ts'
import { infoOf } from './local-info.ts'
import { isTemporaryName } from './temporary-name.ts'

export interface ListOptions extends Listing {
  /** Whether a folder (its path, ending in `/`) is worth entering; all are where this is missing. */
  readonly enter?: ((folder: string) => boolean) | undefined
}

interface Entry {
  readonly path: string
  /** What decides the order: a folder sorts as if its slash were part of its name, so that whole keys come in byte order. */
  readonly sortKey: Buffer
  readonly stats: BigIntStats
}

/** Entries of one folder whose stat runs at the same time. */
const STATS_AT_ONCE = 32

/**
 * Regular files whose path begins with the prefix, whatever the depth, in the order of their bytes (S3's order). Links are followed;
 * a link to a folder that is being walked already (a circle) and unfinished outputs of our own are left out; so are links to nothing, FIFOs,
 * devices and sockets, which `onLeftOut` is told. Holds the names of one folder and of those above it.
 *
 * @throws SLUICE_ACCESS_DENIED for a folder that may not be read, SLUICE_LOCAL_IO for a name that is not UTF-8
 */
export async function* listFiles(prefix: string, o: ListOptions): AsyncGenerator<ObjectInfo, void, undefined> {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  if (folder === '') throw new SluiceError('SLUICE_INTERNAL', `${prefix} is no absolute path`)
  const root = await statOrNull(folder)
  if (root?.isDirectory() !== true) return
  yield* walk(folder, { prefix, o, above: [identity(root)] })
}

interface Walk {
  readonly prefix: string
  readonly o: ListOptions
  /** Folders from the root of the walk down to this one. */
  readonly above: readonly string[]
}

async function* walk(folder: string, place: Walk): AsyncGenerator<ObjectInfo, void, undefined> {
  for (const entry of await entriesOf(folder, place)) {
    place.o.signal.throwIfAborted()
    if (!entry.stats.isDirectory()) {
      yield infoOf(entry.path, entry.stats)
      continue
    }
    const below = `${entry.path}/`
    const id = identity(entry.stats)
    if (place.above.includes(id) || place.o.enter?.(below) === false) continue
    yield* walk(below, { ...place, above: [...place.above, id] })
  }
}

async function entriesOf(folder: string, { prefix, o }: Walk): Promise<readonly Entry[]> {
  const dirents = await readdir(folder, { encoding: 'buffer', withFileTypes: true }).catch((error: unknown) => {
    if (localErrorCode(error) === 'ENOENT') return []
    throw translateLocalError(error, folder)
  })
  const wanted = dirents
    .map((dirent) => ({ name: nameOf(dirent, folder), plain: dirent.isFile() || dirent.isDirectory() }))
    .filter(({ name }) => {
      const path = folder + name
      return !isTemporaryName(name) && (path.startsWith(prefix) || prefix.startsWith(`${path}/`))
    })
  const entries: Entry[] = []
  for (let at = 0; at < wanted.length; at += STATS_AT_ONCE) {
    o.signal.throwIfAborted()
    const some = wanted.slice(at, at + STATS_AT_ONCE)
    const found = await Promise.all(some.map(({ name }) => entryOf(folder + name)))
    for (const [i, entry] of found.entries()) {
      if (entry !== null) entries.push(entry)
      // A plain one that is not there any more was taken away meanwhile.
      else if (some[i]?.plain === false) o.onLeftOut?.(folder + some[i].name)
    }
  }
  return entries.sort((a, b) => Buffer.compare(a.sortKey, b.sortKey))
}

async function entryOf(path: string): Promise<Entry | null> {
  const stats = await statOrNull(path)
  if (stats === null || !(stats.isFile() || stats.isDirectory())) return null
  return { path, sortKey: Buffer.from(stats.isDirectory() ? `${path}/` : path), stats }
}

/** Null where nothing is there, or only a link to nothing. */
async function statOrNull(path: string): Promise<BigIntStats | null> {
  return stat(path, { bigint: true }).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(localErrorCode(error))) return null
    throw translateLocalError(error, path)
  })
}

/** A name that is not UTF-8 could not be opened by its text again: it is an error rather than left out. */
function nameOf(dirent: Dirent<Buffer>, folder: string): string {
  if (isUtf8(dirent.name)) return dirent.name.toString('utf8')
  throw new SluiceError(
    'SLUICE_LOCAL_IO',
    `a file name is not UTF-8: ${JSON.stringify(dirent.name.toString('latin1'))}`,
    {
      where: { url: folder },
      hint: 'rename the file',
    },
  )
}

function identity(stats: BigIntStats): string {
  return `${stats.dev}:${stats.ino}`
}
