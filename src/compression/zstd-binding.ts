import * as zlib from 'node:zlib'
import { SluiceError } from '../core/errors.ts'
import type { Engine } from './run-engine.ts'

/** Node's own zstd, there from 22.15 and 23.8 on. */
interface NodeZstd {
  createZstdDecompress(options: { chunkSize: number }): Engine
  createZstdCompress(options: { chunkSize: number; params: Record<number, number> }): Engine
  readonly constants: { readonly ZSTD_c_compressionLevel: number; readonly ZSTD_c_checksumFlag: number }
}

/** Node's own zstd, or null where this Node has none. */
export function nodeZstd(): NodeZstd | null {
  const candidate: object = zlib
  return 'createZstdDecompress' in candidate ? (candidate as NodeZstd) : null
}

/** What a streaming call did: its own return value, bytes written to the target, bytes read from the source. */
type StreamStep = readonly [result: number, produced: number, consumed: number]

/** The part of zstd-napi's binding (a thin, synchronous wrapper of libzstd) that is used where Node has no zstd. */
export interface NapiZstd {
  readonly DCtx: new () => { decompressStream(target: Uint8Array, source: Uint8Array): StreamStep }
  readonly CCtx: new () => {
    setParameter(parameter: number, value: number): void
    compressStream2(target: Uint8Array, source: Uint8Array, end: number): StreamStep
  }
  readonly CParameter: { readonly compressionLevel: number; readonly checksumFlag: number }
  readonly EndDirective: { readonly continue: number; readonly flush: number; readonly end: number }
}

/**
 * Loads zstd-napi, only when it is needed.
 *
 * @throws SLUICE_MISSING_PACKAGE where its native part is not there
 */
export async function loadNapiZstd(): Promise<NapiZstd> {
  try {
    const loaded = (await import('zstd-napi/binding.js')) as unknown as { default: NapiZstd }
    return loaded.default
  } catch (error) {
    throw new SluiceError(
      'SLUICE_MISSING_PACKAGE',
      'zstd needs Node 22.15 or newer, or the package zstd-napi with its native part',
      {
        hint: 'use a newer Node, or run: npm rebuild zstd-napi',
        cause: error,
      },
    )
  }
}
