import { constants, gunzipSync, gzipSync } from 'node:zlib'
import { Compressor as ZstdCompressor, decompress as zstdDecompress } from 'zstd-napi'
import { describe, expect, it } from 'vitest'
import { compress } from '../../src/compression/compress.ts'
import { decompress } from '../../src/compression/decompress.ts'
import { collect, inChunks, place } from '../unit/compression/streams.ts'

const text = Buffer.from(
  Array.from({ length: 40_000 }, (_, index) => `${index},name ${(index * 7919) % 997},${index % 7}\n`).join(''),
)
const noise = Buffer.alloc(300_000)
for (let at = 0; at < noise.byteLength; at += 4) noise.writeUInt32LE((Math.imul(at, 2654435761) ^ (at << 7)) >>> 0, at)

/** What a compression is checked against: an implementation that is not ours. */
interface Foreign {
  readonly name: 'gzip' | 'zstd'
  /** Files of the same bytes, written in each way that writers differ in. */
  readonly write: (bytes: Buffer) => readonly Buffer[]
  readonly read: (file: Buffer) => Buffer
}

const gzip: Foreign = {
  name: 'gzip',
  write: (bytes) => [
    ...[0, 1, 6, 9].map((level) => gzipSync(bytes, { level })),
    gzipSync(bytes, { strategy: constants.Z_HUFFMAN_ONLY }),
    gzipSync(bytes, { strategy: constants.Z_FIXED, memLevel: 1 }),
    gzipSync(bytes, { windowBits: 9 }),
  ],
  read: (file) => gunzipSync(file),
}

const zstd: Foreign = {
  name: 'zstd',
  write: (bytes) =>
    [
      { compressionLevel: 1 },
      { compressionLevel: 3, checksumFlag: true },
      { compressionLevel: 12, checksumFlag: true, contentSizeFlag: false },
      { compressionLevel: -5, contentSizeFlag: false },
      { enableLongDistanceMatching: true, windowLog: 27 },
    ].map((parameters) => {
      const compressor = new ZstdCompressor()
      compressor.setParameters(parameters)
      return compressor.compress(bytes)
    }),
  read: (file) => zstdDecompress(file),
}

describe.each([gzip, zstd])('compression $name', ({ name, write, read }) => {
  describe.each([
    ['nothing', Buffer.alloc(0)],
    ['one byte', Buffer.from('x')],
    ['text', text],
    ['noise', noise],
    ['zeros', Buffer.alloc(1_000_000)],
  ])('%s', (_, bytes) => {
    it('written by another program is read', async () => {
      for (const file of write(bytes)) {
        expect((await collect(decompress(name, inChunks(file, 1999), place()))).equals(bytes)).toBe(true)
      }
    })

    it('written by us is read by another program', async () => {
      const compressor = await compress(name)
      const parts: Uint8Array[] = []
      for await (const piece of inChunks(bytes, 70_000)) parts.push(...(await compressor.write(piece)))
      parts.push(...(await compressor.end()))
      expect(read(Buffer.concat(parts)).equals(bytes)).toBe(true)
    })

    it('files joined are read one after the other', async () => {
      const files = write(bytes)
      const back = await collect(decompress(name, inChunks(Buffer.concat(files), 65_536), place()))
      expect(back.equals(Buffer.concat(files.map(() => bytes)))).toBe(true)
    })
  })
})
