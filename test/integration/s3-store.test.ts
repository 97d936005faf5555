import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SluiceError } from '../../src/core/errors.ts'
import type { Json } from '../../src/core/job.ts'
import type { ObjectInfo, WritableStore, WriteOptions, WrittenPart } from '../../src/core/ports.ts'
import { createS3Store } from '../../src/stores/s3/s3-store.ts'
import { freshBucket, s3Do, s3Request, sharedServices, type S3Address } from '../support/services.ts'

const signal = new AbortController().signal
const o = { signal }
const PART = 5 * 1024 * 1024
const ALL = { start: 0, end: Number.POSITIVE_INFINITY }
const warnings: string[] = []
const reporter = { warn: (message: string) => void warnings.push(message), retried: () => undefined }

function storeOf(address: S3Address, env: Record<string, string> = {}): WritableStore {
  return createS3Store({ retryForMs: 10_000, env: { ...address.env, ...env }, reporter })
}

async function bytesOf(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

async function listed(objects: AsyncIterable<ObjectInfo> | undefined): Promise<ObjectInfo[]> {
  const all: ObjectInfo[] = []
  for await (const one of objects ?? []) all.push(one)
  return all
}

function options(over: Partial<WriteOptions> & { records?: Json[] } = {}): WriteOptions {
  const { records, ...rest } = over
  return {
    ifExists: 'fail',
    size: null,
    record: (intent) => {
      records?.push(intent)
      return Promise.resolve()
    },
    ...rest,
  }
}

async function put(
  store: WritableStore,
  key: string,
  body: Buffer,
  over: Partial<WriteOptions> = {},
): Promise<ObjectInfo> {
  const writer = await store.openWriter(key, options({ size: body.byteLength, ...over }), o)
  const part = await writer.writePart({ number: 1, offset: 0, bytes: [body] }, o)
  return writer.complete([part], o)
}

async function failure(promise: Promise<unknown>): Promise<SluiceError> {
  const outcome = await promise.then(
    () => null,
    (error: SluiceError) => error,
  )
  if (outcome === null) throw new Error('nothing failed')
  return outcome
}

describe.each(['versitygw', 'seaweedfs'] as const)('the S3 store on %s', (service) => {
  let address: S3Address
  let bucket = ''
  let store: WritableStore

  const uploadsLeft = async (key: string): Promise<number> => {
    const answer = await s3Do(address, { method: 'GET', path: `/${bucket}`, query: { uploads: '', prefix: key } })
    return answer.body.toString().split('<UploadId>').length - 1
  }

  beforeAll(async () => {
    address = sharedServices()[service]
    bucket = await freshBucket(address)
    store = storeOf(address)
  })
  afterAll(() => store.close())

  it.each(['100%.bin', 'a+b', ' two  blanks ', 'ü/ö.csv', "it's (1)!*~&=?#;,@$.csv", 'a%20b', '日本/😀.csv'])(
    'takes the key %j as typed',
    async (key) => {
      const body = Buffer.from(`body of ${key}`)
      await put(store, `${bucket}/odd/${key}`, body)
      const seen = await s3Do(address, { method: 'GET', path: `/${bucket}/odd/${key}` })
      expect(seen.body.toString()).toBe(body.toString())
      const info = await store.head(`${bucket}/odd/${key}`, o)
      expect(info).toMatchObject({ size: body.byteLength, url: `s3://${bucket}/odd/${key}`, ranged: true })
      expect((await bytesOf(store.read(info, ALL, o))).toString()).toBe(body.toString())
      const names = (await listed(store.list?.(`${bucket}/odd/${key}`, o))).map((one) => one.key)
      expect(names).toEqual([`${bucket}/odd/${key}`])
      await store.delete(`${bucket}/odd/${key}`, o)
      await store.delete(`${bucket}/odd/${key}`, o)
      expect((await failure(store.head(`${bucket}/odd/${key}`, o))).code).toBe('SLUICE_NOT_FOUND')
    },
  )

  it('writes an empty object, known or unknown to be empty', async () => {
    const writer = await store.openWriter(`${bucket}/empty`, options({ size: 0 }), o)
    expect(await writer.complete([], o)).toMatchObject({ size: 0 })
    const streamed = await store.openWriter(`${bucket}/empty-stream`, options(), o)
    expect(await streamed.complete([], o)).toMatchObject({ size: 0 })
    const info = await store.head(`${bucket}/empty-stream`, o)
    expect(await bytesOf(store.read(info, ALL, o))).toHaveLength(0)
    expect(await uploadsLeft('empty')).toBe(0)
  })

  it('reads ranges, and the whole', async () => {
    const body = randomBytes(1_000_003)
    const info = await put(store, `${bucket}/ranges`, body)
    expect((await bytesOf(store.read(info, { start: 10, end: 77 }, o))).equals(body.subarray(10, 77))).toBe(true)
    expect(
      (await bytesOf(store.read(info, { start: 999_999, end: 2_000_000 }, o))).equals(body.subarray(999_999)),
    ).toBe(true)
    expect((await bytesOf(store.read(info, ALL, o))).equals(body)).toBe(true)
    expect(await bytesOf(store.read(info, { start: 5, end: 5 }, o))).toHaveLength(0)
  })

  it('writes parts in parallel and in any order, and shows nothing before complete', async () => {
    const body = randomBytes(2 * PART + 1234)
    const writer = await store.openWriter(`${bucket}/parts`, options({ size: body.byteLength }), o)
    const one = (number: number): Promise<WrittenPart> => {
      const offset = (number - 1) * PART
      const half = offset + 1000
      const bytes = [body.subarray(offset, half), body.subarray(half, Math.min(offset + PART, body.byteLength))]
      return writer.writePart({ number, offset, bytes }, o)
    }
    const parts = await Promise.all([3, 1, 2].map(one))
    expect((await failure(store.head(`${bucket}/parts`, o))).code).toBe('SLUICE_NOT_FOUND')
    const info = await writer.complete(parts, o)
    expect(await writer.complete(parts, o)).toEqual(info)
    expect(info).toMatchObject({ size: body.byteLength, key: `${bucket}/parts` })
    expect((await bytesOf(store.read(info, ALL, o))).equals(body)).toBe(true)
    expect(await uploadsLeft('parts')).toBe(0)
  })

  it('refuses to overwrite, by itself and by the store, and overwrites when told so', async () => {
    await put(store, `${bucket}/there`, Buffer.from('first'))
    expect(await failure(put(store, `${bucket}/there`, Buffer.from('second')))).toMatchObject({
      code: 'SLUICE_EXISTS',
      where: { url: `s3://${bucket}/there` },
    })
    // Two writers that both saw no object: the store decides.
    const small = await store.openWriter(`${bucket}/race`, options({ size: 3 }), o)
    const part = await small.writePart({ number: 1, offset: 0, bytes: [Buffer.from('abc')] }, o)
    const large = await store.openWriter(`${bucket}/race`, options(), o)
    const bytes = [Buffer.alloc(PART, 1)]
    const largePart = await large.writePart({ number: 1, offset: 0, bytes }, o)
    await small.complete([part], o)
    expect((await failure(large.complete([largePart], o))).code).toBe('SLUICE_EXISTS')
    await large.abort()
    expect(await uploadsLeft('race')).toBe(0)
    const late = await put(store, `${bucket}/race`, Buffer.from('defg'), { ifExists: 'overwrite' })
    expect((await bytesOf(store.read(late, ALL, o))).toString()).toBe('defg')
  })

  it('finds a changed and a deleted object out', async () => {
    const body = randomBytes(300_000)
    const info = await put(store, `${bucket}/changing`, body)
    await put(store, `${bucket}/changing`, randomBytes(300_000), { ifExists: 'overwrite' })
    for (const range of [ALL, { start: 7, end: 99 }]) {
      expect(await failure(bytesOf(store.read(info, range, o)))).toMatchObject({
        code: 'SLUICE_SOURCE_CHANGED',
        where: { url: `s3://${bucket}/changing` },
      })
    }
    await store.delete(`${bucket}/changing`, o)
    expect((await failure(bytesOf(store.read(info, ALL, o)))).code).toBe('SLUICE_SOURCE_CHANGED')
  })

  it('takes an upload up again with the parts that are there', async () => {
    const body = randomBytes(2 * PART + 99)
    const records: Json[] = []
    const first = await store.openWriter(`${bucket}/again`, options({ size: body.byteLength, records }), o)
    await Promise.all(
      [1, 2].map((number) =>
        first.writePart(
          { number, offset: (number - 1) * PART, bytes: [body.subarray((number - 1) * PART, number * PART)] },
          o,
        ),
      ),
    )
    expect(records).toHaveLength(2)
    expect(records.at(-1)).toEqual(first.token())
    const second = await store.openWriter(
      `${bucket}/again`,
      options({ size: body.byteLength, resume: first.token(), records }),
      o,
    )
    expect(second.present.map(({ number, offset, bytes }) => [number, offset, bytes])).toEqual([
      [1, 0, PART],
      [2, PART, PART],
    ])
    const last = await second.writePart({ number: 3, offset: 2 * PART, bytes: [body.subarray(2 * PART)] }, o)
    const info = await second.complete([...second.present, last], o)
    expect((await bytesOf(store.read(info, ALL, o))).equals(body)).toBe(true)

    // A kill after Complete and before anyone wrote down that it was done.
    const third = await store.openWriter(
      `${bucket}/again`,
      options({ size: body.byteLength, resume: records.at(-1) }),
      o,
    )
    expect(third.present).toHaveLength(3)
    expect(await third.complete(third.present, o)).toMatchObject({ etag: info.etag, size: body.byteLength })
    expect(await uploadsLeft('again')).toBe(0)
  })

  it('starts anew where the upload to take up is gone', async () => {
    const records: Json[] = []
    const first = await store.openWriter(`${bucket}/gone`, options({ records }), o)
    await first.abort()
    const second = await store.openWriter(`${bucket}/gone`, options({ resume: records.at(-1) }), o)
    expect(second.present).toEqual([])
    expect(second.token()).not.toEqual(first.token())
    await second.abort()
    expect(await uploadsLeft('gone')).toBe(0)
  })

  it('discards what an intent made, and nothing else', async () => {
    const others = await store.openWriter(`${bucket}/killed`, options(), o)
    const records: Json[] = []
    await store.openWriter(`${bucket}/killed`, options({ records }), o)
    expect(await uploadsLeft('killed')).toBe(2)
    // The first record is all that a kill between the intent and the answer of Create leaves.
    const [intent] = records
    if (intent === undefined) throw new Error('no intent was recorded')
    await store.discard(intent, o)
    expect(await uploadsLeft('killed')).toBe(1)
    await store.discard(intent, o)
    expect(await uploadsLeft('killed')).toBe(1)
    await store.discard(others.token(), o)
    expect(await uploadsLeft('killed')).toBe(0)
  })

  it('takes the one upload up that a kill right after Create left', async () => {
    const records: Json[] = []
    const killed = await store.openWriter(`${bucket}/early`, options({ records }), o)
    const resumed = await store.openWriter(`${bucket}/early`, options({ resume: records[0] }), o)
    expect(resumed.token()).toEqual(killed.token())
    await resumed.abort()
    expect(await uploadsLeft('early')).toBe(0)
  })

  it('aborts with parts in flight and leaves nothing', async () => {
    const writer = await store.openWriter(`${bucket}/aborted`, options(), o)
    const parts = [1, 2, 3, 4].map((number) =>
      failureOrNull(writer.writePart({ number, offset: (number - 1) * PART, bytes: [Buffer.alloc(PART, number)] }, o)),
    )
    await writer.abort()
    await Promise.all(parts)
    expect(await uploadsLeft('aborted')).toBe(0)
    expect((await failure(store.head(`${bucket}/aborted`, o))).code).toBe('SLUICE_NOT_FOUND')
  })

  it('stops at a signal', async () => {
    const info = await put(store, `${bucket}/stopped`, randomBytes(3_000_000))
    const stop = new AbortController()
    const reading = (async () => {
      for await (const chunk of store.read(info, ALL, { signal: stop.signal })) {
        expect(chunk.byteLength).toBeGreaterThan(0)
        stop.abort(new Error('enough'))
      }
    })()
    await expect(reading).rejects.toThrow('enough')
  })

  it('tells bucket, object, key and secret apart', async () => {
    const missing = await failure(store.head(`${bucket}/nothing-here`, o))
    expect(missing).toMatchObject({ code: 'SLUICE_NOT_FOUND', where: { url: `s3://${bucket}/nothing-here` } })
    expect(missing.message).toContain('object')
    const noBucket = await failure(store.head('no-such-bucket-anywhere/key', o))
    expect(noBucket.code).toBe('SLUICE_NOT_FOUND')
    expect(noBucket.message).toContain('bucket does not exist')
    const writing = await failure(put(store, 'no-such-bucket-anywhere/key', Buffer.from('x')))
    expect(writing).toMatchObject({ code: 'SLUICE_NOT_FOUND' })
    expect((await failure(listed(store.list?.('no-such-bucket-anywhere/', o)))).code).toBe('SLUICE_NOT_FOUND')

    const wrong = [{ AWS_SECRET_ACCESS_KEY: 'wrong' }, { AWS_ACCESS_KEY_ID: 'UNKNOWN' }]
    for (const env of wrong) {
      const other = storeOf(address, env)
      expect((await failure(other.head(`${bucket}/there`, o))).code).toBe('SLUICE_CREDENTIALS')
      await other.close()
    }
    const unsigned = createS3Store({ retryForMs: 1000, env: address.env, signRequest: false, reporter })
    expect((await failure(unsigned.head(`${bucket}/there`, o))).code).toBe('SLUICE_ACCESS_DENIED')
    await unsigned.close()
  })

  it('lists more than one page in order', async () => {
    const keys = Array.from({ length: 1005 }, (_, i) => `many/${String(i).padStart(5, '0')} ü`)
    for (let i = 0; i < keys.length; i += 50) {
      await Promise.all(
        keys.slice(i, i + 50).map((key) => s3Do(address, { method: 'PUT', path: `/${bucket}/${key}`, body: 'x' })),
      )
    }
    const found = await listed(store.list?.(`${bucket}/many/`, o))
    expect(found.map((one) => one.key)).toEqual(keys.map((key) => `${bucket}/${key}`))
    expect(found[0]).toMatchObject({ size: 1, url: `s3://${bucket}/many/00000 ü`, replayable: true })
    const info = found[1004]
    if (info === undefined) throw new Error('the last object is missing')
    expect((await bytesOf(store.read(info, ALL, o))).toString()).toBe('x')
  })

  it('refuses a part whose bytes were damaged on the way', async () => {
    // What the store does with our checksum header, seen by a request of its own.
    const answer = await s3Request(address, {
      method: 'PUT',
      path: `/${bucket}/damaged`,
      headers: { 'x-amz-checksum-crc32': 'AAAAAA==' },
      body: 'not of this checksum',
    })
    expect(answer.status).toBe(400)
  })
})

async function failureOrNull(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error: unknown) => error,
  )
}
