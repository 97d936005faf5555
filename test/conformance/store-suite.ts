import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SluiceError } from '../../src/core/errors.ts'
import type { Json } from '../../src/core/job.ts'
import type { ByteRange, ObjectInfo, ObjectWriter, Store, WritableStore, WrittenPart } from '../../src/core/ports.ts'

/** A store with nothing in it, and a way around it. Made anew for each test. */
export interface StoreUnderTest {
  readonly store: Store
  /** Puts an object there by other means than the store, or replaces it; its key. */
  put(name: string, bytes: Uint8Array): Promise<string>
  /** The key of an object that is not there; `put` with the same name gives the same. */
  keyOf(name: string): string
  /** What lies around besides whole objects: temporary files, unfinished uploads. */
  leftovers(): Promise<readonly string[]>
  close(): Promise<void>
}

/** What cannot be asked of a store, by the nature of what is behind it. */
export interface StoreNature {
  /** There is one object, and it can be read once: standard input. */
  readonly once?: boolean
  /** It has `list`. */
  readonly lists?: boolean
  /** It is a WritableStore. */
  readonly writes?: boolean
}

const ALL: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY }
/** Of the smallest part that S3 allows but for the last (5 MiB). */
const PART_BYTES = 5 * 1024 * 1024
const ODD_NAMES = [
  'a+b.csv',
  '100%.bin',
  'with blank .csv',
  'ümläut-日本.csv',
  'quote\'"&<>.csv',
  'a=b&c#d?e.csv',
  'deep/er/x.csv',
  '~tilde*(1).csv',
]

const signal = (): AbortSignal => new AbortController().signal
const o = { signal: signal() }

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
    if (nature.lists === true) listingTests(current)
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
    expectBytes(await readAll(subject().store, info, ALL), bytes)
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
    expectBytes(await readAll(subject().store, info, { start: 0, end: 70_001 }), bytes.subarray(0, 70_001))
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
    await expect(readAll(subject().store, info, ALL, AbortSignal.abort(reason))).rejects.toBe(reason)
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
    expectBytes(await readAll(subject().store, info, { start, end }), bytes.subarray(start, Math.min(end, 100_000)))
  })

  it('serves several reads at the same time', async () => {
    const bytes = patterned(400_000)
    const key = await subject().put('a.csv', bytes)
    const info = await subject().store.head(key, o)
    const pieces = await Promise.all(
      [0, 1, 2, 3].map((n) => readAll(subject().store, info, { start: n * 100_000, end: (n + 1) * 100_000 })),
    )
    expectBytes(Buffer.concat(pieces), bytes)
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
    expectBytes(await readAll(subject().store, info, { start: 10, end: 4000 }), bytes.subarray(10, 4000))
  })

  it.each(ODD_NAMES)('finds the name %s', async (odd) => {
    const key = await subject().put(odd, Buffer.from(odd))
    expect((await readAll(subject().store, await subject().store.head(key, o), ALL)).toString()).toBe(odd)
  })
}

