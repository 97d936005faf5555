import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { SluiceError } from '../../../src/core/errors.ts'
import { compress } from '../../../src/compression/compress.ts'
import { decompress } from '../../../src/compression/decompress.ts'
import { collect, inChunks, place } from './streams.ts'

const TEXT = Buffer.from('id,name\n1,Ann\n2,Bob\n3,Ännchen\n')

async function made(name: 'gzip' | 'zstd', data: Uint8Array): Promise<Buffer> {
  const compressor = await compress(name)
  return Buffer.concat([...(await compressor.write(data)), ...(await compressor.end())])
}

async function fails(
  name: 'gzip' | 'zstd' | 'bzip2' | 'zip',
  bytes: Uint8Array,
  chunkBytes = 4096,
): Promise<SluiceError> {
  const error: unknown = await collect(decompress(name, inChunks(bytes, chunkBytes), place())).then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof SluiceError)) throw new Error(`expected a SluiceError, got ${String(error)}`)
  return error
}

/** A frame of one raw block without a checksum, as RFC 8878 has it: single segment, one byte of content size. */
function rawFrame(data: Buffer): Buffer {
  const header = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, data.byteLength, 0, 0, 0])
  header.writeUIntLE((data.byteLength << 3) | 1, 6, 3)
  return Buffer.concat([header, data])
}

function skippable(bytes: number): Buffer {
  const frame = Buffer.alloc(8 + bytes, 0xab)
  frame.writeUInt32LE(0x184d2a53, 0)
  frame.writeUInt32LE(bytes, 4)
  return frame
}

