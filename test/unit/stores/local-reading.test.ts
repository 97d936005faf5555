import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createLocalStore } from '../../../src/stores/local-store.ts'
import { ALL, at, errorOf, MIB, o, open, place, put, readAll, store, write } from './local-place.ts'

describe('local store: head', () => {
  it('pins time in nanoseconds, size and inode', async () => {
    const key = put('a', 'abc')
    const { mtimeNs, ino } = statSync(key, { bigint: true })
    expect((await store.head(key, o)).etag).toBe(`mtime:${mtimeNs};size:3;inode:${ino}`)
  })

  it('follows links', async () => {
    put('a', 'abc')
    symlinkSync('a', at('link'))
    expect(await store.head(at('link'), o)).toMatchObject({ key: at('link'), size: 3, ranged: true })
  })

  it('refuses a place.folder, and says how to mean what is in it', async () => {
    const error = await errorOf(store.head(place.folder, o))
    expect(error).toMatchObject({ code: 'SLUICE_USAGE', where: { url: place.folder } })
    expect(error.hint).toContain(`${place.folder}/`)
  })

  it('knows what is not there', async () => {
    put('file')
    symlinkSync('nothing', at('dangling'))
    for (const name of ['missing', 'file/below', 'dangling']) {
      expect(await errorOf(store.head(at(name), o))).toMatchObject({
        code: 'SLUICE_NOT_FOUND',
        where: { url: at(name) },
      })
    }
    expect((await errorOf(store.head(at('x'.repeat(300)), o))).code).toBe('SLUICE_LOCAL_IO')
  })

  it('refuses a socket', async () => {
    const server = createServer().listen(at('socket'))
    await new Promise((resolve) => server.once('listening', resolve))
    expect((await errorOf(store.head(at('socket'), o))).code).toBe('SLUICE_LOCAL_IO')
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('local store: reading', () => {
  const bytes = Buffer.from(Array.from({ length: 3 * MIB + 17 }, (_, n) => (n * 31 + (n >> 9)) & 255))

  it('gives chunks of 256 KiB and more, which belong to the consumer', async () => {
    const info = await store.head(put('a', bytes), o)
    const chunks: Uint8Array[] = []
    for await (const chunk of store.read(info, ALL, o)) chunks.push(chunk)
    expect(chunks.slice(0, -1).every((chunk) => chunk.byteLength >= 256 * 1024)).toBe(true)
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
  })

  it.each([
    ['appended to', (key: string) => appendFileSync(key, 'x')],
    ['cut short', (key: string) => truncateSync(key, 2 * MIB)],
    ['cut to nothing', (key: string) => truncateSync(key, 0)],
    ['touched', (key: string) => utimesSync(key, 1, 1)],
  ])('finds that a file was %s while it was read', async (_, change) => {
    const info = await store.head(put('a', bytes), o)
    let seen = 0
    const read = (async () => {
      for await (const chunk of store.read(info, ALL, o)) {
        if (seen === 0) change(info.key)
        seen += chunk.byteLength
      }
    })()
    const error = await errorOf(read)
    expect(error).toMatchObject({ code: 'SLUICE_SOURCE_CHANGED', where: { url: info.key } })
    expect(seen).toBeLessThan(bytes.byteLength)
  })

  it('goes on with the old file where another takes its name, and refuses the new one from then on', async () => {
    const info = await store.head(put('a', bytes), o)
    const chunks: Uint8Array[] = []
    for await (const chunk of store.read(info, ALL, o)) {
      if (chunks.length === 0) renameSync(put('b', bytes), info.key)
      chunks.push(chunk)
    }
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
    expect((await errorOf(readAll(info))).code).toBe('SLUICE_SOURCE_CHANGED')
  })

  it('finds that a file has gone', async () => {
    const info = await store.head(put('a', bytes), o)
    rmSync(info.key)
    expect((await errorOf(readAll(info))).code).toBe('SLUICE_NOT_FOUND')
  })

  it('closes the file, however the reading ends', async () => {
    const info = await store.head(put('a', bytes), o)
    const openFiles = (): number =>
      readdirSync('/proc/self/fd').filter((fd) => existsSync(`/proc/self/fd/${fd}`) && lstatLink(fd) === info.key)
        .length
    for await (const chunk of store.read(info, ALL, o)) {
      expect(chunk.byteLength > 0 && openFiles() === 1).toBe(true)
      break
    }
    const stop = new AbortController()
    const read = (async () => {
      for await (const _ of store.read(info, ALL, { signal: stop.signal })) stop.abort(new Error('stop'))
    })()
    await expect(read).rejects.toThrow('stop')
    expect(openFiles()).toBe(0)
  })
})

function lstatLink(fd: string): string {
  return execFileSync('readlink', [`/proc/${process.pid}/fd/${fd}`], { encoding: 'utf8' }).trim()
}

describe('local store: what is no regular file', () => {
  function fifo(): string {
    execFileSync('mkfifo', [at('fifo')])
    return at('fifo')
  }

  it('reads a FIFO once, also where its writer comes late', async () => {
    const key = fifo()
    const info = await store.head(key, o)
    expect(info).toMatchObject({ size: null, etag: null, ranged: false, replayable: false })
    const writer = spawn('sh', ['-c', `sleep 0.1; seq 1 100000 > ${key}`])
    expect((await readAll(info)).toString().trimEnd().split('\n')).toHaveLength(100_000)
    await new Promise((resolve) => (writer.exitCode === null ? writer.once('exit', resolve) : resolve(null)))
    expect((await errorOf(readAll(info))).code).toBe('SLUICE_NOT_REPLAYABLE')
  })

  it('stops waiting for a FIFO when it is told to', async () => {
    const info = await createLocalStore().head(fifo(), o)
    const stop = new AbortController()
    const reason = new Error('enough')
    setTimeout(() => stop.abort(reason), 50)
    const read = (async () => {
      for await (const chunk of createLocalStore().read(info, ALL, { signal: stop.signal })) expect(chunk).toBeNull()
    })()
    await expect(read).rejects.toBe(reason)
  })

  it('reads a device', async () => {
    const zeros = await readAll(await store.head('/dev/zero', o), { start: 0, end: 100_000 })
    expect(zeros.equals(Buffer.alloc(100_000))).toBe(true)
  })

  it('writes to a FIFO in place, parts in order, and waits for its reader', async () => {
    const key = fifo()
    const stop = new AbortController()
    setTimeout(() => stop.abort(new Error('no reader')), 100)
    const alone = store.openWriter(key, { ifExists: 'fail', size: null, record: () => Promise.resolve() }, stop)
    await expect(alone).rejects.toThrow('no reader')
    const reader = spawn('cat', [key])
    const chunks: Buffer[] = []
    reader.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    const writer = await open(key)
    const contents = ['a', 'b', 'c'].map((letter) => Buffer.alloc(200_000, letter))
    const parts = await Promise.all(
      [2, 0, 1].map((n) =>
        writer.writePart({ number: n + 1, offset: n * 200_000, bytes: [contents[n] ?? Buffer.alloc(0)] }, o),
      ),
    )
    expect(await writer.complete(parts, o)).toMatchObject({ key, size: 600_000 })
    await new Promise((resolve) => reader.once('close', resolve))
    expect(Buffer.concat(chunks).equals(Buffer.concat(contents))).toBe(true)
    expect(readdirSync(place.folder)).toEqual(['fifo'])
  })

  it('tells that the reader of a FIFO went away', async () => {
    const key = fifo()
    const reader = spawn('head', ['-c', '10', key], { stdio: 'ignore' })
    const writer = await open(key)
    const error = await errorOf(writer.writePart({ number: 1, offset: 0, bytes: [Buffer.alloc(MIB)] }, o))
    expect(error).toMatchObject({ code: 'SLUICE_LOCAL_IO', where: { url: key } })
    await writer.abort()
    if (reader.exitCode === null) await new Promise((resolve) => reader.once('exit', resolve))
  })

  it('writes to /dev/null in place', async () => {
    const before = lstatSync('/dev/null').ino
    expect(await write('/dev/null', 'x'.repeat(1000))).toMatchObject({ size: 1000 })
    expect(lstatSync('/dev/null').ino).toBe(before)
  })
})
