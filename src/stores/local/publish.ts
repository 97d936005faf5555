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

/** Makes the names in the path's folder durable. File systems that cannot sync a folder (EINVAL) have nothing to add. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), constants.O_RDONLY)
  try {
    await folder.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'EBADF'].includes(localErrorCode(error))) throw error
  } finally {
    await folder.close()
  }
}
