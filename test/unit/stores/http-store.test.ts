import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SluiceError } from '../../../src/core/errors.ts'
import type { ByteRange, ObjectInfo, Store } from '../../../src/core/ports.ts'
import { createHttpStore } from '../../../src/stores/http-store.ts'
import { type HttpFile, type MisbehavingHttp, startMisbehavingHttp } from '../../support/misbehaving-http.ts'

const o = { signal: new AbortController().signal }
const ALL: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY }
const BYTES = Buffer.from(Array.from({ length: 100_000 }, (_, n) => (n * 7 + (n >> 8)) & 255))

let server: MisbehavingHttp
let store: Store
let retries: { throttled: boolean }[]
let warnings: string[]

beforeEach(async () => {
  server = await startMisbehavingHttp()
  retries = []
  warnings = []
  store = openStore(3000)
})

afterEach(async () => {
  await store.close()
  await server.stop()
})

function openStore(retryForMs: number, stallTimeoutMs = 30_000): Store {
  return createHttpStore({
    retryForMs,
    stallTimeoutMs,
    reporter: { warn: (message) => warnings.push(message), retried: (reason) => retries.push(reason) },
  })
}

function serve(file: Partial<HttpFile> = {}): string {
  return server.file('/a.csv', { bytes: BYTES, ...file })
}

async function readAll(info: ObjectInfo, range: ByteRange = ALL): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.read(info, range, o)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** What was read before it failed, and the error. */
async function readUntilError(
  info: ObjectInfo,
  range: ByteRange = ALL,
): Promise<{ bytes: Buffer; error: SluiceError }> {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of store.read(info, range, o)) chunks.push(chunk)
  } catch (error) {
    if (error instanceof SluiceError) return { bytes: Buffer.concat(chunks), error }
    throw error
  }
  throw new Error('it did not fail')
}

async function errorOf(promise: Promise<unknown>): Promise<SluiceError> {
  const error: unknown = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof SluiceError) return error
  throw new Error('no SluiceError came', { cause: error })
}

const ranges = (path = '/a.csv'): unknown[] => server.requests(path).map((request) => request.headers.range)

