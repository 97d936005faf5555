import { deflateRawSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../../src/core/errors.ts'
import { compress } from '../../../src/compression/compress.ts'
import { decompress } from '../../../src/compression/decompress.ts'
import { openZip, pickEntry } from '../../../src/compression/zip.ts'
import { buildZip, type ZipFileSpec } from './build-zip.ts'
import { collect, place, rangeReader } from './streams.ts'

const DATA = Buffer.from('id,name\n1,Ann\n2,Bob\n')
const csv = (more: Partial<ZipFileSpec> = {}): ZipFileSpec => ({ name: 'a.csv', data: DATA, ...more })

async function readOnly(bytes: Uint8Array, name?: string): Promise<string> {
  const archive = await openZip(rangeReader(bytes), place())
  return (await collect(archive.readEntry(pickEntry(archive, name), place()))).toString()
}

async function failure(work: Promise<unknown>): Promise<SluiceError> {
  const error: unknown = await work.then(
    (value) => value,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof SluiceError)) throw new Error(`expected a SluiceError, got ${String(error)}`)
  return error
}

describe('archives that other programs made', () => {
  // python3's zipfile, with a name in UTF-8 and a README
  const PYTHON =
    'UEsDBBQAAAgIABx2gl2k9wY9FgAAABQAAAARAAAAZGF0ZW4vZ3LDtsOfZS5jc3bLTNHJS8xN5TLUcczL4zLSccpP4gIAUEsDBBQAAAAIABx2gl2GphA2BwAAAAUAAAAKAAAAUkVBRE1FLnR4dMtIzcnJBwBQSwECFAMUAAAICAAcdoJdpPcGPRYAAAAUAAAAEQAAAAAAAAAAAAAAgAEAAAAAZGF0ZW4vZ3LDtsOfZS5jc3ZQSwECFAMUAAAACAAcdoJdhqYQNgcAAAAFAAAACgAAAAAAAAAAAAAAgAFFAAAAUkVBRE1FLnR4dFBLBQYAAAAAAgACAHcAAAB0AAAAAAA='
  // python3's zipfile onto a stream: sizes behind the data
  const STREAMED =
    'UEsDBBQACAAIABx2gl0AAAAAAAAAAAAAAAAFAAAAYS5jc3bLTNHJS8xN5TLUcczL4zLSccpP4gIAUEsHCKT3Bj0WAAAAFAAAAFBLAQIUAxQACAAIABx2gl2k9wY9FgAAABQAAAAFAAAAAAAAAAAAAACAAQAAAABhLmNzdlBLBQYAAAAAAQABADMAAABJAAAAAAA='
  // python3's zipfile, stored, zip64 forced in the local header
  const ZIP64 =
    'UEsDBC0AAAAAAAAAIQCk9wY9//////////8FABQAYS5jc3YBABAAFAAAAAAAAAAUAAAAAAAAAGlkLG5hbWUKMSxBbm4KMixCb2IKUEsBAi0DLQAAAAAAAAAhAKT3Bj0UAAAAFAAAAAUAAAAAAAAAAAAAAIABAAAAAGEuY3N2UEsFBgAAAAABAAEAMwAAAEsAAAAAAA=='
  // Info-ZIP's zip -P secret
  const ENCRYPTED =
    'UEsDBAoACQAAAB12gl2k9wY9IAAAABQAAAAFABwAYS5jc3ZVVAkAA9kvEGvZLxBrdXgLAAEEAAAAAAQAAAAAGNL2VF7d3quSY+9UzfsIlDSfxXgE+jXzpQKI62zWBUFQSwcIpPcGPSAAAAAUAAAAUEsBAh4DCgAJAAAAHXaCXaT3Bj0gAAAAFAAAAAUAGAAAAAAAAQAAAKSBAAAAAGEuY3N2VVQFAAPZLxBrdXgLAAEEAAAAAAQAAAAAUEsFBgAAAAABAAEASwAAAG8AAAAAAA=='

  it.each([PYTHON, STREAMED, ZIP64])('reads %#', async (base64) => {
    expect(await readOnly(Buffer.from(base64, 'base64'))).toBe(DATA.toString())
  })

  it('names entries in UTF-8 and leaves the README aside', async () => {
    const archive = await openZip(rangeReader(Buffer.from(PYTHON, 'base64')), place())
    expect(archive.entries().map((entry) => entry.name)).toEqual(['daten/größe.csv', 'README.txt'])
    expect(archive.dataEntries()).toEqual([
      { name: 'daten/größe.csv', size: 20, compressedSize: 22, method: 8, encrypted: false, crc32: 0x3d06f7a4 },
    ])
  })

  it('lists an encrypted entry and refuses to read it', async () => {
    const archive = await openZip(rangeReader(Buffer.from(ENCRYPTED, 'base64')), place())
    const entry = pickEntry(archive, undefined)
    expect(entry.encrypted).toBe(true)
    const error = await failure(collect(archive.readEntry(entry, place())))
    expect(error.code).toBe('SLUICE_COMPRESSION')
    expect(error.message).toBe('a.csv is encrypted, which sluice does not read')
    expect(error.hint).toBe('unpack it first, with its password: 7z x -so -pPASSWORD ARCHIVE a.csv | sluice copy - …')
  })
})

function hintOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof SluiceError) return error.hint
  }
  return ''
}

describe('pickEntry', () => {
  const archiveOf = (...names: (string | Buffer)[]) =>
    openZip(rangeReader(buildZip(names.map((name) => csv({ name })))), place())

  it('takes the only data file', async () => {
    const archive = await archiveOf(
      'README.csv',
      'x/',
      '__MACOSX/._a.csv',
      'docs/._b.csv',
      'notes.pdf',
      'inner.csv.zip',
      'in/b.csv.gz',
    )
    expect(pickEntry(archive, undefined).name).toBe('in/b.csv.gz')
    expect(archive.entries().map((entry) => entry.name)).not.toContain('x/')
  })

  it('takes each known ending', async () => {
    const names = ['a.csv', 'b.TSV', 'c.jsonl', 'd.ndjson', 'e.json', 'f.parquet', 'g.csv.zst', 'h.tab']
    const archive = await archiveOf(...names)
    expect(archive.dataEntries().map((entry) => entry.name)).toEqual(names)
  })

  it('names both where there are two, and what there is where there is none', async () => {
    const two = await archiveOf('a.csv', 'b.jsonl', 'c.pdf')
    expect(() => pickEntry(two, undefined)).toThrow('2 data files in the archive: a.csv, b.jsonl')
    expect(pickEntry(two, 'c.pdf').name).toBe('c.pdf')
    expect(() => pickEntry(two, 'x.csv')).toThrow('no entry x.csv in the archive; it has a.csv, b.jsonl')
    const none = await archiveOf('c.pdf')
    expect(() => pickEntry(none, undefined)).toThrow('no data file in the archive; it has c.pdf')
    expect(hintOf(() => pickEntry(none, undefined))).toMatch(/^say --entry NAME, and --source-format/)
    expect(() => pickEntry(none, 'a')).toThrow('it has c.pdf')
    expect(() => pickEntry(two, undefined)).toThrow(expect.objectContaining({ code: 'SLUICE_ARCHIVE_ENTRY' }) as Error)
  })

  it('lists ten names at most, and a name that is there twice', async () => {
    const many = await archiveOf(...Array.from({ length: 13 }, (_, index) => `${index}.csv`))
    expect(() => pickEntry(many, undefined)).toThrow('9.csv and 3 more')
    const twice = await archiveOf('a.csv', 'a.csv')
    for (const name of ['a.csv', undefined]) {
      expect(() => pickEntry(twice, name)).toThrow('a.csv is in the archive 2 times')
      expect(hintOf(() => pickEntry(twice, name))).toMatch(/^unpack it first/)
    }
  })

  it('reads an empty archive', async () => {
    const archive = await openZip(rangeReader(buildZip([])), place())
    expect(() => pickEntry(archive, undefined)).toThrow('no entries')
  })
})

