import {
  chmodSync,
  closeSync,
  openSync,
  writeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/core/job.ts'
import { at, errorOf, MIB, o, open, place, put, store, write } from './local-place.ts'

describe('local store: writing', () => {
  it('keeps the mode of the file that is replaced, also while it is written', async () => {
    const key = put('a', 'old')
    chmodSync(key, 0o640)
    const writer = await open(key, { ifExists: 'overwrite' })
    const [temporary = ''] = readdirSync(place.folder).filter((name) => name !== 'a')
    expect(statSync(at(temporary)).mode & 0o777).toBe(0o640)
    await writer.complete([await writer.writePart({ number: 1, offset: 0, bytes: [Buffer.from('new')] }, o)], o)
    expect(statSync(key).mode & 0o777).toBe(0o640)
    expect(readFileSync(key, 'utf8')).toBe('new')
  })

  it('replaces what a link leads to, not the link', async () => {
    mkdirSync(at('d'))
    put('d/real', 'old')
    symlinkSync('d/real', at('link'))
    expect((await errorOf(write(at('link'), 'new'))).code).toBe('SLUICE_EXISTS')
    expect(await write(at('link'), 'new', 'overwrite')).toMatchObject({ key: at('link'), size: 3 })
    expect(lstatSync(at('link')).isSymbolicLink()).toBe(true)
    expect(readFileSync(at('d/real'), 'utf8')).toBe('new')
    expect(readdirSync(at('d'))).toEqual(['real'])
    symlinkSync('d/fresh', at('dangling'))
    await write(at('dangling'), 'fresh')
    expect(readFileSync(at('d/fresh'), 'utf8')).toBe('fresh')
    symlinkSync('circle', at('circle'))
    expect((await errorOf(write(at('circle'), 'x'))).code).toBe('SLUICE_LOCAL_IO')
  })

  it('never writes over a folder', async () => {
    mkdirSync(at('d'))
    put('d/a')
    for (const key of [at('d'), `${at('d')}/`, `${at('new')}/`]) {
      expect((await errorOf(write(key, 'x', 'overwrite'))).code).toBe('SLUICE_USAGE')
    }
    expect(readdirSync(place.folder)).toEqual(['d'])
  })

  it('says that the folder is missing', async () => {
    expect(await errorOf(write(at('no/such/file'), 'x'))).toMatchObject({
      code: 'SLUICE_NOT_FOUND',
      message: `there is no folder ${at('no/such')}`,
      where: { url: at('no/such/file') },
    })
    put('file')
    expect((await errorOf(write(at('file/below'), 'x'))).code).toBe('SLUICE_NOT_FOUND')
  })

  it('says that the disk is full', async () => {
    const error = await errorOf(write('/dev/full', 'x'))
    expect(error).toMatchObject({ code: 'SLUICE_DISK_FULL', where: { url: '/dev/full' } })
  })

  it('can complete again once what stood in the way is gone', async () => {
    const writer = await open(at('a'))
    const parts = [await writer.writePart({ number: 1, offset: 0, bytes: [Buffer.from('mine')] }, o)]
    put('a', 'theirs')
    expect((await errorOf(writer.complete(parts, o))).code).toBe('SLUICE_EXISTS')
    rmSync(at('a'))
    expect(await writer.complete(parts, o)).toMatchObject({ size: 4, etag: (await store.head(at('a'), o)).etag })
    expect(readdirSync(place.folder)).toEqual(['a'])
  })

  it('writes to a descriptor of its own where others go on', async () => {
    const fd = openSync(at('out'), 'w')
    try {
      writeSync(fd, 'before ')
      expect(await write(`/dev/fd/${fd}`, 'ours ')).toMatchObject({ size: 5 })
      writeSync(fd, 'after')
    } finally {
      closeSync(fd)
    }
    expect(readFileSync(at('out'), 'utf8')).toBe('before ours after')
  })

  it('writes names of 255 bytes', async () => {
    const key = at('ü'.repeat(127) + 'x')
    await write(key, 'long')
    expect(readFileSync(key, 'utf8')).toBe('long')
  })

  it('does not leave a hole where a part is missing, nor the end of a longer part', async () => {
    const writer = await open(at('a'))
    const second = await writer.writePart({ number: 2, offset: 5, bytes: [Buffer.from('worldly')] }, o)
    expect((await errorOf(writer.complete([second], o))).code).toBe('SLUICE_INTERNAL')
    const parts = [
      await writer.writePart({ number: 1, offset: 0, bytes: [Buffer.from('hello')] }, o),
      await writer.writePart({ number: 2, offset: 5, bytes: [Buffer.from('wor'), Buffer.from('ld')] }, o),
    ]
    await writer.complete(parts, o)
    expect(readFileSync(at('a'), 'utf8')).toBe('helloworld')
  })

  it('writes parts of more pieces than one system call takes', async () => {
    const pieces = Array.from({ length: 5000 }, (_, n) => Buffer.from(`${n}\n`))
    const writer = await open(at('a'))
    await writer.complete([await writer.writePart({ number: 1, offset: 0, bytes: pieces }, o)], o)
    expect(readFileSync(at('a'))).toEqual(Buffer.concat(pieces))
  })

  it('begins with parts of 8 MiB', () => {
    expect([store.partBytes(null, null), store.partBytes(100, 5)]).toEqual([8 * MIB, 5])
  })

  it('records its intent before anything is there', async () => {
    const seen: string[][] = []
    const record = (): Promise<void> => {
      seen.push(readdirSync(place.folder))
      return Promise.resolve()
    }
    const writer = await store.openWriter(at('a'), { ifExists: 'fail', size: null, record }, o)
    expect(seen[0]).toEqual([])
    expect(seen[1]).toHaveLength(1)
    await writer.abort()
    expect(readdirSync(place.folder)).toEqual([])
  })

  it('leaves nothing where recording fails', async () => {
    let calls = 0
    const record = (): Promise<void> => {
      calls += 1
      return calls === 2 ? Promise.reject(new Error('state folder full')) : Promise.resolve()
    }
    await expect(store.openWriter(at('a'), { ifExists: 'fail', size: null, record }, o)).rejects.toThrow(
      'state folder full',
    )
    expect(readdirSync(place.folder)).toEqual([])
  })
})

describe('local store: after a kill', () => {
  async function finished(): Promise<{ token: Json; intents: Json[] }> {
    const intents: Json[] = []
    const writer = await open(at('a'), { intents })
    const token = writer.token()
    await writer.complete([await writer.writePart({ number: 1, offset: 0, bytes: [Buffer.from('first')] }, o)], o)
    return { token, intents }
  }

  it.each(['token', 'first intent', 'last intent'])(
    'takes an output that it had finished for its own (%s)',
    async (which) => {
      const { token, intents } = await finished()
      const resume = which === 'token' ? token : ((which === 'first intent' ? intents[0] : intents.at(-1)) ?? null)
      if (which === 'first intent') {
        // Killed between link and unlink: only the temporary name tells that the file is ours.
        linkSync(at('a'), (intents[0] as { temporary: string }).temporary)
      }
      const writer = await open(at('a'), { resume })
      expect(writer.present).toEqual([])
      await writer.complete([await writer.writePart({ number: 1, offset: 0, bytes: [Buffer.from('second')] }, o)], o)
      expect(readFileSync(at('a'), 'utf8')).toBe('second')
      expect(readdirSync(place.folder)).toEqual(['a'])
    },
  )

  it('does not take another file for its own', async () => {
    const { token } = await finished()
    renameSync(put('b', 'other'), at('a'))
    expect((await errorOf(open(at('a'), { resume: token }))).code).toBe('SLUICE_EXISTS')
    expect(readFileSync(at('a'), 'utf8')).toBe('other')
  })

  it('removes by an intent nothing but our temporary files', async () => {
    const key = put('precious')
    mkdirSync(at('d'))
    const other = put('d/.x.sluice-0123456789abcdef')
    for (const temporary of [key, other, `${place.folder}/../x`, place.folder]) {
      await store.discard({ store: 'local', path: at('a'), temporary }, o)
    }
    expect(existsSync(key) && existsSync(other)).toBe(true)
    await store.discard({ store: 'local', path: at('d/x'), temporary: other }, o)
    expect(existsSync(other)).toBe(false)
    await store.discard({ store: 'local', path: '/no/such/x', temporary: '/no/such/.x.sluice-0123456789abcdef' }, o)
  })
})
