import { execFileSync } from 'node:child_process'
import { crc32, gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compressBlocks } from '../../src/compression/compress-blocks.ts'
import type { BlockCompressor } from '../../src/compression/compress-blocks.ts'
import { combineCrc32 } from '../../src/compression/crc32-combine.ts'
import { decompress } from '../../src/compression/decompress.ts'
import { collect, inChunks, place } from '../unit/compression/streams.ts'

const blocks = fc.array(
  fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.nat({ max: 5000 }).map((length) => Buffer.from('ab\n'.repeat(length))),
  ),
  { maxLength: 8 },
)

async function joined(compressor: BlockCompressor, parts: readonly Uint8Array[]): Promise<Buffer> {
  const file = compressor.openFile()
  const made = await Promise.all(parts.map((part) => compressor.compress(part)))
  return Buffer.concat([file.begin(), ...made.map((block) => file.add(block)), file.end()])
}

describe('blocks that were compressed by themselves', () => {
  it('are one gzip member with the right trailer, wherever the bytes were cut', async () => {
    const gzip = await compressBlocks('gzip')
    await fc.assert(
      fc.asyncProperty(blocks, async (parts) => {
        const file = await joined(gzip, parts)
        const whole = Buffer.concat(parts)
        expect(gunzipSync(file).equals(whole)).toBe(true)
        expect([file.readUInt32LE(file.length - 8), file.readUInt32LE(file.length - 4)]).toEqual([
          crc32(whole),
          whole.length,
        ])
      }),
      { numRuns: 60 },
    )
  })

  it('are zstd frames, wherever the bytes were cut', async () => {
    const zstd = await compressBlocks('zstd')
    await fc.assert(
      fc.asyncProperty(blocks, async (parts) => {
        const file = await joined(zstd, parts)
        const read = await collect(decompress('zstd', inChunks(file, 1000), place()))
        expect(read.equals(Buffer.concat(parts))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('are read by gzip and Python, who stop at the first member', async () => {
    const parts = [Buffer.alloc(3_000_000, 'abcdefg,'), Buffer.from('x'), Buffer.alloc(1_000_000, 7)]
    const input = await joined(await compressBlocks('gzip'), parts)
    const maxBuffer = 8_000_000
    expect(execFileSync('gzip', ['-dc'], { input, maxBuffer }).equals(Buffer.concat(parts))).toBe(true)
    const script = `import sys, zlib
d = zlib.decompressobj(31)
sys.stdout.buffer.write(d.decompress(sys.stdin.buffer.read()))
assert d.eof and not d.unused_data`
    expect(execFileSync('python3', ['-c', script], { input, maxBuffer }).equals(Buffer.concat(parts))).toBe(true)
  })
})

describe('combineCrc32', () => {
  it('is the CRC-32 of both together', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), fc.uint8Array({ maxLength: 500 }), (a, b) => {
        expect(combineCrc32(crc32(a), crc32(b), b.byteLength)).toBe(crc32(Buffer.concat([a, b])))
      }),
    )
  })
})
