import { constants } from 'node:fs'
import { link, open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { localErrorCode } from './local-error.ts'

/** What a file system without hard links answers (link(2); FAT gives EPERM, some FUSE file systems ENOSYS or EACCES). */
const NO_HARD_LINKS = new Set(['EPERM', 'ENOSYS', 'EOPNOTSUPP', 'ENOTSUP', 'EACCES', 'EMLINK'])

/**
 * Gives a finished temporary file its final name, only if nothing has that name. By `link`, which the system makes atomic. Without hard
 * links the name is first taken by an empty file, made exclusively, then replaced: atomic as well, but a kill between the two leaves
 * that empty file.
 *
 * @throws Node's EEXIST where something is there
 */
export async function publishNew(temporary: string, path: string, makeLink: typeof link = link): Promise<void> {
  try {
    await makeLink(temporary, path)
  } catch (error) {
    if (!NO_HARD_LINKS.has(localErrorCode(error))) throw error
    const placeholder = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL)
    await placeholder.close()
    await rename(temporary, path)
    return
  }
  await unlink(temporary)
}

/** What a folder answers that cannot be synced: not supported, or it may be written and not be read. Nothing can be added then. */
const NO_FOLDER_SYNC = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'EBADF', 'EACCES', 'EPERM'])

/** Makes the names in the path's folder durable, where the file system can. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(dirname(path), constants.O_RDONLY)
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    if (!NO_FOLDER_SYNC.has(localErrorCode(error))) throw error
  }
}
