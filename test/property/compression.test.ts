import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../src/core/errors.ts'
import { compress } from '../../src/compression/compress.ts'
import { decompress } from '../../src/compression/decompress.ts'
import { openZip } from '../../src/compression/zip.ts'
import { buildZip } from '../unit/compression/build-zip.ts'
import { collect, place, rangeReader } from '../unit/compression/streams.ts'

const NAMES = ['gzip', 'zstd'] as const
const data = fc.oneof(
  fc.uint8Array({ maxLength: 400 }),
  fc.array(fc.constantFrom('a', 'bb', '\n', '1234'), { maxLength: 2000 }).map((parts) => Buffer.from(parts.join(''))),
)
const cuts = fc.array(fc.nat({ max: 3000 }), { maxLength: 12 })

async function* cutAt(bytes: Uint8Array, places: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0
  for (const to of [...places.map((at) => at % (bytes.byteLength + 1)).toSorted((a, b) => a - b), bytes.byteLength]) {
    yield bytes.subarray(from, to)
    from = to
  }
}

async function made(name: 'gzip' | 'zstd', bytes: Uint8Array, places: readonly number[]): Promise<Buffer> {
  const compressor = await compress(name)
  const parts: Uint8Array[] = []
  for await (const piece of cutAt(bytes, places)) parts.push(...(await compressor.write(piece)))
  return Buffer.concat([...parts, ...(await compressor.end())])
}

/** The bytes, or null where a SluiceError refuses them; any other error fails the test. */
async function orRefused(work: Promise<Buffer>): Promise<Buffer | null> {
  return work.catch((error: unknown) => {
    if (error instanceof SluiceError) return null
    throw error
  })
}

describe.each(NAMES)('%s', (name) => {
  it('gives the same bytes, however written, joined and cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(data, { minLength: 1, maxLength: 3 }), cuts, cuts, async (members, written, read) => {
        const files = await Promise.all(members.map((member) => made(name, member, written)))
        const back = await collect(decompress(name, cutAt(Buffer.concat(files), read), place()))
        expect(back.equals(Buffer.concat(members))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('takes no beginning of a file for the whole', async () => {
    await fc.assert(
      fc.asyncProperty(data, fc.nat(), cuts, async (bytes, at, read) => {
        const whole = await made(name, bytes, [])
        const cut = whole.subarray(0, at % whole.byteLength)
        expect(await orRefused(collect(decompress(name, cutAt(cut, read), place())))).toBe(null)
      }),
      { numRuns: 100 },
    )
  })

  it('gives the right bytes or refuses where a byte was changed', async () => {
    await fc.assert(
      fc.asyncProperty(data, fc.nat(), fc.integer({ min: 1, max: 255 }), async (bytes, at, change) => {
        const bent = await made(name, bytes, [])
        // Without its magic bytes a file may be taken for another thing, and is read with a warning.
        const index = 4 + (at % (bent.byteLength - 4))
        bent[index] = (bent[index] ?? 0) ^ change
        const back = await orRefused(collect(decompress(name, cutAt(bent, []), place())))
        expect(back === null || back.equals(bytes)).toBe(true)
      }),
      { numRuns: 100 },
    )
  })

  it('ends on any bytes, with a SluiceError if with one', async () => {
    const magic =
      name === 'gzip' ? Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0]) : Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.boolean(), cuts, async (bytes, begin, read) => {
        const input = begin ? Buffer.concat([magic, bytes]) : bytes
        const once = await orRefused(collect(decompress(name, cutAt(input, read), place())))
        const whole = await orRefused(collect(decompress(name, cutAt(input, []), place())))
        expect(once).toEqual(whole)
      }),
      { numRuns: 150 },
    )
  })
})

describe('zip', () => {
  const readAll = async (bytes: Uint8Array, chunkBytes: number): Promise<Buffer> => {
    const archive = await openZip(rangeReader(bytes, chunkBytes), place())
    const parts: Buffer[] = []
    for (const entry of archive.entries()) parts.push(await collect(archive.readEntry(entry, place())))
    return Buffer.concat(parts)
  }
  const archive = fc
    .array(
      fc.record({
        data: data.map((bytes) => Buffer.from(bytes)),
        method: fc.constantFrom(0, 8),
        descriptor: fc.boolean(),
        zip64: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    )
    .map((files) => files.map((file, index) => ({ ...file, name: `${index}.csv` })))

  it('gives its entries back, in any chunks', async () => {
    await fc.assert(
      fc.asyncProperty(archive, fc.integer({ min: 1, max: 500 }), fc.boolean(), async (files, chunkBytes, zip64End) => {
        const back = await readAll(buildZip(files, { zip64End }), chunkBytes)
        expect(back.equals(Buffer.concat(files.map((file) => file.data)))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('ends where bytes were changed, with a SluiceError if with one', async () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(archive, changes, async (files, edits) => {
        const bent = buildZip(files)
        for (const [at, value] of edits) bent[at % bent.byteLength] = value
        expect(await orRefused(readAll(bent, 4096))).toEqual(await orRefused(readAll(bent, 7)))
      }),
      { numRuns: 250 },
    )
  })
})
