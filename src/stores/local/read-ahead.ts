import type { FileHandle } from 'node:fs/promises'
import { BufferPool } from '../../core/lent-buffers.ts'
import type { ByteRange } from '../../core/ports.ts'

/** One read, and so one chunk. Two are in memory: the consumer's and the next, read meanwhile. */
export const READ_BYTES = 512 * 1024
const buffers = new BufferPool(READ_BYTES)

/**
 * A range of a file, chunk by chunk; the next is read while the consumer has one. `read`: the chunk that begins at an offset, of READ_BYTES at most, and not
 * past the range's end.
 */
export async function* readAhead(
  range: ByteRange,
  read: (piece: ByteRange) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = range.start
  const fetchNext = (): Promise<Uint8Array> | null => {
    if (at >= range.end) return null
    const chunk = read({ start: at, end: Math.min(range.end, at + READ_BYTES) })
    chunk.catch(() => undefined)
    return chunk
  }
  let ahead = fetchNext()
  try {
    while (ahead !== null) {
      const chunk: Uint8Array = await ahead
      at += chunk.byteLength
      ahead = fetchNext()
      yield chunk
    }
  } finally {
    await ahead?.catch(() => undefined)
  }
}

/** What one read gives of a piece, in a buffer that is lent; nothing at the file's end. @throws Node's error */
export async function readPiece(handle: FileHandle, { start, end }: ByteRange): Promise<Uint8Array> {
  const loan = buffers.take()
  const { bytesRead } = await handle.read(loan.buffer, 0, end - start, start)
  loan.lent(bytesRead)
  loan.close()
  return loan.buffer.subarray(0, bytesRead)
}
