import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Spool } from '../../../../src/connectors/file/spool.ts'

let folder = ''
let spool: Spool

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-spool-test-'))
  spool = new Spool(folder, { mostBytes: 1000 })
})
afterEach(async () => {
  await spool.close()
  chmodSync(folder, 0o700)
  rmSync(folder, { recursive: true })
})

async function* inChunks(text: string, chunkBytes = 7): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < text.length; at += chunkBytes) yield Buffer.from(text.slice(at, at + chunkBytes))
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const list: Uint8Array[] = []
  for await (const chunk of chunks) list.push(chunk)
  return Buffer.concat(list).toString()
}

const ALL = { start: 0, end: Number.POSITIVE_INFINITY }
const letters = (count: number, seed: number): string =>
  Array.from({ length: count }, (_, i) => String.fromCharCode(97 + ((i * 7 + seed) % 26))).join('')

describe('what is kept', () => {
  it('is passed on, and read again by any range, partition by partition', async () => {
    const [a, b] = [letters(300, 1), letters(410, 2)]
    expect(await textOf(spool.keep('a', inChunks(a)))).toBe(a)
    expect(await textOf(spool.keep('b', inChunks(b)))).toBe(b)
    expect(spool.has('a') && spool.has('b')).toBe(true)
    expect(await textOf(spool.read('b', ALL))).toBe(b)
    expect(await textOf(spool.read('a', { start: 100, end: 233 }))).toBe(a.slice(100, 233))
    expect(await textOf(spool.read('a', { start: 250, end: 900 }))).toBe(a.slice(250))
  })

  it('has no name in the folder, so that nothing outlives the process', async () => {
    await textOf(spool.keep('a', inChunks('abc')))
    expect(readdirSync(folder)).toEqual([])
  })

  it('may be nothing', async () => {
    await textOf(spool.keep('a', inChunks('')))
    expect(spool.has('a')).toBe(true)
    expect(await textOf(spool.read('a', ALL))).toBe('')
  })

  it('is read by several at once', async () => {
    const a = letters(900, 3)
    await textOf(spool.keep('a', inChunks(a, 64)))
    const read = await Promise.all([0, 100, 899].map((start) => textOf(spool.read('a', { ...ALL, start }))))
    expect(read).toEqual([a, a.slice(100), a.slice(899)])
  })
})

describe('what is not kept', () => {
  it('is what does not fit, and what comes after it has the room', async () => {
    const [large, small] = [letters(1001, 4), letters(1000, 5)]
    expect(await textOf(spool.keep('large', inChunks(large)))).toBe(large)
    expect(spool.has('large')).toBe(false)
    expect(await textOf(spool.keep('small', inChunks(small)))).toBe(small)
    expect(await textOf(spool.read('small', ALL))).toBe(small)
    expect(await textOf(spool.keep('more', inChunks('x')))).toBe('x')
    expect(spool.has('more')).toBe(false)
  })

  it('is what is known not to fit', async () => {
    expect(await textOf(spool.keep('a', inChunks('abc'), { leastBytes: 1001 }))).toBe('abc')
    expect(spool.has('a')).toBe(false)
  })

  it('is what was not read to its end', async () => {
    for await (const chunk of spool.keep('a', inChunks(letters(500, 6)))) if (chunk.byteLength > 0) break
    expect(spool.has('a')).toBe(false)
    const b = letters(1000, 7)
    await textOf(spool.keep('b', inChunks(b)))
    expect(await textOf(spool.read('b', ALL))).toBe(b)
  })

  it('is what ended with an error, which comes through', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('abc')
      await Promise.resolve()
      throw new Error('wrong checksum')
    }
    await expect(textOf(spool.keep('a', broken()))).rejects.toThrow('wrong checksum')
    expect(spool.has('a')).toBe(false)
  })

  it('is anything where no file can be made', async () => {
    writeFileSync(join(folder, 'file'), '')
    const lost = new Spool(join(folder, 'file', 'below'))
    expect(await textOf(lost.keep('a', inChunks('abc')))).toBe('abc')
    expect(lost.has('a')).toBe(false)
    await lost.close()
  })

  it('is a second partition while the first is being kept', async () => {
    const first = spool.keep('a', inChunks('abcdefghijkl'))
    await first.next()
    expect(await textOf(spool.keep('b', inChunks('xyz')))).toBe('xyz')
    expect(await textOf(first)).toBe('hijkl')
    expect([spool.has('a'), spool.has('b')]).toEqual([true, false])
  })
})
