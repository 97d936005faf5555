import { constants, createReadStream, open as openCallback, type BigIntStats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { Socket } from 'node:net'
import { isatty, ReadStream } from 'node:tty'
import { promisify } from 'node:util'
import { SluiceError } from '../../core/errors.ts'
import type { Abortable, ByteRange, ObjectInfo } from '../../core/ports.ts'
import { cut, untilAborted } from '../byte-sequence.ts'
import { translateLocalError } from './local-error.ts'
import { localPin, statOf } from './local-info.ts'
import { READ_BYTES, readAhead, readPiece } from './read-ahead.ts'

/**
 * A range of a regular file. The pin is compared when it is opened and again after the last byte was read, before that is handed on.
 *
 * @throws SLUICE_SOURCE_CHANGED, and what translateLocalError knows
 */
export async function* readRegular(
  info: ObjectInfo,
  range: ByteRange,
  o: Abortable,
): AsyncGenerator<Uint8Array, void, undefined> {
  o.signal.throwIfAborted()
  const handle = await openFile(info.key)
  try {
    const stats = await pinned(handle, info)
    const end = Math.min(range.end, Number(stats.size))
    const read = async (piece: ByteRange): Promise<Uint8Array> => {
      const chunk = await readChunk(handle, info, piece)
      if (piece.start + chunk.byteLength >= end) await pinned(handle, info)
      return chunk
    }
    for await (const chunk of readAhead({ start: range.start, end }, read)) {
      o.signal.throwIfAborted()
      yield chunk
    }
  } finally {
    await handle.close()
  }
}

async function pinned(handle: FileHandle, info: ObjectInfo): Promise<BigIntStats> {
  const stats = await handle.stat({ bigint: true })
  if (info.etag !== null && localPin(stats) !== info.etag) throw changed(info, stats)
  return stats
}

async function readChunk(handle: FileHandle, info: ObjectInfo, piece: ByteRange): Promise<Uint8Array> {
  const chunk = await readPiece(handle, piece).catch((error: unknown) => {
    throw translateLocalError(error, info.url, piece.start)
  })
  if (chunk.byteLength > 0) return chunk
  await pinned(handle, info)
  throw new SluiceError('SLUICE_SOURCE_SHORT', 'the file ends before the size that the system tells', {
    where: { url: info.url, byte: piece.start },
  })
}

function changed(info: ObjectInfo, now: BigIntStats): SluiceError {
  const size = now.size === BigInt(info.size ?? -1) ? '' : ` (${info.size} bytes before, ${now.size} now)`
  return new SluiceError('SLUICE_SOURCE_CHANGED', `the file changed while it was read${size}`, {
    where: { url: info.url },
  })
}

/**
 * What comes once: a FIFO, a terminal, a device. The first two are read without a thread that waits for them, which would keep the
 * process from ending (seen with Node 20: `process.exit` waits for a blocked read), so that an abort ends them at once.
 */
export async function* readSpecial(
  info: ObjectInfo,
  range: ByteRange,
  o: Abortable,
): AsyncGenerator<Uint8Array, void, undefined> {
  o.signal.throwIfAborted()
  const isFifo = (await statOf(info.key)).isFIFO()
  const fd = await openDescriptor(info.key, isFifo ? constants.O_RDONLY | constants.O_NONBLOCK : constants.O_RDONLY)
  const stream = isFifo
    ? new Socket({ fd, readable: true, writable: false })
    : isatty(fd)
      ? new ReadStream(fd)
      : createReadStream('', { fd, highWaterMark: READ_BYTES })
  try {
    yield* cut(untilAborted<Uint8Array>(stream, o.signal), range)
  } catch (error) {
    if (o.signal.aborted) throw error
    throw translateLocalError(error, info.url)
  } finally {
    stream.destroy()
  }
}

async function openFile(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY).catch((error: unknown) => {
    throw translateLocalError(error, path)
  })
}

async function openDescriptor(path: string, flags: number): Promise<number> {
  return promisify(openCallback)(path, flags).catch((error: unknown) => {
    throw translateLocalError(error, path)
  })
}
