import { SluiceError } from '../core/errors.ts'
import type { Abortable, ByteRange, ObjectInfo, Store } from '../core/ports.ts'
import { cut, untilAborted } from './byte-sequence.ts'

const KEY = '-'

/**
 * Standard input, or any other bytes that come once. Its one key is `-`; nothing is buffered here.
 *
 * @throws SLUICE_NOT_REPLAYABLE from a second read, SLUICE_LOCAL_IO where the stream itself fails
 */
export function createStreamStore(input: AsyncIterable<Uint8Array>): Store {
  let taken = false
  return {
    async head(key, o): Promise<ObjectInfo> {
      o.signal.throwIfAborted()
      if (key !== KEY) {
        throw new SluiceError('SLUICE_NOT_FOUND', 'a stream has no such name', {
          where: { url: key },
          hint: 'its name is -',
        })
      }
      return { key: KEY, url: KEY, size: null, etag: null, modifiedMs: null, ranged: false, replayable: false }
    },
    async *read(_info: ObjectInfo, range: ByteRange, o: Abortable): AsyncGenerator<Uint8Array, void, undefined> {
      if (taken) {
        throw new SluiceError('SLUICE_NOT_REPLAYABLE', 'standard input can be read only once', {
          where: { url: KEY },
          hint: 'write it to a file or an object first, and load that',
        })
      }
      taken = true
      yield* cut(translated(untilAborted(input, o.signal), o.signal), range)
    },
    close: () => Promise.resolve(),
  }
}

async function* translated(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* chunks
  } catch (error) {
    if (signal.aborted || error instanceof SluiceError) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new SluiceError('SLUICE_LOCAL_IO', `standard input cannot be read: ${message}`, {
      where: { url: KEY },
      hint: 'check what is piped in',
      cause: error,
    })
  }
}
