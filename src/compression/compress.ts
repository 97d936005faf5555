import { createGzip } from 'node:zlib'
import { SluiceError } from '../core/errors.ts'
import type { CompressionName } from '../core/ports.ts'
import { ENGINE_CHUNK_BYTES, type Engine } from './run-engine.ts'
import { loadNapiZstd, nodeZstd, type NapiZstd } from './zstd-binding.ts'

/** Makes one compressed file. Calls are sequential, `end` is the last. Output belongs to the caller. */
export interface Compressor {
  /** Takes bytes in (they may be reused once it resolves); gives what output has come so far, possibly none. */
  write(bytes: Uint8Array): Promise<Uint8Array[]>
  /** The rest of the output. */
  end(): Promise<Uint8Array[]>
  /** Frees it when it is not ended. Idempotent. */
  destroy(): void
}

export interface CompressOptions {
  /** gzip 1 … 9 (default 6), zstd 1 … 19 (default 3). */
  readonly level?: number | undefined
}

const GZIP_LEVEL = 6
const ZSTD_LEVEL = 3
/** What one write hands to the engine at once: bounds the output that piles up before the caller sees it. */
const SLICE_BYTES = 1024 * 1024

/**
 * A compressor: `none` (hands bytes on), `gzip` (one member, no name, no time: the same input gives the same bytes) or `zstd` (one frame, with a checksum).
 *
 * @throws SLUICE_NOT_YET for bzip2 and zip; SLUICE_MISSING_PACKAGE where zstd is not to be had
 */
export async function compress(name: CompressionName, o: CompressOptions = {}): Promise<Compressor> {
  if (name === 'none') return plain()
  if (name === 'gzip') return byEngine(createGzip({ level: o.level ?? GZIP_LEVEL, chunkSize: ENGINE_CHUNK_BYTES }))
  if (name !== 'zstd')
    throw new SluiceError('SLUICE_NOT_YET', `writing ${name} is not built yet`, { hint: 'use gzip or zstd' })
  const level = o.level ?? ZSTD_LEVEL
  const node = nodeZstd()
  if (node === null) return byNapi(await loadNapiZstd(), level)
  const { ZSTD_c_compressionLevel, ZSTD_c_checksumFlag } = node.constants
  const params = { [ZSTD_c_compressionLevel]: level, [ZSTD_c_checksumFlag]: 1 }
  return byEngine(node.createZstdCompress({ chunkSize: ENGINE_CHUNK_BYTES, params }))
}

function plain(): Compressor {
  return {
    write: async (bytes) => (bytes.byteLength === 0 ? [] : [Uint8Array.from(bytes)]),
    end: async () => [],
    destroy: () => undefined,
  }
}

function byEngine(engine: Engine): Compressor {
  let output: Uint8Array[] = []
  let failed: Error | null = null
  engine.on('data', (chunk: Uint8Array) => output.push(chunk))
  engine.on('error', (error) => {
    failed = error
  })
  const take = (): Uint8Array[] => {
    if (failed !== null)
      throw new SluiceError('SLUICE_INTERNAL', `compressing failed: ${failed.message}`, { cause: failed })
    const taken = output
    output = []
    return taken
  }
  return {
    write: async (bytes) => {
      for (let at = 0; at < bytes.byteLength; at += SLICE_BYTES) {
        await new Promise<void>((resolve) => engine.write(bytes.subarray(at, at + SLICE_BYTES), () => resolve()))
      }
      return take()
    },
    end: async () => {
      await new Promise<void>((resolve) => {
        engine.once('end', resolve)
        engine.once('close', resolve)
        engine.end()
      })
      return take()
    },
    destroy: () => engine.destroy(),
  }
}

/** libzstd called in this thread. */
function byNapi(napi: NapiZstd, level: number): Compressor {
  const context = new napi.CCtx()
  context.setParameter(napi.CParameter.compressionLevel, level)
  context.setParameter(napi.CParameter.checksumFlag, 1)
  const run = (bytes: Uint8Array, directive: number): Uint8Array[] => {
    const output: Uint8Array[] = []
    let source = bytes
    for (;;) {
      const target = Buffer.allocUnsafe(ENGINE_CHUNK_BYTES)
      const [left, produced, consumed] = context.compressStream2(target, source, directive)
      source = source.subarray(consumed)
      if (produced > 0) output.push(target.subarray(0, produced))
      const done = directive === napi.EndDirective.end ? left === 0 : source.byteLength === 0
      if (done) return output
    }
  }
  return {
    write: async (bytes) => run(bytes, napi.EndDirective.continue),
    end: async () => run(new Uint8Array(0), napi.EndDirective.end),
    destroy: () => undefined,
  }
}
