import { expect, it } from 'vitest'
import { SluiceError } from '../../src/core/errors.ts'
import type { Json } from '../../src/core/job.ts'
import type { ObjectInfo, ObjectWriter, WritableStore, WrittenPart } from '../../src/core/ports.ts'
import { codeOf, digest, o, objectDigest, ODD_NAMES, patterned, type StoreUnderTest } from './store-subject.ts'

/** Of the smallest part that S3 allows but for the last (5 MiB). */
const PART_BYTES = 5 * 1024 * 1024

/** Whole objects, races, aborts. */
export function writingTests(subject: () => StoreUnderTest): void {
  it('writes a small object in one part', async () => {
    const bytes = patterned(1000)
    const info = await write(subject(), 'new.csv', bytes)
    expect(info).toMatchObject({ key: subject().keyOf('new.csv'), size: 1000 })
    expect(await objectDigest(subject(), 'new.csv')).toBe(digest(bytes))
    expect((await writable(subject()).head(info.key, o)).etag).toBe(info.etag)
  })

  it('writes an empty object', async () => {
    await write(subject(), 'empty.csv', new Uint8Array())
    expect(await objectDigest(subject(), 'empty.csv')).toBe(digest(new Uint8Array()))
  })

  it.each(ODD_NAMES.map((name) => name.replaceAll('/', '-')))('writes the name %s', async (odd) => {
    await write(subject(), odd, Buffer.from(odd))
    expect(await objectDigest(subject(), odd)).toBe(digest(Buffer.from(odd)))
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
    expect(await objectDigest(subject(), 'parts.bin')).toBe(digest(bytes))
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
    expect(await objectDigest(subject(), 'twice.bin')).toBe(digest(bytes))
  })

  it('shows nothing before complete, and completes once however often it is told', async () => {
    const bytes = patterned(PART_BYTES + 1)
    const writer = await open(subject(), 'later.bin', { size: bytes.byteLength })
    const parts = [await writer.writePart(partOf(bytes, 1), o), await writer.writePart(partOf(bytes, 2), o)]
    expect(await codeOf(subject().store.head(subject().keyOf('later.bin'), o))).toBe('SLUICE_NOT_FOUND')
    const first = await writer.complete(parts, o)
    expect((await writer.complete(parts, o)).etag).toBe(first.etag)
    expect(first).toMatchObject({ size: bytes.byteLength })
    await writer.abort()
    expect(await objectDigest(subject(), 'later.bin')).toBe(digest(bytes))
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
    expect(await codeOf(write(subject(), 'there.csv', patterned(20, 3)))).toBe('SLUICE_EXISTS')
    expect(await objectDigest(subject(), 'there.csv')).toBe(digest(there))
    expect(await subject().leftovers()).toEqual([])
  })

  it.each([
    ['small', 100],
    ['in parts', PART_BYTES + 100],
  ])('lets one of two win a race (fail, %s)', async (_, bytes) => {
    const contents = [patterned(bytes), patterned(bytes, 3)]
    const outcomes = await Promise.allSettled(contents.map((content) => write(subject(), 'race.bin', content)))
    const won = outcomes.findIndex((outcome) => outcome.status === 'fulfilled')
    const lost = outcomes[1 - won]
    expect(lost?.status === 'rejected' && lost.reason instanceof SluiceError && lost.reason.code).toBe('SLUICE_EXISTS')
    expect(await objectDigest(subject(), 'race.bin')).toBe(digest(contents[won] ?? new Uint8Array()))
    expect(await subject().leftovers()).toEqual([])
  })

  it('replaces what is there, at the end and whole (overwrite)', async () => {
    const [old, fresh] = [patterned(10), patterned(PART_BYTES + 20, 3)]
    await subject().put('there.csv', old)
    const writer = await open(subject(), 'there.csv', { size: fresh.byteLength, ifExists: 'overwrite' })
    const parts = [await writer.writePart(partOf(fresh, 1), o), await writer.writePart(partOf(fresh, 2), o)]
    expect(await objectDigest(subject(), 'there.csv')).toBe(digest(old))
    await writer.complete(parts, o)
    expect(await objectDigest(subject(), 'there.csv')).toBe(digest(fresh))
    expect(await subject().leftovers()).toEqual([])
  })

  it('leaves the old object after an abort (overwrite)', async () => {
    const old = patterned(10)
    await subject().put('there.csv', old)
    const writer = await open(subject(), 'there.csv', { size: null, ifExists: 'overwrite' })
    await writer.writePart(partOf(patterned(PART_BYTES, 3), 1), o)
    await writer.abort()
    expect(await objectDigest(subject(), 'there.csv')).toBe(digest(old))
    expect(await subject().leftovers()).toEqual([])
  })

  it('deletes', async () => {
    const key = await subject().put('old.csv', patterned(10))
    await writable(subject()).delete(key, o)
    expect(await codeOf(subject().store.head(key, o))).toBe('SLUICE_NOT_FOUND')
  })
}

/** What another process does with an unfinished object. */
export function recoveryTests(subject: () => StoreUnderTest): void {
  it('records an intent first, by which another process removes what was left', async () => {
    const intents: Json[] = []
    const writer = await open(subject(), 'left.bin', { size: PART_BYTES + 1, intents })
    await writer.writePart(partOf(patterned(PART_BYTES + 1), 1), o)
    expect(intents.length).toBeGreaterThan(0)
    for (const intent of intents) await writable(subject()).discard(JSON.parse(JSON.stringify(intent)) as Json, o)
    for (const intent of intents) await writable(subject()).discard(intent, o)
    expect(await subject().leftovers()).toEqual([])
    expect(await codeOf(subject().store.head(subject().keyOf('left.bin'), o))).toBe('SLUICE_NOT_FOUND')
    await writer.abort()
  })

  it('does not touch whole objects by an intent', async () => {
    const intents: Json[] = []
    const bytes = patterned(PART_BYTES + 1)
    const writer = await open(subject(), 'whole.bin', { size: bytes.byteLength, intents })
    await writer.complete([await writer.writePart(partOf(bytes, 1), o), await writer.writePart(partOf(bytes, 2), o)], o)
    for (const intent of intents) await writable(subject()).discard(intent, o)
    expect(await objectDigest(subject(), 'whole.bin')).toBe(digest(bytes))
    for (const strange of [null, 1, 'x', [], {}, { path: subject().keyOf('whole.bin') }]) {
      // What is no intent of the store's own may be refused, in the store's own words.
      await writable(subject())
        .discard(strange, o)
        .catch((error: unknown) => expect(error).toBeInstanceOf(SluiceError))
    }
    expect(await objectDigest(subject(), 'whole.bin')).toBe(digest(bytes))
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
    expect(await objectDigest(subject(), 'again.bin')).toBe(digest(bytes))
    await first.abort()
    expect(await objectDigest(subject(), 'again.bin')).toBe(digest(bytes))
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

/** In parts of PART_BYTES. Aborts where it fails, as callers do. */
async function write(subject: StoreUnderTest, name: string, bytes: Uint8Array): Promise<ObjectInfo> {
  const writer = await open(subject, name, { size: bytes.byteLength })
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
