import { constants, crc32, createInflateRaw } from 'node:zlib'
import type { ByteCursor } from './byte-cursor.ts'
import { compressionFault } from './fault.ts'
import { ENGINE_CHUNK_BYTES, runEngine, type Engine } from './run-engine.ts'

const FLAG_HEADER_CRC = 0x02
const FLAG_EXTRA = 0x04
const FLAG_NAME = 0x08
const FLAG_COMMENT = 0x10
const FLAGS_RESERVED = 0xe0
/** Longest name or comment in a header that is believed, in bytes. */
const LONGEST_TEXT_BYTES = 64 * 1024

/**
 * Decompresses gzip (RFC 1952): any number of members, zeros after the last. The members' frames are read here and only the deflate
 * data goes to zlib, since Node's own gunzip ignores what follows a member and takes some cut files for whole.
 *
 * @throws SLUICE_COMPRESSION with the byte of the compressed file: cut, corrupt, wrong checksum or length, other bytes after the end
 */
export async function* gunzip(cursor: ByteCursor, url: string): AsyncGenerator<Uint8Array, void, undefined> {
  do {
    await readHeader(cursor, url)
    yield* readMember(cursor, url)
  } while (await anotherMember(cursor, url))
}

async function* readMember(cursor: ByteCursor, url: string): AsyncGenerator<Uint8Array, void, undefined> {
  const began = cursor.position
  let checksum = 0
  let size = 0
  const engine: Engine = createInflateRaw({ chunkSize: ENGINE_CHUNK_BYTES, finishFlush: constants.Z_FINISH })
  try {
    for await (const output of runEngine(engine, cursor)) {
      checksum = crc32(output, checksum)
      size += output.byteLength
      yield output
    }
  } catch (error) {
    throw translateZlib(error, url, began + engine.bytesWritten)
  }
  const at = cursor.position
  const trailer = Buffer.from(await cursor.take(8))
  if (trailer.byteLength < 8) throw cut(cursor, url)
  if (trailer.readUInt32LE(0) !== checksum) {
    throw compressionFault('gzip checksum does not match: the data is corrupt', { url, byte: at })
  }
  if (trailer.readUInt32LE(4) !== size % 2 ** 32) {
    throw compressionFault('gzip length does not match: the data is corrupt', { url, byte: at + 4 })
  }
}

/** zlib's own errors as ours; others (the source's, an abort) as they are. */
export function translateZlib(error: unknown, url: string, byte: number): unknown {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return error
  if (error.code === 'Z_BUF_ERROR') return compressionFault('compressed data is cut short', { url, byte }, error)
  if (error.code.startsWith('Z_') || error.code.startsWith('ZSTD_')) {
    return compressionFault(`compressed data is corrupt: ${error.message}`, { url, byte }, error)
  }
  return error
}

async function readHeader(cursor: ByteCursor, url: string): Promise<void> {
  const began = cursor.position
  let checksum = 0
  const take = async (count: number): Promise<Buffer> => {
    const bytes = Buffer.from(await cursor.take(count))
    if (bytes.byteLength < count) throw cut(cursor, url)
    checksum = crc32(bytes, checksum)
    return bytes
  }
  const fixed = await take(10)
  const flags = fixed[3] ?? 0
  if (fixed[0] !== 0x1f || fixed[1] !== 0x8b) throw compressionFault('not gzip', { url, byte: began })
  if (fixed[2] !== 8) throw compressionFault(`gzip with unknown method ${fixed[2] ?? 0}`, { url, byte: began + 2 })
  if ((flags & FLAGS_RESERVED) !== 0)
    throw compressionFault('gzip header with reserved flags', { url, byte: began + 3 })
  if ((flags & FLAG_EXTRA) !== 0) await take((await take(2)).readUInt16LE(0))
  for (const flag of [FLAG_NAME, FLAG_COMMENT]) {
    if ((flags & flag) !== 0) checksum = await skipText(cursor, url, checksum)
  }
  if ((flags & FLAG_HEADER_CRC) === 0) return
  const expected = checksum & 0xffff
  if ((await take(2)).readUInt16LE(0) !== expected)
    throw compressionFault('gzip header checksum does not match', { url, byte: began })
}

/** Skips a text that ends with a zero byte; returns the header's checksum up to there. */
async function skipText(cursor: ByteCursor, url: string, before: number): Promise<number> {
  const began = cursor.position
  let checksum = before
  for (;;) {
    const chunk = await cursor.next()
    if (chunk === null) throw cut(cursor, url)
    const zero = chunk.indexOf(0)
    const used = zero < 0 ? chunk : chunk.subarray(0, zero + 1)
    checksum = crc32(used, checksum)
    cursor.unread(chunk.subarray(used.byteLength))
    if (zero >= 0) return checksum
    if (cursor.position - began > LONGEST_TEXT_BYTES)
      throw compressionFault('gzip header without an end', { url, byte: began })
  }
}

/** After a member: another one, the end, or zeros up to the end (tapes and object padders write them). */
async function anotherMember(cursor: ByteCursor, url: string): Promise<boolean> {
  const first = await cursor.take(1)
  if (first.byteLength === 0) return false
  cursor.unread(first)
  if (first[0] === 0x1f) return true
  for (let chunk = await cursor.next(); chunk !== null; chunk = await cursor.next()) {
    const other = chunk.findIndex((byte) => byte !== 0)
    if (other < 0) continue
    throw compressionFault('other bytes after the end of the gzip data', {
      url,
      byte: cursor.position - chunk.byteLength + other,
    })
  }
  return false
}

function cut(cursor: ByteCursor, url: string): Error {
  return compressionFault('gzip data is cut short', { url, byte: cursor.position })
}