describe('http store: head', () => {
  it('needs no HEAD, and one request', async () => {
    const info = await store.head(serve({ headStatus: 403 }), o)
    expect(info).toMatchObject({
      size: BYTES.byteLength,
      ranged: true,
      replayable: true,
      modifiedMs: Date.parse('Wed, 21 Oct 2015 07:28:00 GMT'),
      contentType: 'text/csv',
    })
    expect(server.requests().map((request) => request.method)).toEqual(['GET'])
    expect((await readAll(info)).equals(BYTES)).toBe(true)
  })

  it.each([400, 405, 501])('asks for one stream where a range is refused by %d', async (rangeStatus) => {
    const info = await store.head(serve({ rangeStatus, headStatus: 405 }), o)
    expect(info).toMatchObject({ size: BYTES.byteLength, ranged: false, replayable: true })
    expect((await readAll(info)).equals(BYTES)).toBe(true)
    expect(ranges()).toEqual(['bytes=0-0', undefined, undefined])
    expect(retries).toEqual([])
  })

  it('finds the size of a server without ranges, which are then not used', async () => {
    const info = await store.head(serve({ ranges: 'ignore' }), o)
    expect(info).toMatchObject({ size: BYTES.byteLength, ranged: false, replayable: true })
    expect((await readAll(info)).equals(BYTES)).toBe(true)
    expect(ranges()).toEqual(['bytes=0-0', undefined])
  })

  it.each([undefined, 403, 405])(
    'asks by HEAD where ranges tell no size (HEAD refused with %s)',
    async (headStatus) => {
      const info = await store.head(
        serve({ ranges: 'unsized', ...(headStatus === undefined ? {} : { headStatus }) }),
        o,
      )
      expect(info.size).toBe(headStatus === undefined ? BYTES.byteLength : null)
      expect((await readAll(info)).equals(BYTES)).toBe(true)
      expect((await readAll(info, { start: 10, end: 20 })).equals(BYTES.subarray(10, 20))).toBe(true)
    },
  )

  it('knows an empty file, whose first byte cannot be had', async () => {
    const info = await store.head(serve({ bytes: Buffer.alloc(0) }), o)
    expect(info).toMatchObject({ size: 0, replayable: true })
    expect(await readAll(info)).toHaveLength(0)
  })

  it.each([
    [401, 'SLUICE_CREDENTIALS'],
    [403, 'SLUICE_ACCESS_DENIED'],
    [404, 'SLUICE_NOT_FOUND'],
    [410, 'SLUICE_NOT_FOUND'],
    [400, 'SLUICE_PROTOCOL'],
    [501, 'SLUICE_SERVER'],
  ])('translates status %i, without trying again', async (status, code) => {
    const url = serve({ failure: { status, times: 99 } })
    expect(await errorOf(store.head(url, o))).toMatchObject({ code, where: { url } })
    // Once with a Range; where that may be what is refused, once without.
    expect(ranges()).toEqual([400, 501].includes(status) ? ['bytes=0-0', undefined] : ['bytes=0-0'])
  })

  it.each([
    [503, true],
    [429, true],
    [500, false],
    [502, false],
  ])('tries again after status %i', async (status, throttled) => {
    const info = await store.head(serve({ failure: { status, times: 2, retryAfter: '0' } }), o)
    expect(info.size).toBe(BYTES.byteLength)
    expect(retries).toEqual([{ throttled }, { throttled }])
  })

  it('does not wait longer than it may for Retry-After', async () => {
    const error = await errorOf(store.head(serve({ failure: { status: 503, times: 9, retryAfter: '60' } }), o))
    expect(error).toMatchObject({ code: 'SLUICE_THROTTLED', retryAfterMs: 60_000 })
  })

  it('tells at once that nothing listens', async () => {
    await server.stop()
    const url = `${server.origin}/a.csv`
    expect(await errorOf(store.head(url, o))).toMatchObject({ code: 'SLUICE_UNREACHABLE' })
    expect(retries).toEqual([])
    server = await startMisbehavingHttp()
  })

  it.each(['ftp://127.0.0.1/a', 'no url'])('refuses %s', async (url) => {
    expect((await errorOf(store.head(url, o))).code).toBe('SLUICE_USAGE')
  })
})

describe('http store: credentials', () => {
  it('sends user and password, decoded, and shows the password nowhere', async () => {
    serve({ password: 'me:p@ss/w:ord' })
    const url = server.origin.replace('//', '//me:p%40ss%2Fw%3Aord@') + '/a.csv'
    const info = await store.head(url, o)
    expect(info.url).toContain('me:***@')
    expect((await readAll(info, { start: 5, end: 10 })).equals(BYTES.subarray(5, 10))).toBe(true)
    serve({ password: 'other:one' })
    const error = await errorOf(store.head(url, o))
    expect(error.code).toBe('SLUICE_CREDENTIALS')
    expect(JSON.stringify([error, error.message, error.stack])).not.toMatch(/p@ss|p%40ss|w:ord|w%3Aord/)
  })

  it('does not take them to another server', async () => {
    const other = await startMisbehavingHttp()
    try {
      server.redirect('/a.csv', other.file('/b.csv', { bytes: BYTES }))
      await store.head(server.origin.replace('//', '//me:secret@') + '/a.csv', o)
      expect(server.requests('/a.csv')[0]?.headers.authorization).toMatch(/^Basic /)
      expect(other.requests('/b.csv')[0]?.headers.authorization).toBeUndefined()
    } finally {
      await other.stop()
    }
  })

  it('strikes out the signature of a presigned URL', async () => {
    const url = `${server.origin}/missing?X-Amz-Signature=abcdef&x=1`
    const error = await errorOf(store.head(url, o))
    expect(error.where.url).toBe(`${server.origin}/missing?X-Amz-Signature=***&x=1`)
    expect(JSON.stringify([error, error.message, error.stack])).not.toContain('abcdef')
  })
})