function listingTests(subject: () => StoreUnderTest): void {
  it('lists what begins with a prefix, in the order of bytes', async () => {
    const names = ['p/a.b/c', 'p/a/b', 'p/a0', 'p/B', 'p/z/y/x', 'p/ü', 'p/\u{ff21}', 'p/\u{1f600}', 'p2/a', 'q']
    for (const name of names) await subject().put(name, Buffer.from(name))
    const listed = await list(subject().store, subject().keyOf('p/'))
    expect(listed.map((info) => info.key)).toEqual(
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

function writingTests(subject: () => StoreUnderTest): void {
  it('writes a small object in one part', async () => {
    const bytes = patterned(1000)
    const info = await write(subject(), 'new.csv', [bytes])
    expect(info).toMatchObject({ key: subject().keyOf('new.csv'), size: 1000 })
    await expectObject(subject(), 'new.csv', bytes)
    expect((await writable(subject()).head(info.key, o)).etag).toBe(info.etag)
  })

  it('writes an empty object', async () => {
    await write(subject(), 'empty.csv', [new Uint8Array()])
    await expectObject(subject(), 'empty.csv', new Uint8Array())
  })

  it.each(ODD_NAMES.map((name) => name.replaceAll('/', '-')))('writes the name %s', async (odd) => {
    await write(subject(), odd, [Buffer.from(odd)])
    await expectObject(subject(), odd, Buffer.from(odd))
  })

  it('writes many parts, out of order and at the same time, each of several pieces', async () => {
    const bytes = patterned(PART_BYTES * 2 + 12_345)
    const writer = await open(subject(), 'parts.bin', { size: bytes.byteLength })
    const numbers = [3, 1, 2]
    const parts = await Promise.all(numbers.map((number) => writer.writePart(partOf(bytes, number), o)))
    expect(parts.map((part) => [part.number, part.bytes])).toEqual([
      [3, 12_345],
      [1, PART_BYTES],
      [2, PART_BYTES],
    ])
    const info = await writer.complete(byNumber(parts), o)
    expect(info.size).toBe(bytes.byteLength)
    await expectObject(subject(), 'parts.bin', bytes)
    expect(await subject().leftovers()).toEqual([])
  })

  it('takes the last of two parts of one number', async () => {
    const bytes = patterned(PART_BYTES + 500)
    const writer = await open(subject(), 'twice.bin', { size: null })
    const other = patterned(PART_BYTES + 900, 3)
    await writer.writePart(partOf(other, 1), o)
    await writer.writePart(partOf(other, 2), o)
    const parts = [await writer.writePart(partOf(bytes, 1), o), await writer.writePart(partOf(bytes, 2), o)]
    await writer.complete(parts, o)
    await expectObject(subject(), 'twice.bin', bytes)
  })

  it('shows nothing before complete, and completes once however often it is told', async () => {
    const bytes = patterned(PART_BYTES + 1)
    const writer = await open(subject(), 'later.bin', { size: bytes.byteLength })
    const parts = [await writer.writePart(partOf(bytes, 1), o), await writer.writePart(partOf(bytes, 2), o)]
    expect(await codeOf(subject().store.head(subject().keyOf('later.bin'), o))).toBe('SLUICE_NOT_FOUND')
    const [first, second] = await Promise.all([writer.complete(parts, o), writer.complete(parts, o)])
    expect(second).toEqual(first)
    expect((await writer.complete(parts, o)).etag).toBe(first.etag)
    await writer.abort()
    await expectObject(subject(), 'later.bin', bytes)
  })

  it('leaves nothing after an abort, however often', async () => {
    const bytes = patterned(PART_BYTES + 1)
    const writer = await open(subject(), 'gone.bin', { size: bytes.byteLength })
    await writer.writePart(partOf(bytes, 1), o)
    await writer.abort()
    await writer.abort()
    expect(await codeOf(subject().store.head(subject().keyOf('gone.bin'), o))).toBe('SLUICE_NOT_FOUND')
    expect(await subject().leftovers()).toEqual([])
  })

  it('does not write over what is there (fail)', async () => {
    const there = patterned(10)
    await subject().put('there.csv', there)
    expect(await codeOf(write(subject(), 'there.csv', [patterned(20, 3)]))).toBe('SLUICE_EXISTS')
    await expectObject(subject(), 'there.csv', there)
    expect(await subject().leftovers()).toEqual([])
  })

  it.each([
    ['small', 100],
    ['in parts', PART_BYTES + 100],
  ])('lets one of two win a race (fail, %s)', async (_, bytes) => {
    const contents = [patterned(bytes), patterned(bytes, 3)]
    const outcomes = await Promise.allSettled(contents.map((content) => write(subject(), 'race.bin', [content])))
    const won = outcomes.findIndex((outcome) => outcome.status === 'fulfilled')
    const lost = outcomes[1 - won]
    expect(lost?.status === 'rejected' && lost.reason instanceof SluiceError && lost.reason.code).toBe('SLUICE_EXISTS')
    await expectObject(subject(), 'race.bin', contents[won] ?? new Uint8Array())
    expect(await subject().leftovers()).toEqual([])
  })

  it('replaces what is there, at the end and whole (overwrite)', async () => {
    const [old, fresh] = [patterned(10), patterned(PART_BYTES + 20, 3)]
    await subject().put('there.csv', old)
    const writer = await open(subject(), 'there.csv', { size: fresh.byteLength, ifExists: 'overwrite' })
    const parts = [await writer.writePart(partOf(fresh, 1), o), await writer.writePart(partOf(fresh, 2), o)]
    await expectObject(subject(), 'there.csv', old)
    await writer.complete(parts, o)
    await expectObject(subject(), 'there.csv', fresh)
    expect(await subject().leftovers()).toEqual([])
  })

  it('leaves the old object after an abort (overwrite)', async () => {
    const old = patterned(10)
    await subject().put('there.csv', old)
    const writer = await open(subject(), 'there.csv', { size: null, ifExists: 'overwrite' })
    await writer.writePart(partOf(patterned(PART_BYTES, 3), 1), o)
    await writer.abort()
    await expectObject(subject(), 'there.csv', old)
    expect(await subject().leftovers()).toEqual([])
  })

  it('deletes', async () => {
    const key = await subject().put('old.csv', patterned(10))
    await writable(subject()).delete(key, o)
    expect(await codeOf(subject().store.head(key, o))).toBe('SLUICE_NOT_FOUND')
  })
}

function recoveryTests(subject: () => StoreUnderTest): void {
  it('records an intent first, by which another process removes what was left', async () => {
    const intents: Json[] = []
    const writer = await open(subject(), 'left.bin', { size: PART_BYTES + 1, intents })
    expect(intents.length).toBeGreaterThan(0)
    await writer.writePart(partOf(patterned(PART_BYTES + 1), 1), o)
    for (const intent of intents) await writable(subject()).discard(JSON.parse(JSON.stringify(intent)) as Json, o)
    for (const intent of intents) await writable(subject()).discard(intent, o)
    expect(await subject().leftovers()).toEqual([])
    expect(await codeOf(subject().store.head(subject().keyOf('left.bin'), o))).toBe('SLUICE_NOT_FOUND')
    await writer.abort()
  })

  it('does not touch whole objects by an intent', async () => {
    const intents: Json[] = []
    const bytes = patterned(PART_BYTES + 1)
    await write(subject(), 'whole.bin', [bytes], intents)
    for (const intent of intents) await writable(subject()).discard(intent, o)
    await expectObject(subject(), 'whole.bin', bytes)
    for (const strange of [null, 1, 'x', [], {}, { path: subject().keyOf('whole.bin') }]) {
      await writable(subject()).discard(strange, o)
    }
    await expectObject(subject(), 'whole.bin', bytes)
  })

  it('takes an unfinished object up again', async () => {
    const bytes = patterned(PART_BYTES * 2 + 7)
    const first = await open(subject(), 'again.bin', { size: bytes.byteLength })
    await first.writePart(partOf(bytes, 2), o)
    const resume = JSON.parse(JSON.stringify(first.token())) as Json
    const writer = await open(subject(), 'again.bin', { size: bytes.byteLength, resume })
    const parts = [...writer.present]
    for (const number of [1, 2, 3]) {
      if (!parts.some((part) => part.number === number)) parts.push(await writer.writePart(partOf(bytes, number), o))
    }
    await writer.complete(byNumber(parts), o)
    await expectObject(subject(), 'again.bin', bytes)
    await first.abort()
    await expectObject(subject(), 'again.bin', bytes)
    expect(await subject().leftovers()).toEqual([])
  })
}

interface Opening {
  readonly size: number | null
  readonly ifExists?: 'fail' | 'overwrite'
  readonly resume?: Json
  readonly intents?: Json[]
}

function open(subject: StoreUnderTest, name: string, how: Opening): Promise<ObjectWriter> {
  const record = (intent: Json): Promise<void> => {
    how.intents?.push(intent)
    return Promise.resolve()
  }
  const { size, ifExists = 'fail', resume } = how
  return writable(subject).openWriter(subject.keyOf(name), { ifExists, size, resume, record }, o)
}

/** Contents of up to PART_BYTES are one part. Aborts where it fails, as callers do. */
async function write(
  subject: StoreUnderTest,
  name: string,
  contents: Uint8Array[],
  intents: Json[] = [],
): Promise<ObjectInfo> {
  const bytes = Buffer.concat(contents)
  const writer = await open(subject, name, { size: bytes.byteLength, intents })
  try {
    const parts: WrittenPart[] = []
    for (let number = 1; number === 1 || (number - 1) * PART_BYTES < bytes.byteLength; number += 1) {
      parts.push(await writer.writePart(partOf(bytes, number), o))
    }
    return await writer.complete(parts, o)
  } catch (error) {
    await writer.abort()
    throw error
  }
}

function partOf(bytes: Uint8Array, number: number): { number: number; offset: number; bytes: Uint8Array[] } {
  const offset = (number - 1) * PART_BYTES
  const part = bytes.subarray(offset, offset + PART_BYTES)
  const middle = Math.floor(part.byteLength / 3)
  return { number, offset, bytes: [part.subarray(0, middle), new Uint8Array(), part.subarray(middle)] }
}

function byNumber(parts: readonly WrittenPart[]): WrittenPart[] {
  return [...parts].sort((a, b) => a.number - b.number)
}

function writable(subject: StoreUnderTest): WritableStore {
  if (!('openWriter' in subject.store)) throw new Error('this store does not write')
  return subject.store as WritableStore
}

async function expectObject(subject: StoreUnderTest, name: string, bytes: Uint8Array): Promise<void> {
  expectBytes(await readAll(subject.store, await subject.store.head(subject.keyOf(name), o), ALL), bytes)
}

async function readAll(
  store: Store,
  info: ObjectInfo,
  range: ByteRange,
  abort: AbortSignal = signal(),
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.read(info, range, { signal: abort })) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function list(store: Store, prefix: string): Promise<ObjectInfo[]> {
  const infos: ObjectInfo[] = []
  for await (const info of store.list?.(prefix, o) ?? []) infos.push(info)
  return infos
}

function sorted(keys: readonly string[]): string[] {
  return [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

async function errorOf(promise: Promise<unknown>): Promise<SluiceError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof SluiceError) return error
  throw new Error('no SluiceError came', { cause: error })
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return (await errorOf(promise)).code
}

/** Compared by hand: a failing comparison of megabytes would be printed. */
function expectBytes(actual: Uint8Array, expected: Uint8Array): void {
  expect(actual.byteLength).toBe(expected.byteLength)
  expect(Buffer.compare(actual, expected)).toBe(0)
}

/** Bytes that repeat nowhere near a power of two, so that no shifted or swapped piece looks right. */
function patterned(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length)
  let state = seed
  for (let at = 0; at < length; at += 1) {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    bytes[at] = state >>> 16
  }
  return bytes
}
