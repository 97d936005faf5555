import { constants, type BigIntStats } from 'node:fs'
import { access, lstat, open, realpath, readlink, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import type { Json } from '../../core/job.ts'
import type { Abortable, ObjectInfo, ObjectWriter, WriteOptions, WrittenPart } from '../../core/ports.ts'
import { localErrorCode, translateLocalError } from './local-error.ts'
import { folderError, infoOf } from './local-info.ts'
import { ParkedFile } from './parked-file.ts'
import { publishNew, syncFolder } from './publish.ts'
import { intentJson, parseIntent, temporaryPath, type LocalIntent } from './temporary-name.ts'

/** Buffers of one writev; Linux takes 1,024 (IOV_MAX). */
const BUFFERS_AT_ONCE = 1024

interface Setting {
  /** The name the caller used, for errors and for the result. */
  readonly key: string
  readonly ifExists: 'fail' | 'overwrite'
  readonly intent: LocalIntent
  /** `device:inode:birth` of an output that an earlier run of this job finished, and which may be replaced. */
  readonly earlier: string | null
  readonly file: ParkedFile
}

/**
 * Opens a regular file for writing, under a temporary name beside it. A link is followed: what it leads to is replaced, not the link.
 * `resume`: an unfinished file is begun again, since what of it reached the disk before a crash is not known; and where the earlier
 * run had just given it its final name, that file counts as ours and does not stand in the way.
 *
 * @throws SLUICE_EXISTS, SLUICE_USAGE (a folder), SLUICE_NOT_FOUND (no such folder), SLUICE_ACCESS_DENIED, SLUICE_DISK_FULL
 */
export async function openFileWriter(key: string, options: WriteOptions, o: Abortable): Promise<ObjectWriter> {
  const path = await finalPath(key)
  const there = await existing(path)
  if (there?.isDirectory() === true) throw folderError(key)
  const resumed = parseIntent(options.resume)
  const earlier = resumed?.path === path ? await earlierIdentity(resumed) : null
  if (resumed?.path === path) await removeTemporary(resumed)
  if (there !== null && options.ifExists === 'fail' && identityOf(there) !== earlier) throw existsError(key)

  const intent: LocalIntent = { store: 'local', path, temporary: temporaryPath(path) }
  await options.record(intentJson(intent))
  o.signal.throwIfAborted()
  const handle = await openTemporary(key, intent, there)
  try {
    const identified = { ...intent, identity: identityOf(await handle.stat({ bigint: true })) }
    await options.record(intentJson(identified))
    const file = new ParkedFile(intent.temporary, handle)
    return new FileWriter({ key, ifExists: options.ifExists, intent: identified, earlier, file })
  } catch (error) {
    await handle.close()
    await removeTemporary(intent)
    throw error
  }
}

/** That a file can be made there: its folder exists and may be written. @throws SLUICE_NOT_FOUND, SLUICE_ACCESS_DENIED, SLUICE_USAGE (a folder) */
export async function checkFilePlace(key: string): Promise<void> {
  const path = await finalPath(key)
  const folder = dirname(path)
  const stats = await stat(folder).catch((error: unknown) => {
    throw localErrorCode(error) === 'ENOENT' ? noFolder(key, folder, error) : translateLocalError(error, key)
  })
  if (!stats.isDirectory()) throw translateLocalError({ code: 'ENOTDIR' }, key)
  await access(folder, constants.W_OK | constants.X_OK).catch((error: unknown) => {
    throw translateLocalError(error, key)
  })
}

function noFolder(key: string, folder: string, cause: unknown): SluiceError {
  return new SluiceError('SLUICE_NOT_FOUND', `there is no folder ${folder}`, {
    where: { url: key },
    hint: 'make the folder first, or check the spelling',
    cause,
  })
}

/** Removes the temporary file of an intent, if it is there. @throws SLUICE_ACCESS_DENIED, SLUICE_LOCAL_IO */
export async function removeTemporary(intent: LocalIntent): Promise<void> {
  await rm(intent.temporary, { force: true }).catch((error: unknown) => {
    if (localErrorCode(error) === 'ENOTDIR') return
    throw translateLocalError(error, intent.temporary)
  })
}

class FileWriter implements ObjectWriter {
  readonly present: readonly WrittenPart[] = []
  readonly #setting: Setting
  #open = true
  /** It has its final name; what is left to do can be done again. */
  #published = false
  #done: Promise<ObjectInfo> | null = null

  constructor(setting: Setting) {
    this.#setting = setting
  }

  token(): Json {
    return intentJson(this.#setting.intent)
  }

  async writePart(
    part: { number: number; offset: number; bytes: readonly Uint8Array[] },
    o: Abortable,
  ): Promise<WrittenPart> {
    const { key, file } = this.#setting
    let at = part.offset
    try {
      await file.use(async (handle) => {
        for (const group of groups(part.bytes)) {
          o.signal.throwIfAborted()
          at += await writeAll(handle, group, at)
        }
      })
    } catch (error) {
      o.signal.throwIfAborted()
      throw translateLocalError(error, key, at)
    }
    return { number: part.number, offset: part.offset, bytes: at - part.offset, etag: null }
  }

  complete(parts: readonly WrittenPart[], o: Abortable): Promise<ObjectInfo> {
    if (this.#done === null) {
      const done = this.#complete(parts, o)
      this.#done = done
      // What failed may be tried again (a disk that was full), or aborted.
      done.catch(() => {
        this.#done = null
      })
    }
    return this.#done
  }

  async abort(): Promise<void> {
    try {
      await this.#done?.catch(() => undefined)
      if (!this.#open) return
      this.#open = false
      await this.#setting.file.close().catch(() => undefined)
      await removeTemporary(this.#setting.intent)
    } catch {
      // A folder that refuses now: discard, which may throw, gets it from the recorded intent.
    }
  }

  async #complete(parts: readonly WrittenPart[], o: Abortable): Promise<ObjectInfo> {
    const { key, file, intent } = this.#setting
    const size = sizeOf(parts, key)
    o.signal.throwIfAborted()
    try {
      const stats = await file.use(async (handle) => {
        if (!this.#published) {
          await handle.truncate(size)
          await handle.sync()
          await this.#publish()
          this.#published = true
          file.path = intent.path
        }
        await syncFolder(intent.path)
        return handle.stat({ bigint: true })
      })
      this.#open = false
      await file.close()
      return infoOf(key, stats)
    } catch (error) {
      throw translateLocalError(error, key)
    }
  }

  async #publish(): Promise<void> {
    const { key, ifExists, intent, earlier } = this.#setting
    if (ifExists === 'overwrite') return rename(intent.temporary, intent.path)
    try {
      await publishNew(intent.temporary, intent.path)
    } catch (error) {
      if (localErrorCode(error) !== 'EEXIST') throw error
      const there = await existing(intent.path)
      const identity = there === null ? null : identityOf(there)
      if (identity === intent.identity) return removeTemporary(intent)
      if (identity === null || identity !== earlier) throw existsError(key)
      await rename(intent.temporary, intent.path)
    }
  }
}

async function openTemporary(key: string, intent: LocalIntent, replaced: BigIntStats | null): Promise<FileHandle> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL
  const mode = replaced === null ? 0o666 : Number(replaced.mode) & 0o777
  const handle = await open(intent.temporary, flags, mode).catch((error: unknown) => {
    if (localErrorCode(error) !== 'ENOENT') throw translateLocalError(error, key)
    throw noFolder(key, dirname(intent.path), error)
  })
  if (replaced !== null) await takeOver(handle, replaced)
  return handle
}

/** Owner and mode of the file that will be replaced; the owner only where we may (chown also clears set-id bits, so it goes first). */
async function takeOver(handle: FileHandle, replaced: BigIntStats): Promise<void> {
  const own = await handle.stat({ bigint: true })
  if (own.uid !== replaced.uid || own.gid !== replaced.gid) {
    await handle.chown(Number(replaced.uid), Number(replaced.gid)).catch(() => undefined)
  }
  await handle.chmod(Number(replaced.mode) & 0o7777).catch(() => undefined)
}

/** Where a link leads, even to nothing; the path itself where it is no link. Folders on the way are resolved by the system. */
async function finalPath(key: string): Promise<string> {
  if (key.endsWith('/')) throw folderError(key)
  let path = key
  for (let hop = 0; hop < 40; hop += 1) {
    const stats = await existing(path)
    if (stats?.isSymbolicLink() !== true) return path
    const folder = await realpath(dirname(path)).catch((error: unknown) => {
      throw translateLocalError(error, key)
    })
    path = resolve(folder, await readlink(path))
  }
  throw new SluiceError('SLUICE_LOCAL_IO', 'symbolic links lead in a circle', {
    where: { url: key },
    hint: 'mend the links',
  })
}

async function existing(path: string): Promise<BigIntStats | null> {
  return lstat(path, { bigint: true }).catch((error: unknown) => {
    if (localErrorCode(error) === 'ENOENT') return null
    throw translateLocalError(error, path)
  })
}

/** The file of an earlier run: what was recorded, or what its temporary name still leads to (the kill came between link and unlink). */
async function earlierIdentity(intent: LocalIntent): Promise<string | null> {
  const temporary = await existing(intent.temporary)
  return temporary === null ? (intent.identity ?? null) : identityOf(temporary)
}

/** With the time of birth, where the file system keeps one: the number of an inode is given away again soon. */
function identityOf(stats: BigIntStats): string {
  return `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`
}

function existsError(key: string): SluiceError {
  return new SluiceError('SLUICE_EXISTS', 'the file exists already', { where: { url: key } })
}

function* groups(bytes: readonly Uint8Array[]): Generator<Uint8Array[], void, undefined> {
  for (let at = 0; at < bytes.length; at += BUFFERS_AT_ONCE) yield bytes.slice(at, at + BUFFERS_AT_ONCE)
}

/** Writes all, however often the system takes only a part of it; the number of bytes. */
async function writeAll(handle: FileHandle, buffers: readonly Uint8Array[], offset: number): Promise<number> {
  let left = buffers.filter((buffer) => buffer.byteLength > 0)
  let written = 0
  while (left.length > 0) {
    const { bytesWritten } = await handle.writev(left, offset + written)
    written += bytesWritten
    left = dropBytes(left, bytesWritten)
  }
  return written
}

function dropBytes(buffers: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let drop = bytes
  const rest: Uint8Array[] = []
  for (const buffer of buffers) {
    if (drop >= buffer.byteLength) drop -= buffer.byteLength
    else {
      rest.push(drop === 0 ? buffer : buffer.subarray(drop))
      drop = 0
    }
  }
  return rest
}

/** Parts have to follow one another without a gap, or the file would have a hole of zeros. */
function sizeOf(parts: readonly WrittenPart[], key: string): number {
  let at = 0
  for (const part of [...parts].sort((a, b) => a.offset - b.offset)) {
    if (part.offset !== at) {
      throw new SluiceError('SLUICE_INTERNAL', `part ${part.number} begins at ${part.offset} where ${at} was due`, {
        where: { url: key },
      })
    }
    at += part.bytes
  }
  return at
}
