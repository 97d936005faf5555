import { once } from 'node:events'
import { SluiceError } from '../../core/errors.ts'
import type { Output } from '../../core/job.ts'
import type { Abortable } from '../../core/ports.ts'

/** One output that is written front to back. Calls are sequential. */
export interface OutputTarget {
  /** Store-internal name: what the journal knows it by. */
  readonly key: string
  readonly url: string
  /** Bytes written so far. */
  readonly bytes: number
  /** Looks for what is in the way, before anything is written. `skip`: it is there, and `--if-exists skip` leaves it. @throws SLUICE_EXISTS */
  begin(o: Abortable): Promise<'write' | 'skip'>
  /** Takes bytes in order; resolves when there is room for more. */
  write(bytes: readonly Uint8Array[], o: Abortable): Promise<void>
  /** No more comes: its memory is free once the last part is sent. */
  close(o: Abortable): Promise<void>
  /** Makes it visible, whole; after `close`. @throws SLUICE_EXISTS */
  complete(o: Abortable): Promise<Output>
  /** What an earlier run had complete but for the last request, of so many bytes; null where that is gone. */
  finishEarlier(bytes: number, o: Abortable): Promise<Output | null>
  /** Leaves nothing behind of what is not visible yet. */
  abort(): Promise<void>
}

/** Standard output: visible as it is written, which is what a pipe is for. */
export function createStreamTarget(stream: NodeJS.WritableStream): OutputTarget {
  let bytes = 0
  return {
    key: '-',
    url: '-',
    get bytes() {
      return bytes
    },
    begin: () => Promise.resolve('write'),
    write: async (chunks, o) => {
      for (const chunk of chunks) {
        bytes += chunk.byteLength
        if (!stream.write(chunk))
          await once(stream, 'drain', { signal: o.signal }).catch((error: unknown) => streamFailed(error, o.signal))
      }
    },
    close: () => Promise.resolve(),
    complete: () => Promise.resolve({ url: '-', rows: null, bytes, etag: null }),
    finishEarlier: () => Promise.resolve(null),
    abort: () => Promise.resolve(),
  }
}

function streamFailed(error: unknown, signal: AbortSignal): never {
  signal.throwIfAborted()
  throw new SluiceError(
    'SLUICE_LOCAL_IO',
    `standard output: ${error instanceof Error ? error.message : String(error)}`,
    { cause: error },
  )
}
