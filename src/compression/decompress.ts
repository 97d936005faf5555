import { SluiceError } from '../core/errors.ts'
import type { Abortable, CompressionName } from '../core/ports.ts'
import { ByteCursor } from './byte-cursor.ts'
import { joinSmallChunks } from './chunk-joiner.ts'
import { DETECT_BYTES, detectCompression, isCutMagic } from './detect.ts'
import { compressionFault } from './fault.ts'
import { gunzip } from './gzip.ts'
import { unzstd } from './zstd.ts'

export interface DecompressOptions extends Abortable {
  /** For errors. */
  readonly url: string
  readonly warn: (message: string) => void
}

/** Bytes at the beginning that are looked at to tell text from a damaged head. */
const LOOK_BYTES = 512

/**
 * Decompressed bytes, in order, pull-driven, in chunks of 64 KiB to 512 KiB (save the last). The magic bytes win over `name`: gzip that
 * is called zstd, and plain text that is called either, is read with a warning. `none` hands the chunks on untouched.
 * Ending early ends the source. Memory: one chunk of the source and three of 256 KiB.
 *
 * @throws SLUICE_COMPRESSION (`where.byte` counts in the compressed input) for what is cut, corrupt or followed by other bytes;
 * SLUICE_NOT_YET for bzip2; SLUICE_USAGE for zip, which is read by its directory (`openZip`)
 */
export async function* decompress(
  name: CompressionName,
  chunks: AsyncIterable<Uint8Array>,
  o: DecompressOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (name === 'none') {
    yield* chunks
    return
  }
  refuse(name, o.url)
  const cursor = new ByteCursor(chunks, o)
  try {
    const head = await cursor.take(LOOK_BYTES)
    cursor.unread(head)
    const found = trueCompression(name, head, o)
    refuse(found, o.url)
    const raw = found === 'none' ? rest(cursor) : found === 'gzip' ? gunzip(cursor, o.url) : unzstd(cursor, o.url)
    yield* joinSmallChunks(raw)
  } finally {
    await cursor.close()
  }
}

function refuse(name: CompressionName, url: string): void {
  if (name === 'bzip2') {
    throw new SluiceError('SLUICE_NOT_YET', 'bzip2 is not built yet', {
      where: { url },
      hint: 'decompress it first: bzip2 -dc FILE | sluice copy - …',
    })
  }
  if (name === 'zip')
    throw new SluiceError('SLUICE_USAGE', 'a zip archive is read by its directory, not as a stream', { where: { url } })
}

function trueCompression(name: CompressionName, head: Uint8Array, o: DecompressOptions): CompressionName {
  const found = detectCompression(head.subarray(0, DETECT_BYTES))
  if (found === name) return name
  if (found !== 'none') {
    o.warn(`${o.url} is called ${name} and is ${found}; it is read as ${found}`)
    return found
  }
  if (name === 'gzip' || name === 'zstd') {
    if (isCutMagic(name, head))
      throw compressionFault(`${name} data is cut short`, { url: o.url, byte: head.byteLength })
    if (!looksLikeText(head)) throw compressionFault(`not ${name}`, { url: o.url, byte: 0 })
  }
  o.warn(`${o.url} is called ${name} and is not compressed; it is read as it is`)
  return 'none'
}

/** No control characters save white space and escape; or UTF-16 by its byte-order mark. */
function looksLikeText(head: Uint8Array): boolean {
  const utf16 = (head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)
  return utf16 || head.every((byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0x1b)
}

async function* rest(cursor: ByteCursor): AsyncGenerator<Uint8Array, void, undefined> {
  for (let chunk = await cursor.next(); chunk !== null; chunk = await cursor.next()) yield chunk
}
