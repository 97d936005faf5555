import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ObjectInfo, Store } from '../../src/core/ports.ts'
import {
  ALL,
  codeOf,
  digest,
  errorOf,
  o,
  ODD_NAMES,
  patterned,
  readAll,
  sorted,
  type StoreUnderTest,
} from './store-subject.ts'
import { recoveryTests, writingTests } from './store-suite-writing.ts'

export type { StoreUnderTest } from './store-subject.ts'

/** What cannot be asked of a store, by the nature of what is behind it. */
export interface StoreNature {
  /** There is one object, and it can be read once: standard input. */
  readonly once?: boolean
  /** It has `list`. */
  readonly lists?: boolean
  /** The service behind it lists in an order of its own. */
  readonly unordered?: boolean
  /** It is a WritableStore. */
  readonly writes?: boolean
}

/** The one suite of the contracts Store and WritableStore; every implementation passes it unchanged. */
export function describeStore(name: string, setup: () => Promise<StoreUnderTest>, nature: StoreNature = {}): void {
  describe(`store: ${name}`, () => {
    let subject: StoreUnderTest
    beforeEach(async () => {
      subject = await setup()
    })
    afterEach(async () => {
      await subject.store.close()
      await subject.close()
    })
    const current = (): StoreUnderTest => subject
    readingTests(current)
    if (nature.once === true) onceTests(current)
    else replayTests(current)
    if (nature.lists === true) listingTests(current, nature.unordered === true)
    if (nature.writes === true) {
      writingTests(current)
      recoveryTests(current)
    }
  })
}

function readingTests(subject: () => StoreUnderTest): void {
  it('gives all bytes, in order', async () => {
    const bytes = patterned(300_001)
    const key = await subject().put('a.csv', bytes)
    const info = await subject().store.head(key, o)
    expect(info.key).toBe(key)
    expect(info.size === null || info.size === bytes.byteLength).toBe(true)
    expect(digest(await readAll(subject().store, info, ALL))).toBe(digest(bytes))
  })

  it('gives nothing of an empty object', async () => {
    const key = await subject().put('empty.csv', new Uint8Array())
    const info = await subject().store.head(key, o)
    expect((await readAll(subject().store, info, ALL)).byteLength).toBe(0)
  })

  it('ends where the range ends', async () => {
    const bytes = patterned(200_000)
    const key = await subject().put('a.csv', bytes)
    const info = await subject().store.head(key, o)
    expect(digest(await readAll(subject().store, info, { start: 0, end: 70_001 }))).toBe(
      digest(bytes.subarray(0, 70_001)),
    )
  })

  it('can be left early', async () => {
    const key = await subject().put('a.csv', patterned(3_000_000))
    const info = await subject().store.head(key, o)
    let chunks = 0
    for await (const chunk of subject().store.read(info, ALL, o)) {
      chunks += chunk.byteLength > 0 ? 1 : 0
      break
    }
    expect(chunks).toBe(1)
  })

  it('does not begin after an abort', async () => {
    const key = await subject().put('a.csv', patterned(10))
    const info = await subject().store.head(key, o)
    const reason = new Error('stopped')
    const read = async (): Promise<void> => {
      for await (const chunk of subject().store.read(info, ALL, { signal: AbortSignal.abort(reason) }))
        expect(chunk).toBeNull()
    }
    await expect(read()).rejects.toBe(reason)
  })
}

function onceTests(subject: () => StoreUnderTest): void {
  it('says that it is read once, and refuses a second read', async () => {
    const key = await subject().put('a.csv', patterned(10))
    const { store } = subject()
    const info = await store.head(key, o)
    expect(info).toMatchObject({ ranged: false, replayable: false, etag: null })
    await readAll(store, info, ALL)
    expect(await codeOf(readAll(store, info, ALL))).toBe('SLUICE_NOT_REPLAYABLE')
  })
}

