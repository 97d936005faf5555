import type { ByteRange } from '../../../src/core/ports.ts'
import type { RangeReader } from '../../../src/compression/zip.ts'

/** The bytes in chunks of `size`; `state` tells how far it was pulled and whether it was closed. */
export async function* inChunks(
  bytes: Uint8Array,
  size: number,
  state?: { pulled: number; closed: boolean },
): AsyncGenerator<Uint8Array> {
  try {
    for (let at = 0; at < bytes.byteLength; at += size) {
      if (state !== undefined) state.pulled += 1
      yield bytes.subarray(at, at + size)
    }
  } finally {
    if (state !== undefined) state.closed = true
  }
}

export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

export function place(): { url: string; signal: AbortSignal; warn: (message: string) => void; warnings: string[] } {
  const warnings: string[] = []
  return { url: 'file:///t', signal: new AbortController().signal, warn: (message) => warnings.push(message), warnings }
}

export interface CountingReader extends RangeReader {
  readonly ranges: ByteRange[]
}

export function rangeReader(bytes: Uint8Array, chunkBytes = 7): CountingReader {
  const ranges: ByteRange[] = []
  return {
    size: bytes.byteLength,
    ranges,
    read: (range) => {
      ranges.push(range)
      return inChunks(bytes.subarray(range.start, range.end), chunkBytes)
    },
  }
}
