import type { ByteCursor } from './byte-cursor.ts'
import { compressionFault } from './fault.ts'
import { translateZlib } from './gzip.ts'
import { ENGINE_CHUNK_BYTES, runEngine } from './run-engine.ts'
import { loadNapiZstd, nodeZstd, type NapiZstd } from './zstd-binding.ts'
import { ZstdFrameScanner } from './zstd-frame.ts'

/**
 * Decompresses zstd (RFC 8878): any number of frames, skippable ones passed over, zeros after the last. Windows up to 128 MiB, as libzstd has it by default.
 *
 * @throws SLUICE_COMPRESSION with the byte of the compressed file: cut, corrupt, wrong checksum, other bytes after the end
 */
export async function* unzstd(cursor: ByteCursor, url: string): AsyncGenerator<Uint8Array, void, undefined> {
  const napi = nodeZstd() === null ? await loadNapiZstd() : null
  do {
    if (await skipSkippable(cursor, url)) continue
    const input = frameInput(cursor, url)
    try {
      yield* napi === null ? decodeByNode(input) : decodeByNapi(napi, input)
    } catch (error) {
      throw translateZstd(error, url, cursor.position)
    }
    if (!input.ended()) throw cut(cursor, url)
  } while (await anotherFrame(cursor, url))
}

interface FrameInput {
  next(): Promise<Uint8Array | null>
  unread(rest: Uint8Array): void
  ended(): boolean
}

/** The bytes of one frame, chunk by chunk. */
function frameInput(cursor: ByteCursor, url: string): FrameInput {
  const scanner = new ZstdFrameScanner()
  return {
    next: async () => {
      if (scanner.ended) return null
      const chunk = await cursor.next()
      if (chunk === null) throw cut(cursor, url)
      try {
        const used = scanner.scan(chunk)
        cursor.unread(chunk.subarray(used))
        return chunk.subarray(0, used)
      } catch (error) {
        throw compressionFault(
          error instanceof Error ? error.message : 'not zstd',
          { url, byte: cursor.position - chunk.byteLength },
          error,
        )
      }
    },
    // The scanner and the decoder agree on where a frame ends; what a broken decoder leaves is of no use.
    unread: () => undefined,
    ended: () => scanner.ended,
  }
}

async function* decodeByNode(input: FrameInput): AsyncGenerator<Uint8Array, void, undefined> {
  const zstd = nodeZstd()
  if (zstd !== null) yield* runEngine(zstd.createZstdDecompress({ chunkSize: ENGINE_CHUNK_BYTES }), input)
}

/** libzstd called in this thread, one output chunk at a time, so that a few bytes that stand for gigabytes need no memory. */
async function* decodeByNapi(napi: NapiZstd, input: FrameInput): AsyncGenerator<Uint8Array, void, undefined> {
  const context = new napi.DCtx()
  const decode = (into: Uint8Array, from: Uint8Array) => {
    try {
      return context.decompressStream(into, from)
    } catch (error) {
      throw new DecoderError(error instanceof Error ? error.message : String(error), { cause: error })
    }
  }
  let target = Buffer.allocUnsafe(ENGINE_CHUNK_BYTES)
  let filled = 0
  let wanted = 0
  for (let source = await input.next(); source !== null; source = await input.next()) {
    for (;;) {
      const [result, produced, consumed] = decode(target.subarray(filled), source)
      wanted = result
      filled += produced
      source = source.subarray(consumed)
      const full = filled === target.byteLength
      if (full) {
        yield target
        target = Buffer.allocUnsafe(ENGINE_CHUNK_BYTES)
        filled = 0
      }
      // With room left in the target, or the frame done (0), the decoder holds nothing back.
      if (source.byteLength === 0 && (!full || result === 0)) break
    }
  }
  if (filled > 0) yield target.subarray(0, filled)
  if (wanted !== 0) throw new DecoderError('the frame is not complete')
}

/** libzstd's word through zstd-napi, which throws bare Errors: so that they are told from the source's. */
class DecoderError extends Error {}

/** The decoders' own errors as ours; the source's, ours and an abort as they are. */
function translateZstd(error: unknown, url: string, byte: number): unknown {
  if (error instanceof DecoderError)
    return compressionFault(`compressed data is corrupt: ${error.message}`, { url, byte }, error)
  return translateZlib(error, url, byte)
}

async function skipSkippable(cursor: ByteCursor, url: string): Promise<boolean> {
  const head = Buffer.from(await cursor.take(4))
  if (head.byteLength < 4) throw cut(cursor, url)
  if ((head.readUInt32LE(0) & 0xfffffff0) >>> 0 !== 0x184d2a50) {
    cursor.unread(head)
    return false
  }
  const length = Buffer.from(await cursor.take(4))
  if (length.byteLength < 4) throw cut(cursor, url)
  let left = length.readUInt32LE(0)
  while (left > 0) {
    const chunk = await cursor.next()
    if (chunk === null) throw cut(cursor, url)
    const used = Math.min(left, chunk.byteLength)
    cursor.unread(chunk.subarray(used))
    left -= used
  }
  return true
}

/** After a frame: another one, the end, or zeros up to the end. */
async function anotherFrame(cursor: ByteCursor, url: string): Promise<boolean> {
  const first = await cursor.take(1)
  if (first.byteLength === 0) return false
  cursor.unread(first)
  if (first[0] !== 0) return true
  for (let chunk = await cursor.next(); chunk !== null; chunk = await cursor.next()) {
    const other = chunk.findIndex((byte) => byte !== 0)
    if (other >= 0) {
      throw compressionFault('other bytes after the end of the zstd data', {
        url,
        byte: cursor.position - chunk.byteLength + other,
      })
    }
  }
  return false
}

function cut(cursor: ByteCursor, url: string): Error {
  return compressionFault('zstd data is cut short', { url, byte: cursor.position })
}
