import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { compress } from '../../../src/compression/compress.ts'
import { decompress } from '../../../src/compression/decompress.ts'
import { collect, inChunks, place } from './streams.ts'

describe('compress', () => {
  it.each(['gzip', 'zstd'] as const)('%s gives back what was written, in any pieces', async (name) => {
    const data = Buffer.from(Array.from({ length: 200_000 }, (_, index) => `${index},name ${index % 97}\n`).join(''))
    const compressor = await compress(name)
    const parts: Uint8Array[] = []
    for (let at = 0, step = 1; at < data.byteLength; at += step, step = Math.min(step * 3, 2_000_000)) {
      parts.push(...(await compressor.write(data.subarray(at, at + step))))
    }
    parts.push(...(await compressor.end()))
    const compressed = Buffer.concat(parts)
    expect(compressed.byteLength).toBeLessThan(data.byteLength / 2)
    expect((await collect(decompress(name, inChunks(compressed, 65_536), place()))).equals(data)).toBe(true)
  })

  it('writes an empty file that is whole', async () => {
    for (const name of ['gzip', 'zstd'] as const) {
      const compressor = await compress(name)
      const bytes = Buffer.concat(await compressor.end())
      expect(bytes.byteLength).toBeGreaterThan(0)
      expect((await collect(decompress(name, inChunks(bytes, 1), place()))).byteLength).toBe(0)
    }
  })

  it('gives output while it is fed, and the input may be reused', async () => {
    const compressor = await compress('gzip')
    const piece = Buffer.alloc(1_000_000)
    const parts: Uint8Array[] = []
    const written: Buffer[] = []
    for (let round = 0; round < 5; round += 1) {
      for (let at = 0; at < piece.byteLength; at += 4) piece.writeUInt32LE(((at + round) * 2654435761) >>> 0, at)
      written.push(Buffer.from(piece))
      parts.push(...(await compressor.write(piece)))
      piece.fill(0)
    }
    expect(parts.length).toBeGreaterThan(0)
    parts.push(...(await compressor.end()))
    expect(gunzipSync(Buffer.concat(parts)).equals(Buffer.concat(written))).toBe(true)
  })

  it('makes the same gzip bytes of the same input', async () => {
    const once = async (): Promise<string> => {
      const compressor = await compress('gzip')
      return Buffer.concat([...(await compressor.write(Buffer.from('abc'))), ...(await compressor.end())]).toString(
        'hex',
      )
    }
    expect(await once()).toBe(await once())
  })

  it('copies for none, and refuses what cannot be written', async () => {
    const compressor = await compress('none')
    const input = Buffer.from('abc')
    const [output] = await compressor.write(input)
    input.fill(0)
    expect(Buffer.from(output ?? []).toString()).toBe('abc')
    expect(await compressor.end()).toEqual([])
    await expect(compress('zip')).rejects.toMatchObject({ code: 'SLUICE_NOT_YET' })
    await expect(compress('bzip2')).rejects.toMatchObject({ code: 'SLUICE_NOT_YET' })
  })

  it('can be left unfinished', async () => {
    const compressor = await compress('gzip')
    await compressor.write(Buffer.from('abc'))
    compressor.destroy()
    compressor.destroy()
    await expect(compressor.end()).resolves.toEqual([])
  })
})
