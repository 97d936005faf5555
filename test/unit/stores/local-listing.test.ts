import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { at, errorOf, keys, o, open, place, put } from './local-place.ts'

describe('local store: list', () => {
  it('follows links, but not in circles, and leaves out what is no file', async () => {
    mkdirSync(at('d/e'), { recursive: true })
    mkdirSync(at('elsewhere'))
    put('elsewhere/x')
    put('d/a')
    put('d/e/b')
    symlinkSync('..', at('d/e/up'))
    symlinkSync('.', at('d/self'))
    symlinkSync('../elsewhere', at('d/linked'))
    symlinkSync('a', at('d/alias'))
    symlinkSync('nothing', at('d/dangling'))
    symlinkSync('loop', at('d/loop'))
    execFileSync('mkfifo', [at('d/fifo')])
    expect(await keys(at('d/'))).toEqual(['d/a', 'd/alias', 'd/e/b', 'd/linked/x'])
  })

  it('shows no unfinished output', async () => {
    put('a')
    const writer = await open(at('b'))
    await writer.writePart({ number: 1, offset: 0, bytes: [Buffer.from('x')] }, o)
    expect(readdirSync(place.folder)).toHaveLength(2)
    expect(await keys(`${place.folder}/`)).toEqual(['a'])
    await writer.abort()
  })

  it('shows hidden files', async () => {
    put('.hidden')
    expect(await keys(`${place.folder}/`)).toEqual(['.hidden'])
  })

  it('does not enter folders that are not wanted', async () => {
    for (const name of ['a', 'b']) mkdirSync(at(name))
    put('a/1')
    put('b/2')
    put('c')
    expect(await keys(`${place.folder}/`, (below) => below !== at('a/'))).toEqual(['b/2', 'c'])
  })

  it('finds nothing below a file, or where nothing is', async () => {
    put('a')
    expect(await keys(at('a/'))).toEqual([])
    expect(await keys(at('b/c/'))).toEqual([])
  })

  it('refuses a name that is not UTF-8, rather than leave it out', async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${place.folder}/`), Buffer.from([0x61, 0xff])]), 'x')
    expect(await errorOf(keys(`${place.folder}/`))).toMatchObject({
      code: 'SLUICE_LOCAL_IO',
      where: { url: `${place.folder}/` },
    })
  })
})