function replayTests(subject: () => StoreUnderTest): void {
  it('knows what is not there', async () => {
    const error = await errorOf(subject().store.head(subject().keyOf('missing.csv'), o))
    expect(error.code).toBe('SLUICE_NOT_FOUND')
    expect(error.where.url).toBeDefined()
  })

  it('tells size, pin and date', async () => {
    const key = await subject().put('a.csv', patterned(1234))
    const info = await subject().store.head(key, o)
    expect(info).toMatchObject({ size: 1234, ranged: true, replayable: true })
    expect(info.etag).toEqual(expect.any(String))
    expect(info.modifiedMs).toEqual(expect.any(Number))
    expect(JSON.parse(JSON.stringify(info))).toMatchObject({ key, etag: info.etag })
    expect((await subject().store.head(key, o)).etag).toBe(info.etag)
  })

  it.each([
    [0, 1],
    [1, 2],
    [99_999, 100_000],
    [12_345, 65_537],
    [50_000, 50_000],
    [65_536, Number.POSITIVE_INFINITY],
    [0, 100_000],
    [99_000, 200_000],
  ])('gives the range [%i, %d)', async (start, end) => {
    const bytes = patterned(100_000)
    const key = await subject().put('a.csv', bytes)
    const info = await subject().store.head(key, o)
    expect(digest(await readAll(subject().store, info, { start, end }))).toBe(
      digest(bytes.subarray(start, Math.min(end, 100_000))),
    )
  })

  it('serves several reads at the same time', async () => {
    const bytes = patterned(400_000)
    const key = await subject().put('a.csv', bytes)
    const info = await subject().store.head(key, o)
    const pieces = await Promise.all(
      [0, 1, 2, 3].map((n) => readAll(subject().store, info, { start: n * 100_000, end: (n + 1) * 100_000 })),
    )
    expect(digest(Buffer.concat(pieces))).toBe(digest(bytes))
  })

  it.each([
    ['whole', ALL],
    ['a range', { start: 1000, end: 2000 }],
  ])('refuses what changed since it was pinned (%s)', async (_, range) => {
    const key = await subject().put('a.csv', patterned(5000))
    const info = await subject().store.head(key, o)
    await subject().put('a.csv', patterned(5000, 7))
    const error = await errorOf(readAll(subject().store, info, range))
    expect(error.code).toBe('SLUICE_SOURCE_CHANGED')
    expect(error.where.url).toBe(info.url)
  })

  it('gives the same bytes to an info that went through JSON, in a later process', async () => {
    const bytes = patterned(5000)
    const key = await subject().put('a.csv', bytes)
    const info = JSON.parse(JSON.stringify(await subject().store.head(key, o))) as ObjectInfo
    expect(digest(await readAll(subject().store, info, { start: 10, end: 4000 }))).toBe(
      digest(bytes.subarray(10, 4000)),
    )
  })

  it.each(ODD_NAMES)('finds the name %s', async (odd) => {
    const key = await subject().put(odd, Buffer.from(odd))
    expect((await readAll(subject().store, await subject().store.head(key, o), ALL)).toString()).toBe(odd)
  })
}

function listingTests(subject: () => StoreUnderTest, unordered: boolean): void {
  const inOrder = (keys: string[]): string[] => (unordered ? sorted(keys) : keys)

  it('lists what begins with a prefix, in the order of bytes', async () => {
    const names = ['p/a.b/c', 'p/a/b', 'p/a0', 'p/B', 'p/z/y/x', 'p/ü', 'p/\u{ff21}', 'p/\u{1f600}', 'p2/a', 'q']
    for (const name of names) await subject().put(name, Buffer.from(name))
    const listed = await list(subject().store, subject().keyOf('p/'))
    expect(inOrder(listed.map((info) => info.key))).toEqual(
      sorted(names.filter((name) => name.startsWith('p/')).map((name) => subject().keyOf(name))),
    )
    expect(listed.every((info) => info.size !== null && info.size > 0 && info.etag !== null)).toBe(true)
  })

  it('lists by a prefix that ends within a name', async () => {
    for (const name of ['d/ab1', 'd/ab2/x', 'd/ac', 'e']) await subject().put(name, Buffer.from('1'))
    const keys = (await list(subject().store, subject().keyOf('d/ab'))).map((info) => info.key)
    expect(keys).toEqual(['d/ab1', 'd/ab2/x'].map((name) => subject().keyOf(name)))
  })

  it('lists nothing where nothing is', async () => {
    await subject().put('x', Buffer.from('1'))
    expect(await list(subject().store, subject().keyOf('nothing/here/'))).toEqual([])
  })

  it('lists what head finds, with the same pin', async () => {
    const key = await subject().put('d/one.csv', patterned(77))
    const [listed] = await list(subject().store, subject().keyOf('d/'))
    expect(listed?.etag).toBe((await subject().store.head(key, o)).etag)
  })

  it('lists odd names', async () => {
    for (const name of ODD_NAMES) await subject().put(`odd/${name}`, Buffer.from(name))
    const keys = (await list(subject().store, subject().keyOf('odd/'))).map((info) => info.key)
    expect(keys).toEqual(sorted(ODD_NAMES.map((name) => subject().keyOf(`odd/${name}`))))
  })

  it('lists page after page', async () => {
    const names = Array.from({ length: 1050 }, (_, n) => `many/${String(n).padStart(5, '0')}`)
    for (let at = 0; at < names.length; at += 50) {
      await Promise.all(names.slice(at, at + 50).map((name) => subject().put(name, Buffer.from('1'))))
    }
    const keys = (await list(subject().store, subject().keyOf('many/'))).map((info) => info.key)
    expect(keys).toEqual(names.map((name) => subject().keyOf(name)))
  })
}

async function list(store: Store, prefix: string): Promise<ObjectInfo[]> {
  const infos: ObjectInfo[] = []
  for await (const info of store.list?.(prefix, o) ?? []) infos.push(info)
  return infos
}