describe.each(['gzip', 'zstd'] as const)('%s', (name) => {
  let whole: Buffer = Buffer.alloc(0)
  beforeAll(async () => {
    whole = await made(name, TEXT)
  })

  it.each([1, 2, 3, 7, 4096])('reads chunks of %i bytes', async (chunkBytes) => {
    expect((await collect(decompress(name, inChunks(whole, chunkBytes), place()))).toString()).toBe(TEXT.toString())
  })

  it('reads several members or frames, and zeros after the last', async () => {
    const many = Buffer.concat([whole, await made(name, Buffer.alloc(0)), whole, Buffer.alloc(1000)])
    for (const chunkBytes of [1, 5, 4096]) {
      const text = (await collect(decompress(name, inChunks(many, chunkBytes), place()))).toString()
      expect(text).toBe(TEXT.toString().repeat(2))
    }
  })

  it('takes no cut file for whole', async () => {
    const two = Buffer.concat([whole, whole])
    for (let end = 0; end < two.byteLength; end += 1) {
      if (end === whole.byteLength) continue
      for (const chunkBytes of [1, 4096]) {
        const error = await fails(name, two.subarray(0, end), chunkBytes)
        expect(error.code).toBe('SLUICE_COMPRESSION')
        expect(error.where.url).toBe('file:///t')
        expect(error.where.byte).toBeLessThanOrEqual(end)
      }
    }
  })

  it('takes no file with a byte changed for whole, or gives the same bytes', async () => {
    for (let at = 0; at < whole.byteLength; at += 1) {
      const bent = Buffer.from(whole)
      bent[at] = (bent[at] ?? 0) ^ 0x10
      const outcome = await collect(decompress(name, inChunks(bent, 4096), place())).then(
        (bytes) => bytes.toString(),
        (error: unknown) => (error instanceof SluiceError ? error.code : error),
      )
      // Time, operating system and extra flags of a gzip header, or a frame's window, say nothing about the data.
      expect([TEXT.toString(), 'SLUICE_COMPRESSION']).toContain(outcome)
    }
  })

  it.each(['x', '\0\0\0x', 'hello\n', '\x1f', '\x1f\x8b', '(\xb5'])('refuses %j after the end', async (rubbish) => {
    const error = await fails(name, Buffer.concat([whole, Buffer.from(rubbish, 'latin1')]))
    expect(error.code).toBe('SLUICE_COMPRESSION')
    expect(error.where.byte).toBeGreaterThanOrEqual(whole.byteLength)
  })

  it('reads plain text of that name with a warning', async () => {
    const o = place()
    expect((await collect(decompress(name, inChunks(TEXT, 3), o))).toString()).toBe(TEXT.toString())
    expect(o.warnings).toHaveLength(1)
    expect(o.warnings[0]).toContain('not compressed')
  })

  it('goes by the magic bytes', async () => {
    const o = place()
    const other = name === 'gzip' ? 'zstd' : 'gzip'
    expect((await collect(decompress(other, inChunks(whole, 3), o))).toString()).toBe(TEXT.toString())
    expect(o.warnings[0]).toContain(`is ${name}`)
  })

  it('refuses bytes that are neither', async () => {
    const error = await fails(name, Buffer.from('\x00\x01\x02hello', 'latin1'))
    expect(error.message).toContain(`not ${name}`)
  })

  it('gives chunks of 64 KiB and more, and pulls no further than it must', async () => {
    const data = Buffer.alloc(3_000_000)
    for (let at = 0; at < data.byteLength; at += 1) data[at] = (at * 2654435761) >>> 13
    const compressed = await made(name, data)
    const sizes: number[] = []
    const parts: Uint8Array[] = []
    for await (const chunk of decompress(name, inChunks(compressed, 1000), place())) {
      sizes.push(chunk.byteLength)
      parts.push(chunk)
    }
    expect(Buffer.concat(parts).equals(data)).toBe(true)
    expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThanOrEqual(64 * 1024)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(512 * 1024)
  })

  it('ends the source when the reader leaves early', async () => {
    const data = Buffer.alloc(8_000_000)
    for (let at = 0; at < data.byteLength; at += 4) data.writeUInt32LE((at * 2654435761) >>> 0, at)
    const compressed = await made(name, data)
    const state = { pulled: 0, closed: false }
    for await (const chunk of decompress(name, inChunks(compressed, 16 * 1024, state), place())) {
      expect(chunk.byteLength).toBeGreaterThan(0)
      break
    }
    expect(state.closed).toBe(true)
    expect(state.pulled * 16 * 1024).toBeLessThan(compressed.byteLength / 2)
  })

  it('hands the error of the source and an abort through', async () => {
    const broken = async function* (): AsyncGenerator<Uint8Array> {
      yield whole.subarray(0, 12)
      throw new SluiceError('SLUICE_NETWORK', 'cut')
    }
    await expect(collect(decompress(name, broken(), place()))).rejects.toMatchObject({ code: 'SLUICE_NETWORK' })
    const controller = new AbortController()
    controller.abort(new Error('stop'))
    await expect(
      collect(decompress(name, inChunks(whole, 5), { ...place(), signal: controller.signal })),
    ).rejects.toThrow('stop')
  })
})

describe('gzip headers', () => {
  it('passes over extra field, name, comment and checks the header checksum', async () => {
    const plain = gzipSync(TEXT)
    const { crc32 } = await import('node:zlib')
    const fixed = Buffer.from(plain.subarray(0, 10))
    fixed[3] = 0x02 | 0x04 | 0x08 | 0x10
    const head = Buffer.concat([fixed, Buffer.from([3, 0, 1, 2, 3]), Buffer.from('a.csv\0a comment\0')])
    const sum = Buffer.alloc(2)
    sum.writeUInt16LE(crc32(head) & 0xffff)
    const whole = Buffer.concat([head, sum, plain.subarray(10)])
    for (const chunkBytes of [1, 3, 4096]) {
      expect((await collect(decompress('gzip', inChunks(whole, chunkBytes), place()))).toString()).toBe(TEXT.toString())
    }
    sum[0] = (sum[0] ?? 0) ^ 1
    const error = await fails('gzip', Buffer.concat([head, sum, plain.subarray(10)]))
    expect(error.message).toContain('header checksum')
  })

  it('tells a wrong checksum from a wrong length', async () => {
    const whole = gzipSync(TEXT)
    const checksum = Buffer.from(whole)
    checksum[whole.byteLength - 8] = (checksum[whole.byteLength - 8] ?? 0) ^ 1
    expect(await fails('gzip', checksum)).toMatchObject({
      message: expect.stringContaining('checksum') as unknown,
      where: { byte: whole.byteLength - 8 },
    })
    const length = Buffer.from(whole)
    length[whole.byteLength - 1] = 1
    expect(await fails('gzip', length)).toMatchObject({
      message: expect.stringContaining('length') as unknown,
      where: { byte: whole.byteLength - 4 },
    })
  })
})