describe('http store: redirects', () => {
  it('follows ten, and asks their goal for what comes later', async () => {
    for (let hop = 0; hop < 10; hop += 1) server.redirect(`/${hop}`, `/${hop + 1}`, [301, 302, 303, 307, 308][hop % 5])
    server.file('/10', { bytes: BYTES })
    const info = await store.head(`${server.origin}/0`, o)
    await readAll(info, { start: 0, end: 10 })
    await readAll(info, { start: 10, end: 20 })
    expect(server.requests('/0')).toHaveLength(1)
    expect(server.requests('/10')).toHaveLength(3)
  })

  it('does not follow eleven, nor a circle', async () => {
    for (let hop = 0; hop < 11; hop += 1) server.redirect(`/${hop}`, `/${hop + 1}`)
    server.file('/11', { bytes: BYTES })
    expect((await errorOf(store.head(`${server.origin}/0`, o))).code).toBe('SLUICE_PROTOCOL')
    const url = server.redirect('/circle', '/circle')
    expect(await errorOf(store.head(url, o))).toMatchObject({ code: 'SLUICE_PROTOCOL', where: { url } })
    expect(server.requests('/circle')).toHaveLength(11)
  })

  it.each([undefined, 'http://[', 'file:///etc/passwd'])('does not follow %s', async (location) => {
    expect((await errorOf(store.head(server.redirect('/a', location), o))).code).toBe('SLUICE_PROTOCOL')
  })

  it('goes back to the beginning where the goal has expired', async () => {
    server.file('/signed-1', { bytes: BYTES })
    const info = await store.head(server.redirect('/a', '/signed-1'), o)
    server.file('/signed-2', { bytes: BYTES })
    server.redirect('/a', '/signed-2')
    server.file('/signed-1', { bytes: BYTES, failure: { status: 403, times: 9 } })
    expect((await readAll(info, { start: 7, end: 9 })).equals(BYTES.subarray(7, 9))).toBe(true)
  })
})

describe('http store: cuts and stalls', () => {
  it('goes on at the byte where the connection was cut', async () => {
    const info = await store.head(serve({ cut: { afterBytes: 30_000, times: 2 } }), o)
    expect((await readAll(info)).equals(BYTES)).toBe(true)
    expect(ranges()).toEqual(['bytes=0-0', undefined, 'bytes=30000-99999', 'bytes=60000-99999'])
    expect(
      server
        .requests()
        .slice(2)
        .map((request) => request.headers['if-range']),
    ).toEqual([info.etag, info.etag])
    expect(retries).toHaveLength(2)
  })

  it('begins again and skips where the server has no ranges', async () => {
    const info = await store.head(serve({ ranges: 'ignore', cut: { afterBytes: 30_000, times: 0 } }), o)
    serve({ ranges: 'ignore', cut: { afterBytes: 30_000, times: 1 } })
    expect((await readAll(info)).equals(BYTES)).toBe(true)
    expect((await readAll(info, { start: 99_990, end: 99_999 })).equals(BYTES.subarray(99_990, 99_999))).toBe(true)
  })

  it('does not skip for ever where the server always breaks at the same byte', async () => {
    store = openStore(300)
    const info = await store.head(serve({ ranges: 'ignore' }), o)
    serve({ ranges: 'ignore', cut: { afterBytes: 30_000, times: 1e9 } })
    const { bytes, error } = await readUntilError(info)
    expect(bytes.equals(BYTES.subarray(0, 30_000))).toBe(true)
    expect(error).toMatchObject({ code: 'SLUICE_NETWORK', where: { byte: 30_000 } })
  })

  it('goes on while there is progress, however often it is cut', async () => {
    store = openStore(1000)
    const info = await store.head(serve({ cut: { afterBytes: 10_000, times: 1e9 } }), o)
    expect((await readAll(info)).equals(BYTES)).toBe(true)
  })

  it('takes a stall for a cut', async () => {
    store = openStore(3000, 300)
    const info = await store.head(serve({ stall: { afterBytes: 20_000, times: 1 } }), o)
    expect((await readAll(info)).equals(BYTES)).toBe(true)
    expect(ranges().at(-1)).toBe('bytes=20000-99999')
  })

  it('does not begin again without a pin: another state could follow', async () => {
    const info = await store.head(serve({ etag: null, lastModified: null }), o)
    expect(info).toMatchObject({ etag: null, ranged: false, replayable: false })
    serve({ etag: null, lastModified: null, cut: { afterBytes: 30_000, times: 1 } })
    const { bytes, error } = await readUntilError(info)
    expect(bytes).toHaveLength(30_000)
    expect(error).toMatchObject({ code: 'SLUICE_NOT_REPLAYABLE', where: { byte: 30_000 } })
    expect((await errorOf(readAll(info))).code).toBe('SLUICE_NOT_REPLAYABLE')
  })

  it('stops at once when it is told to, and closes the connection', async () => {
    const info = await store.head(serve({ stall: { afterBytes: 10, times: 1 } }), o)
    const controller = new AbortController()
    const reason = new Error('enough')
    const read = (async () => {
      for await (const chunk of store.read(info, ALL, { signal: controller.signal })) {
        expect(chunk.byteLength).toBe(10)
        setTimeout(() => controller.abort(reason), 20)
      }
    })()
    await expect(read).rejects.toBe(reason)
    expect(retries).toEqual([])
  })
})