describe('readEntry', () => {
  it('reads stored, deflated and zstd entries, with and without a descriptor, in zip64 and with a comment', async () => {
    const compressor = await compress('zstd')
    const zstd = Buffer.concat([...(await compressor.write(DATA)), ...(await compressor.end())])
    for (const more of [{ method: 0 }, {}, { descriptor: true }, { zip64: true }, { method: 93, raw: zstd }]) {
      expect(await readOnly(buildZip([csv(more)], { comment: 'PK\x05 hello' }))).toBe(DATA.toString())
      expect(await readOnly(buildZip([csv({ name: 'x.pdf' }), csv(more)], { zip64End: true }))).toBe(DATA.toString())
    }
  })

  it('reads an empty entry and a large one', async () => {
    expect(await readOnly(buildZip([csv({ data: Buffer.alloc(0), method: 0 })]))).toBe('')
    expect(await readOnly(buildZip([csv({ data: Buffer.alloc(0) })]))).toBe('')
    const data = Buffer.from(Array.from({ length: 100_000 }, (_, index) => `${index},${index * 7919}\n`).join(''))
    const reader = rangeReader(buildZip([csv({ data })]), 65_536)
    const archive = await openZip(reader, place())
    expect((await collect(archive.readEntry(pickEntry(archive, undefined), place()))).equals(data)).toBe(true)
    expect(reader.ranges.length).toBeLessThanOrEqual(3)
  })

  it('decodes names in code page 437', async () => {
    const archive = await openZip(
      rangeReader(buildZip([csv({ name: Buffer.from([0x81, 0x2e, 0x63, 0x73, 0x76]) })])),
      place(),
    )
    expect(archive.entries()[0]?.name).toBe('ü.csv')
  })

  it('leaves a compressed file inside to be decompressed', async () => {
    const archive = await openZip(
      rangeReader(buildZip([csv({ name: 'a.csv.gz', data: gzipSync(DATA), method: 0 })])),
      place(),
    )
    const inner = archive.readEntry(pickEntry(archive, undefined), place())
    expect((await collect(decompress('gzip', inner, place()))).toString()).toBe(DATA.toString())
  })

  const LIES: readonly [string, Partial<ZipFileSpec>, string][] = [
    ['a wrong checksum', { crc: 1 }, 'checksum'],
    ['a wrong checksum, stored', { crc: 1, method: 0 }, 'checksum'],
    ['a size too small', { size: 19 }, 'larger'],
    ['a size too large', { size: 21 }, 'cut'],
    ['a stored size that differs', { size: 21, method: 0 }, 'cut'],
    ['deflate data that end early', { raw: Buffer.concat([deflateRawSync(DATA), Buffer.from('more')]) }, 'ends before'],
    ['deflate data that are cut', { raw: deflateRawSync(DATA).subarray(0, -3) }, 'cut'],
    ['deflate data that are none', { raw: Buffer.from('ffffffff', 'hex') }, 'corrupt'],
    ['an unknown method', { method: 77, raw: DATA }, 'method 77'],
    ['LZMA', { method: 14, raw: DATA }, 'LZMA'],
  ]
  it.each(LIES)('refuses %s', async (_, more, words) => {
    const error = await failure(readOnly(buildZip([csv(more)])))
    expect(error.code).toBe('SLUICE_COMPRESSION')
    expect(error.message).toContain(words)
    expect(error.where.url).toBe('file:///t')
  })

  it('refuses a bomb before it has given more than was announced', async () => {
    const bomb = buildZip([csv({ data: Buffer.alloc(10), raw: deflateRawSync(Buffer.alloc(50_000_000)) })])
    const archive = await openZip(rangeReader(bomb, 65_536), place())
    let given = 0
    const reading = (async () => {
      for await (const chunk of archive.readEntry(pickEntry(archive, undefined), place())) given += chunk.byteLength
    })()
    expect((await failure(reading)).message).toContain('larger')
    expect(given).toBe(0)
  })

  it('refuses entries that share their bytes, and a directory that points into itself', async () => {
    const shared = buildZip([csv(), csv({ name: 'b.csv', offset: 0 })])
    expect((await failure(openZip(rangeReader(shared), place()))).message).toContain('overlaps')
    const beyond = buildZip([csv({ offset: 10_000 })])
    expect((await failure(openZip(rangeReader(beyond), place()))).code).toBe('SLUICE_COMPRESSION')
    const crossed = buildZip([csv({ name: 'c.csv' }), csv({ name: 'bb.csv', offset: 1 })])
    expect((await failure(openZip(rangeReader(crossed), place()))).code).toBe('SLUICE_COMPRESSION')
  })

  it('refuses a header that differs from the directory', async () => {
    const bytes = buildZip([csv()])
    bytes.write('b', 30)
    expect((await failure(readOnly(bytes))).message).toContain('something else')
  })

  it('reads an archive with something before it, behind it, or both', async () => {
    const bytes = buildZip([csv(), csv({ name: 'b.txt' })], { comment: 'end' })
    const [before, behind] = [Buffer.from('#!/bin/sh\nPK\n'), Buffer.alloc(70, 'PK\u0005')]
    for (const parts of [
      [before, bytes],
      [bytes, behind],
      [before, bytes, behind],
    ])
      expect(await readOnly(Buffer.concat(parts))).toBe(DATA.toString())
    expect(await readOnly(Buffer.concat([buildZip([csv()], { zip64End: true }), behind]))).toBe(DATA.toString())
    expect((await failure(readOnly(Buffer.concat([before, bytes.subarray(0, -6)])))).code).toBe('SLUICE_COMPRESSION')
  })

  it('takes no cut archive for whole', async () => {
    const bytes = buildZip([csv(), csv({ name: 'b.txt', descriptor: true })], { comment: 'end' })
    for (let end = 0; end < bytes.byteLength; end += 1) {
      const error = await failure(readOnly(bytes.subarray(0, end)))
      expect(error.code).toBe('SLUICE_COMPRESSION')
    }
    expect(await readOnly(bytes)).toBe(DATA.toString())
  })

  it('refuses what a directory cannot be', async () => {
    for (const text of ['', 'PK', 'hello, I am no archive at all, but I am longer than its end record']) {
      expect((await failure(openZip(rangeReader(Buffer.from(text)), place()))).code).toBe('SLUICE_COMPRESSION')
    }
  })

  it('hands the error of the store through', async () => {
    const bytes = buildZip([csv()])
    const broken = {
      size: bytes.byteLength,
      read: async function* (): AsyncGenerator<Uint8Array> {
        throw new SluiceError('SLUICE_SOURCE_CHANGED', 'changed')
      },
    }
    expect((await failure(openZip(broken, place()))).code).toBe('SLUICE_SOURCE_CHANGED')
  })
})
