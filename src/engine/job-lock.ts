import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SluiceError } from '../core/errors.ts'

/**
 * One process at a time works on a job. The lock names its process by id and start time, so that a lock whose owner was killed
 * is told from a live one even where the id was given to another process since.
 *
 * @returns what gives it back
 * @throws SLUICE_JOB_RUNNING
 */
export async function acquireLock(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, 'lock')
  // Linked once it is whole: a lock that is still empty would be taken for a stale one.
  const own = `${path}.${process.pid}.tmp`
  // Two tries: a stale lock is removed once.
  for (let attempt = 0; ; attempt += 1) {
    try {
      await writeFile(own, JSON.stringify({ pid: process.pid, began: await processBegan(process.pid) }), {
        mode: 0o600,
      })
      await link(own, path)
      return () => releaseLock(folder)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST'))
        throw new SluiceError('SLUICE_STATE', `the job cannot be locked: ${String(error)}`, {
          where: { url: path },
          cause: error,
        })
      if (attempt > 0 || (await isLocked(folder)))
        throw new SluiceError('SLUICE_JOB_RUNNING', 'another process works on this job', { where: { url: folder } })
      await rm(path, { force: true })
    } finally {
      await rm(own, { force: true })
    }
  }
}

/** Gives a job's lock back. */
export function releaseLock(folder: string): Promise<void> {
  return rm(join(folder, 'lock'), { force: true })
}

/** Whether a live process holds the lock. */
export async function isLocked(folder: string): Promise<boolean> {
  try {
    const owner: unknown = JSON.parse(await readFile(join(folder, 'lock'), 'utf8'))
    if (typeof owner !== 'object' || owner === null || !('pid' in owner) || typeof owner.pid !== 'number') return false
    process.kill(owner.pid, 0)
    const began = await processBegan(owner.pid)
    return began === null || !('began' in owner) || owner.began === null || owner.began === began
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Clock ticks since boot at which a process began (proc(5), field 22); null where there is no /proc. */
async function processBegan(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