describe('http store: pins', () => {
  it.each([
    ['', {}],
    [', If-Range ignored', { ignoresIfRange: true }],
    [', by date', { etag: null, lastModified: 'Thu, 22 Oct 2015 07:28:00 GMT' }],
    [
      ', by date, If-Range ignored',
      { etag: null, lastModified: 'Thu, 22 Oct 2015 07:28:00 GMT', ignoresIfRange: true },
    ],
  ] as const)('sees a change between two requests%s', async (_, changed) => {
    const info = await store.head(serve('etag' in changed ? { etag: null } : {}), o)
    serve({ bytes: Buffer.from(BYTES).reverse(), ...changed })
    for (const range of [ALL, { start: 10, end: 20 }]) {
      const { bytes, error } = await readUntilError(info, range)
      expect(bytes).toHaveLength(0)
      expect(error).toMatchObject({ code: 'SLUICE_SOURCE_CHANGED', where: { url: info.url } })
    }
    expect(retries).toEqual([])
  })

  it('sees a change in the middle, after a cut', async () => {
    const info = await store.head(serve({ cut: { afterBytes: 30_000, times: 1 } }), o)
    server.onRequest((_, earlier) => {
      if (earlier === 2) serve({ bytes: Buffer.from(BYTES).reverse() })
    })
    const { bytes, error } = await readUntilError(info)
    expect(bytes.equals(BYTES.subarray(0, 30_000))).toBe(true)
    expect(error).toMatchObject({ code: 'SLUICE_SOURCE_CHANGED', where: { byte: 30_000 } })
  })

  it('takes the date where there is no strong ETag', async () => {
    const info = await store.head(serve({ etag: 'W/"1"' }), o)
    expect(info.etag).toBe(`modified:Wed, 21 Oct 2015 07:28:00 GMT;size:${BYTES.byteLength}`)
    expect((await readAll(info, { start: 5, end: 50 })).equals(BYTES.subarray(5, 50))).toBe(true)
    expect(server.requests().at(-1)).toMatchObject({
      status: 206,
      headers: { 'if-range': 'Wed, 21 Oct 2015 07:28:00 GMT' },
    })
  })

  it('takes a weak ETag for none', async () => {
    expect(await store.head(serve({ etag: 'W/"1"', lastModified: null }), o)).toMatchObject({
      etag: null,
      replayable: false,
    })
  })

  it('skips to the range where the server sends all of the same state', async () => {
    const info = await store.head(serve(), o)
    serve({ ranges: 'ignore' })
    expect((await readAll(info, { start: 50_000, end: 60_000 })).equals(BYTES.subarray(50_000, 60_000))).toBe(true)
  })

  it('refuses a file that became shorter than the range', async () => {
    const info = await store.head(serve({ etag: '"same"' }), o)
    serve({ etag: '"same"', bytes: BYTES.subarray(0, 40_000) })
    expect((await errorOf(readAll(info, { start: 50_000, end: 60_000 }))).code).toBe('SLUICE_SOURCE_CHANGED')
    expect((await errorOf(readAll(info))).code).toBe('SLUICE_SOURCE_CHANGED')
  })

  it('refuses a content coding that cannot be told from its bytes, and tells of one that can', async () => {
    const error = await errorOf(store.head(serve({ contentEncoding: 'br' }), o))
    expect(error).toMatchObject({ code: 'SLUICE_COMPRESSION', hint: expect.stringContaining('curl --compressed') })
    expect(error.message).toContain('Content-Encoding: br')
    expect(warnings).toEqual([])
    await store.head(serve({ contentEncoding: 'gzip' }), o)
    expect(warnings).toEqual([expect.stringContaining('/a.csv comes compressed (Content-Encoding: gzip)')])
    await store.head(server.file('/a.csv.gz', { bytes: BYTES, contentEncoding: 'gzip' }), o)
    expect(warnings).toHaveLength(1)
  })

  it('asks for no content coding, and pins one that comes nevertheless', async () => {
    const info = await store.head(serve({ etag: '"x"', contentEncoding: 'gzip' }), o)
    expect(server.requests()[0]?.headers['accept-encoding']).toBe('identity')
    expect(info.etag).toBe('"x";encoding:gzip')
    expect((await readAll(info)).equals(BYTES)).toBe(true)
    expect((await readAll(info, { start: 5, end: 50 })).equals(BYTES.subarray(5, 50))).toBe(true)
    serve({ etag: '"x"' })
    for (const range of [ALL, { start: 5, end: 50 }]) {
      expect((await errorOf(readAll(info, range))).code).toBe('SLUICE_SOURCE_CHANGED')
    }
  })
})

