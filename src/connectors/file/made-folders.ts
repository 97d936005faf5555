import { mkdir, rmdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import { localErrorCode, translateLocalError } from '../../stores/local/local-error.ts'
import type { Endpoint } from './endpoint.ts'
import { isPrefix } from './output-name.ts'

/** Makes a folder and those above it, each once: mkdir's own `recursive` tries for ever where no name can be made (/proc/x; Node 20). The topmost it made. */
async function makeMissing(folder: string): Promise<string | undefined> {
  const missing: string[] = []
  for (let at = folder; dirname(at) !== at && (await isMissing(at)); at = dirname(at)) missing.push(at)
  for (const at of missing.toReversed())
    await mkdir(at).catch(async (error: unknown) => {
      // Another output's, meanwhile.
      if (localErrorCode(error) !== 'EEXIST' || !(await stat(at)).isDirectory()) throw error
    })
  const [topmost] = missing.toReversed()
  if (topmost === undefined && !(await stat(folder)).isDirectory()) await mkdir(folder)
  return topmost
}

async function isMissing(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    (error: unknown) => {
      if (localErrorCode(error) === 'ENOENT') return true
      throw error
    },
  )
}

/** The folders of outputs whose names come from the source, which a job makes, and takes away again where it fails. */
export class MadeFolders {
  readonly #sink: Endpoint
  /** Each that was made last, and the topmost that was made with it: one or two an output. */
  readonly #made = new Map<string, string>()

  constructor(sink: Endpoint) {
    this.#sink = sink
  }

  /** Makes the folder of an output, where the sink is one. @throws SLUICE_NOT_FOUND, SLUICE_ACCESS_DENIED, SLUICE_LOCAL_IO, SLUICE_DISK_FULL */
  async make(key: string): Promise<void> {
    if (this.#sink.scheme !== 'file' || !isPrefix(this.#sink)) return
    const folder = dirname(key)
    try {
      const topmost = await makeMissing(folder)
      if (topmost !== undefined) this.#made.set(folder, topmost)
    } catch (error) {
      if (localErrorCode(error) !== 'EEXIST') throw translateLocalError(error, folder)
      throw new SluiceError('SLUICE_NOT_FOUND', 'a file stands where the path wants a folder', {
        where: { url: folder },
        hint: 'check the path, or leave out the / at its end',
        cause: error,
      })
    }
  }

  /** Removes those that are still empty. Never throws. */
  async remove(): Promise<void> {
    for (const [folder, topmost] of [...this.#made].toReversed())
      for (let at = folder; at.length >= topmost.length; at = dirname(at)) {
        const gone = await rmdir(at).then(
          () => true,
          (error: unknown) => localErrorCode(error) === 'ENOENT',
        )
        if (!gone) break
      }
    this.#made.clear()
  }
}
