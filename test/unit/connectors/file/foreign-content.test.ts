import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFileSource } from '../../../../src/connectors/file/source.ts'
import type { CopyOptions } from '../../../../src/core/options.ts'

const signal = new AbortController().signal
const TEXT = 'id,name\n1,a\n2,b\n'
const PAGE = '\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-foreign-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

/** The names of the columns, or the error. */
async function describeFile(name: string, bytes: string | Uint8Array, options: CopyOptions = {}): Promise<unknown> {
  const url = join(folder, name)
  writeFileSync(url, bytes)
  const reporter = { warn: () => undefined, retried: () => undefined }
  const source = await createFileSource({ url, options, env: {}, reporter, signal, retryForMs: 1000, spoolDir: folder })
  try {
    return (await source.describe({ signal })).columns.map((column) => column.name)
  } catch (error) {
    return error
  } finally {
    await source.close()
  }
}

function tar(): Buffer {
  const file = join(folder, 'in.csv')
  writeFileSync(file, TEXT)
  return execFileSync('tar', ['-c', '-C', folder, 'in.csv'])
}

describe('what is no text is refused by the name of what it is', () => {
  it.each([
    ['xz', Buffer.from('fd377a585a000004e6d6b446', 'hex'), /xz -dc/],
    ['lz4', Buffer.from('04224d186440a7', 'hex'), /lz4 -dc/],
    ['7z', Buffer.from('377abcaf271c0004', 'hex'), /7z x -so/],
    ['RAR', Buffer.from('526172211a0701', 'hex'), /unpack/],
    ['Office', Buffer.from('d0cf11e0a1b11ae1', 'hex'), /CSV/],
    ['PDF', Buffer.from('%PDF-1.7\n'), /data/],
  ])('%s, whatever its name says', async (what, bytes, hint) => {
    const expected = {
      code: 'SLUICE_UNKNOWN_FORMAT',
      message: expect.stringContaining(what),
      hint: expect.stringMatching(hint),
    }
    expect(await describeFile('a.csv', bytes)).toMatchObject(expected)
    expect(await describeFile('a.bin', bytes)).toMatchObject(expected)
    expect(await describeFile('a.txt', bytes, { sourceFormat: 'csv' })).toMatchObject(expected)
  })

  it('tar, also within gzip', async () => {
    const expected = { code: 'SLUICE_UNKNOWN_FORMAT', message: expect.stringContaining('a tar archive') }
    expect(await describeFile('a.tar', tar())).toMatchObject(expected)
    expect(await describeFile('a.tar.gz', gzipSync(tar()), { sourceFormat: 'csv' })).toMatchObject(expected)
  })

  it('a web page, unless the format was said', async () => {
    const expected = { code: 'SLUICE_UNKNOWN_FORMAT', message: expect.stringContaining('a web page') }
    expect(await describeFile('a.csv', PAGE)).toMatchObject(expected)
    expect(await describeFile('a.csv', PAGE, { header: false })).toMatchObject(expected)
    expect(await describeFile('a.zip', PAGE)).toMatchObject(expected)
    expect(await describeFile('a.csv', PAGE, { sourceFormat: 'csv' })).toEqual(['<!DOCTYPE html>'])
  })

  it('UTF-16 without a byte-order mark, with the encoding to say; UTF-32', async () => {
    const little = Buffer.from(TEXT, 'utf16le')
    const big = Buffer.from(little).swap16()
    const wide = (bytes: Buffer): Buffer =>
      Buffer.concat(
        Array.from({ length: bytes.byteLength / 2 }, (_, i) =>
          Buffer.from([...bytes.subarray(2 * i, 2 * i + 2), 0, 0]),
        ),
      )
    const at = (name: string): unknown =>
      expect.objectContaining({ code: 'SLUICE_ENCODING', hint: expect.stringContaining(name) })
    expect(await describeFile('a.csv', little)).toEqual(at('--encoding utf-16le'))
    expect(await describeFile('a.csv', big)).toEqual(at('--encoding utf-16be'))
    expect(await describeFile('a.csv', wide(Buffer.from(`\ufeff${TEXT}`, 'utf16le')))).toEqual(at('iconv -f UTF-32'))
    expect(await describeFile('a.csv', little, { encoding: 'utf-16le' })).toEqual(['id', 'name'])
    expect(await describeFile('a.csv', Buffer.from(`\ufeff${TEXT}`, 'utf16le'))).toEqual(['id', 'name'])
  })
})

it('takes text that only looks a little like it', async () => {
  expect(await describeFile('a.csv', '<html5>,b\n1,2\n')).toEqual(['<html5>', 'b'])
  expect(await describeFile('a.csv', `${'x'.repeat(257)},ustar\n`)).toEqual(['x'.repeat(257), 'ustar'])
  expect(await describeFile('a.csv', 'Obj,7z\n')).toEqual(['Obj', '7z'])
  expect(await describeFile('a.csv', '')).toEqual([])
})