describe('http store: wrong lengths', () => {
  it('finds that fewer bytes come than were announced', async () => {
    store = openStore(300)
    const info = await store.head(serve({ ranges: 'ignore', lengthError: 500 }), o)
    expect(info.size).toBe(BYTES.byteLength + 500)
    const { bytes, error } = await readUntilError(info)
    expect(bytes.equals(BYTES)).toBe(true)
    expect(error).toMatchObject({ code: 'SLUICE_NETWORK', where: { byte: BYTES.byteLength } })
  })

  it('finds a chunked answer that is too short', async () => {
    store = openStore(300)
    const info = await store.head(serve(), o)
    serve({ ranges: 'ignore', chunked: { surplus: -100 }, etag: info.etag })
    const { bytes, error } = await readUntilError(info)
    expect(bytes).toHaveLength(BYTES.byteLength - 100)
    expect(error.code).toBe('SLUICE_SOURCE_SHORT')
  })

  it('finds a chunked answer that is too long', async () => {
    const info = await store.head(serve(), o)
    serve({ chunked: { surplus: 100 }, etag: info.etag })
    expect((await errorOf(readAll(info))).code).toBe('SLUICE_PROTOCOL')
    expect((await errorOf(readAll(info, { start: 99_990, end: 100_000 }))).code).toBe('SLUICE_PROTOCOL')
  })

  it('reads an answer of unknown length to its end', async () => {
    const info = await store.head(serve({ ranges: 'ignore', chunked: { surplus: 0 } }), o)
    expect(info).toMatchObject({ size: null, ranged: false })
    expect((await readAll(info)).equals(BYTES)).toBe(true)
  })

  it('asks for the rest where the server sends less than a range, and says so', async () => {
    const info = await store.head(serve({ ranges: 'short' }), o)
    expect((await readAll(info, { start: 1000, end: 1100 })).equals(BYTES.subarray(1000, 1100))).toBe(true)
    expect(retries).toEqual([])
  })
})