describe('zstd frames', () => {
  it('names a dictionary and a window that are not read, instead of calling the data corrupt', async () => {
    const rest = Buffer.from([0x01, 0, 0])
    const frame = (...header: number[]): Buffer =>
      Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, ...header]), rest])
    const dictionary = await fails('zstd', frame(0x02, 0x00, 0x39, 0x30))
    expect(dictionary.message).toContain('made with a dictionary (id 12345)')
    expect((await fails('zstd', frame(0x02, 0x00, 0x39, 0x30), 1)).message).toBe(dictionary.message)
    const window = await fails('zstd', frame(0x00, 20 << 3))
    expect(window.message).toContain('window is 1073741824 bytes (zstd --long)')
    expect((await fails('zstd', frame(0xa0, 0, 0, 0, 0x40))).message).toContain('window is 1073741824 bytes')
    for (const error of [dictionary, window]) expect(error.message).not.toContain('corrupt')
    expect(await collect(decompress('zstd', inChunks(frame(0x00, 17 << 3), 9), place()))).toHaveLength(0)
  })

  it('passes over skippable frames anywhere', async () => {
    const bytes = Buffer.concat([skippable(300), rawFrame(TEXT), skippable(0), rawFrame(TEXT), skippable(5)])
    for (const chunkBytes of [1, 11, 4096]) {
      const text = (await collect(decompress('zstd', inChunks(bytes, chunkBytes), place()))).toString()
      expect(text).toBe(TEXT.toString().repeat(2))
    }
  })

  it('refuses a cut skippable frame', async () => {
    const bytes = Buffer.concat([rawFrame(TEXT), skippable(20)])
    for (const cut of [1, 10, 19, 20, 21, 24, 27])
      expect((await fails('zstd', bytes.subarray(0, -cut))).code).toBe('SLUICE_COMPRESSION')
  })

  it('gives a few bytes that stand for many in bounded chunks', async () => {
    const header = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38])
    // Blocks of one byte repeated 128 KiB, the last one marked.
    const block = Buffer.from([0x02, 0x00, 0x10, 0x61])
    const last = Buffer.from([0x03, 0x00, 0x10, 0x61])
    const bytes = Buffer.concat([header, ...Array.from({ length: 999 }, () => block), last])
    let total = 0
    for await (const chunk of decompress('zstd', inChunks(bytes, 65_536), place())) {
      expect(chunk.byteLength).toBeLessThanOrEqual(512 * 1024)
      total += chunk.byteLength
    }
    expect(total).toBe(1000 * 128 * 1024)
  })
})

describe('others', () => {
  it('hands plain bytes on untouched', async () => {
    const chunk = Buffer.from('abc')
    const got: Uint8Array[] = []
    for await (const each of decompress('none', inChunks(chunk, 3), place())) got.push(each)
    expect(got).toHaveLength(1)
    expect(got[0]?.buffer).toBe(chunk.buffer)
  })

  it('refuses bzip2 and zip by name and by their bytes', async () => {
    expect((await fails('bzip2', TEXT)).code).toBe('SLUICE_NOT_YET')
    expect((await fails('gzip', Buffer.from('425a6839314159265359', 'hex'))).code).toBe('SLUICE_NOT_YET')
    expect((await fails('zip', TEXT)).code).toBe('SLUICE_USAGE')
    expect((await fails('gzip', Buffer.from('PK\x03\x04rest'))).code).toBe('SLUICE_USAGE')
  })
})
