import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import type { SluiceError } from '../../../../src/core/errors.ts'
import type { Json } from '../../../../src/core/job.ts'
import type { ObjectInfo, WritableStore, WriteOptions, WrittenPart } from '../../../../src/core/ports.ts'
import { createS3Store, type S3StoreOptions } from '../../../../src/stores/s3/s3-store.ts'

/** What real stores can't be made to do: a server that answers as each test says, and keeps what it was asked. */
interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}
type Answer = (asked: Asked, response: ServerResponse, count: number) => void

const o = { signal: new AbortController().signal }
const env = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' }
const opened: { server: Server; store: WritableStore }[] = []

afterEach(async () => {
  for (const { server, store } of opened.splice(0)) {
    await store.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

async function facing(answer: Answer, over: Partial<S3StoreOptions> = {}) {
  const asked: Asked[] = []
  const retried: boolean[] = []
  const warnings: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
      }
      asked.push(one)
      answer(one, response, asked.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const reporter = {
    warn: (text: string) => void warnings.push(text),
    retried: (r: { throttled: boolean }) => void retried.push(r.throttled),
  }
  const store = createS3Store({ endpoint, env, reporter, retryForMs: 10_000, ...over })
  opened.push({ server, store })
  return { store, asked, retried, warnings, server }
}

const xmlError = (code: string): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>m</Message></Error>`
const info = (bytes: Buffer, etag = '"e1"'): ObjectInfo => ({
  key: 'b12/k',
  url: 's3://b12/k',
  size: bytes.byteLength,
  etag,
  modifiedMs: null,
  ranged: true,
  replayable: true,
})
const all = { start: 0, end: Number.POSITIVE_INFINITY }

async function bytesOf(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const got: Uint8Array[] = []
  for await (const chunk of chunks) got.push(chunk)
  return Buffer.concat(got)
}

async function failure(promise: Promise<unknown>): Promise<SluiceError> {
  const error = await promise.then(
    () => null,
    (thrown: SluiceError) => thrown,
  )
  if (error === null) throw new Error('nothing failed')
  return error
}

function writing(over: Partial<WriteOptions> = {}): WriteOptions & { records: Json[] } {
  const records: Json[] = []
  return {
    ifExists: 'fail',
    size: null,
    record: (intent) => Promise.resolve(void records.push(intent)),
    ...over,
    records,
  }
}

/** Range of a request on a body, as a store answers it. */
function serve(
  bytes: Buffer,
  asked: Asked,
  response: ServerResponse,
  over: { cutAfter?: number; headers?: Record<string, string> } = {},
): void {
  const range = /^bytes=(\d+)-(\d+)$/.exec(String(asked.headers.range))
  const start = Number(range?.[1] ?? 0)
  const end = Number(range?.[2] ?? bytes.byteLength - 1) + 1
  response.writeHead(range === null ? 200 : 206, {
    etag: '"e1"',
    'content-length': end - start,
    ...(range === null ? {} : { 'content-range': `bytes ${start}-${end - 1}/${bytes.byteLength}` }),
    ...over.headers,
  })
  if (over.cutAfter === undefined) return void response.end(bytes.subarray(start, end))
  response.write(bytes.subarray(start, start + over.cutAfter), () => setTimeout(() => response.destroy(), 5))
}

describe('reading from a store that misbehaves', () => {
  const body = Buffer.alloc(500_000, 'sluice and weir ')

  it('takes a cut up again at its byte, pinned', async () => {
    const { store, asked, retried } = await facing((one, response, count) =>
      serve(body, one, response, count < 4 ? { cutAfter: 100_000 } : {}),
    )
    expect((await bytesOf(store.read(info(body), all, o))).equals(body)).toBe(true)
    expect(asked.map(({ headers }) => headers['if-match'])).toEqual(['"e1"', '"e1"', '"e1"', '"e1"'])
    expect(asked.map(({ headers }) => headers.range)).toEqual([
      undefined,
      'bytes=100000-499999',
      'bytes=200000-499999',
      'bytes=300000-499999',
    ])
    expect(retried).toEqual([false, false, false])
  })

  it('gives up where no byte comes any more', async () => {
    const { store } = await facing((one, response) => serve(body, one, response, { cutAfter: 0 }), { retryForMs: 100 })
    expect(await failure(bytesOf(store.read(info(body), all, o)))).toMatchObject({
      code: 'SLUICE_NETWORK',
      where: { url: 's3://b12/k' },
    })
  })

  it('waits as Retry-After says, and calls it a throttle', async () => {
    const { store, retried } = await facing((one, response, count) =>
      count === 1
        ? void response.writeHead(503, { 'retry-after': '0' }).end(xmlError('SlowDown'))
        : serve(body, one, response),
    )
    expect((await bytesOf(store.read(info(body), all, o))).byteLength).toBe(body.byteLength)
    expect(retried).toEqual([true])
  })

  it('does not wait longer than it may', async () => {
    const { store } = await facing(
      (_, response) => void response.writeHead(503, { 'retry-after': '60' }).end(xmlError('SlowDown')),
    )
    expect(await failure(bytesOf(store.read(info(body), all, o)))).toMatchObject({
      code: 'SLUICE_THROTTLED',
      retryAfterMs: 60_000,
    })
  })

  it.each<[string, Answer, string]>([
    [
      'another ETag than was asked for',
      (one, response) => serve(body, one, response, { headers: { etag: '"e2"' } }),
      'SLUICE_SOURCE_CHANGED',
    ],
    ['another size', (one, response) => serve(Buffer.alloc(10), one, response), 'SLUICE_SOURCE_CHANGED'],
    ['412', (_, response) => void response.writeHead(412).end(xmlError('PreconditionFailed')), 'SLUICE_SOURCE_CHANGED'],
    ['416', (_, response) => void response.writeHead(416).end(xmlError('InvalidRange')), 'SLUICE_SOURCE_CHANGED'],
    ['404', (_, response) => void response.writeHead(404).end(xmlError('NoSuchKey')), 'SLUICE_SOURCE_CHANGED'],
  ])('finds out: %s', async (_, answer, code) => {
    const { store } = await facing(answer)
    const error = await failure(bytesOf(store.read(info(body), all, o)))
    expect(error).toMatchObject({ code, where: { url: 's3://b12/k' } })
  })

  it('refuses a store that answers a range with the whole', async () => {
    const { store } = await facing((_, response) => void response.writeHead(200, { etag: '"e1"' }).end(body))
    expect((await failure(bytesOf(store.read(info(body), { start: 5, end: 9 }, o)))).code).toBe('SLUICE_PROTOCOL')
  })

  it('compares the CRC32 of a whole object', async () => {
    const crc = Buffer.alloc(4)
    crc.writeUInt32BE(crc32(body))
    const { store } = await facing((one, response, count) =>
      serve(body, one, response, {
        headers: { 'x-amz-checksum-crc32': count === 1 ? crc.toString('base64') : 'AAAAAA==' },
      }),
    )
    expect((await bytesOf(store.read(info(body), all, o))).byteLength).toBe(body.byteLength)
    expect((await failure(bytesOf(store.read(info(body), all, o)))).message).toContain('CRC32')
  })

  it('follows a region once and keeps to it', async () => {
    const { store, asked } = await facing((one, response) =>
      String(one.headers.authorization).includes('/eu-west-1/')
        ? serve(body, one, response)
        : void response
            .writeHead(400, { 'x-amz-bucket-region': 'eu-west-1' })
            .end(xmlError('AuthorizationHeaderMalformed')),
    )
    await bytesOf(store.read(info(body), all, o))
    await bytesOf(store.read(info(body), all, o))
    expect(asked).toHaveLength(3)
  })

  it('does not send its signature to a stranger', async () => {
    const { store, asked } = await facing(
      (_, response) => void response.writeHead(307, { location: 'http://localhost:1/b12/k' }).end(),
    )
    expect((await failure(store.head('b12/k', o))).code).toBe('SLUICE_USAGE')
    expect(asked.length).toBeLessThanOrEqual(2)
  })

  it('waits for a store that was there before, longer than for one that never answered', async () => {
    const { store, server, retried } = await facing(
      (_, response) => void response.writeHead(200, { etag: '"e1"', 'content-length': 3 }).end(),
      { retryForMs: 60_000 },
    )
    await store.head('b12/k', o)
    const { port } = server.address() as AddressInfo
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    setTimeout(() => server.listen(port, '127.0.0.1'), 3_300)
    expect(await store.head('b12/k', o)).toMatchObject({ size: 3 })
    expect(retried.length).toBeGreaterThan(2)
  })

  it('reads 40 objects at once under one signal without a warning of a leak', async () => {
    const { store } = await facing((one, response) => serve(body, one, response))
    const leaks: Error[] = []
    const onWarning = (warning: Error): void => void leaks.push(warning)
    process.on('warning', onWarning)
    await Promise.all(Array.from({ length: 40 }, () => bytesOf(store.read(info(body), all, o))))
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', onWarning)
    expect(leaks).toEqual([])
  })

  it('says soon that nothing listens', async () => {
    const silent = createS3Store({
      endpoint: 'http://127.0.0.1:1',
      env,
      reporter: { warn: () => undefined, retried: () => undefined },
      retryForMs: 300_000,
    })
    expect(await failure(silent.head('b12/k', o))).toMatchObject({
      code: 'SLUICE_UNREACHABLE',
      message: expect.stringContaining('127.0.0.1:1'),
      where: { url: 's3://b12/k' },
    })
    await silent.close()
  })
})

describe('writing to a store that misbehaves', () => {
  const part = Buffer.alloc(100, 'x')
  const md5 = (data: Buffer): string => createHash('md5').update(data).digest('hex')

  /** Answers of a store with one upload; `complete` is up to the test. */
  function multipart(complete: Answer, visible: () => { etag: string; size: number } | null): Answer {
    return (one, response, count) => {
      if (one.method === 'HEAD') {
        const there = visible()
        return void (there === null
          ? response.writeHead(404).end()
          : response.writeHead(200, { etag: there.etag, 'content-length': there.size }).end())
      }
      if (one.method === 'GET' && one.url.includes('uploads')) return void response.end('<ListMultipartUploadsResult/>')
      if (one.method === 'GET') return void response.writeHead(404).end(xmlError('NoSuchKey'))
      if (one.method === 'POST' && one.url.endsWith('?uploads=')) {
        return void response.end(
          '<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>',
        )
      }
      if (one.method === 'PUT') return void response.writeHead(200, { etag: `"${md5(one.body)}"` }).end()
      if (one.method === 'DELETE') return void response.writeHead(204).end()
      complete(one, response, count)
    }
  }
  const expected = {
    etag: `"${createHash('md5')
      .update(Buffer.from(md5(part), 'hex'))
      .digest('hex')}-1"`,
    size: part.byteLength,
  }

  async function begun(store: WritableStore, options = writing()) {
    const writer = await store.openWriter('b12/k', options, o)
    const written: WrittenPart = await writer.writePart({ number: 1, offset: 0, bytes: [part] }, o)
    return { writer, parts: [written] }
  }

  it('sees the error in the body of a 200, and completes again', async () => {
    let tries = 0
    const { store } = await facing(
      multipart(
        (_, response) => {
          tries += 1
          response.end(
            tries < 3
              ? `   \n${xmlError('InternalError')}`
              : `<CompleteMultipartUploadResult><ETag>${expected.etag}</ETag></CompleteMultipartUploadResult>`,
          )
        },
        () => (tries < 3 ? null : expected),
      ),
    )
    const { writer, parts } = await begun(store)
    expect(await writer.complete(parts, o)).toMatchObject(expected)
    expect(tries).toBe(3)
  })

  it('looks for the object where the answer of Complete was lost, and does not send it again', async () => {
    let tries = 0
    const { store } = await facing(
      multipart(
        (_, response) => {
          tries += 1
          response.destroy()
        },
        () => (tries === 0 ? null : expected),
      ),
    )
    const { writer, parts } = await begun(store)
    expect(await writer.complete(parts, o)).toMatchObject(expected)
    expect(tries).toBe(1)
  })

  it("does not take another's object for its own", async () => {
    let tries = 0
    const { store } = await facing(
      multipart(
        (_, response) => {
          tries += 1
          if (tries === 1) response.destroy()
          else response.writeHead(412).end(xmlError('PreconditionFailed'))
        },
        () => (tries === 0 ? null : { etag: '"other-1"', size: part.byteLength }),
      ),
    )
    const { writer, parts } = await begun(store)
    expect((await failure(writer.complete(parts, o))).code).toBe('SLUICE_EXISTS')
  })

  it('goes without If-None-Match where the store does not know it', async () => {
    const conditions: unknown[] = []
    let isDone = false
    const { store } = await facing(
      multipart(
        (one, response) => {
          conditions.push(one.headers['if-none-match'])
          if (one.headers['if-none-match'] !== undefined)
            return void response.writeHead(501).end(xmlError('NotImplemented'))
          isDone = true
          response.end(`<CompleteMultipartUploadResult><ETag>${expected.etag}</ETag></CompleteMultipartUploadResult>`)
        },
        () => (isDone ? expected : null),
      ),
    )
    const { writer, parts } = await begun(store)
    expect(await writer.complete(parts, o)).toMatchObject(expected)
    expect(conditions).toEqual(['*', undefined])
  })

  it('records the intent before Create is sent, and the upload id before the first part', async () => {
    const { store, asked } = await facing(
      multipart(
        (_, response) => void response.end(),
        () => null,
      ),
    )
    const seen: [Json, number][] = []
    const options = writing({
      record: (intent) =>
        Promise.resolve(void seen.push([intent, asked.filter(({ method }) => method === 'POST').length])),
    })
    const { writer } = await begun(store, options)
    expect(seen).toEqual([
      [expect.objectContaining({ kind: 'multipart', key: 'b12/k', known: [], uploadId: null }), 0],
      [expect.objectContaining({ uploadId: 'u' }), 1],
    ])
    expect(writer.token()).toEqual(seen[1]?.[0])
  })

  it('sends the CRC32 of a part in a header, unsigned and in one piece', async () => {
    const { store, asked } = await facing(
      multipart(
        (_, response) => void response.end(),
        () => null,
      ),
    )
    await begun(store)
    const put = asked.find(({ method }) => method === 'PUT')
    const crc = Buffer.alloc(4)
    crc.writeUInt32BE(crc32(part))
    expect(put?.headers).toMatchObject({
      'x-amz-checksum-crc32': crc.toString('base64'),
      'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
      'content-length': '100',
    })
    expect(put?.headers).not.toHaveProperty('content-encoding')
    expect(put?.headers).not.toHaveProperty('transfer-encoding')
  })

  it('never throws on abort, and tells what stays behind', async () => {
    const { store, warnings } = await facing((one, response, count) =>
      one.method === 'DELETE'
        ? void response.writeHead(403).end(xmlError('AccessDenied'))
        : multipart(
            () => undefined,
            () => null,
          )(one, response, count),
    )
    const { writer } = await begun(store)
    await writer.abort()
    expect(warnings).toEqual([expect.stringContaining('s3://b12/k')])
  })

  it('leaves a store without Abort alone', async () => {
    const { store, warnings } = await facing((one, response, count) =>
      one.method === 'DELETE'
        ? void response.writeHead(501).end(xmlError('NotImplemented'))
        : multipart(
            () => undefined,
            () => null,
          )(one, response, count),
    )
    const { writer } = await begun(store)
    await writer.abort()
    expect(warnings).toEqual([])
  })

  it('removes parts that land after the abort', async () => {
    let aborts = 0
    const { store } = await facing((one, response, count) => {
      if (one.method === 'DELETE') aborts += 1
      if (one.method === 'GET' && one.url.includes('uploadId')) {
        return void (aborts < 3
          ? response.end('<ListPartsResult/>')
          : response.writeHead(404).end(xmlError('NoSuchUpload')))
      }
      multipart(
        () => undefined,
        () => null,
      )(one, response, count)
    })
    const { writer } = await begun(store)
    await writer.abort()
    expect(aborts).toBe(3)
  })

  it('takes the upload of a Create whose answer was lost for its own', async () => {
    let creates = 0
    const { store } = await facing((one, response, count) => {
      if (one.method === 'POST' && one.url.endsWith('?uploads=')) {
        creates += 1
        return void response.destroy()
      }
      if (one.method === 'GET' && one.url.includes('uploads=')) {
        const upload =
          creates === 0
            ? ''
            : '<Upload><Key>b12</Key><UploadId>x</UploadId></Upload><Upload><Key>k</Key><UploadId>u9</UploadId></Upload>'
        return void response.end(`<ListMultipartUploadsResult>${upload}</ListMultipartUploadsResult>`)
      }
      multipart(
        () => undefined,
        () => null,
      )(one, response, count)
    })
    const { writer } = await begun(store)
    expect(writer.token()).toMatchObject({ uploadId: 'u9' })
    expect(creates).toBe(1)
  })

  it('does not tell which of two new uploads is its own, and discards neither', async () => {
    const { store, asked, warnings } = await facing(
      (_, response) =>
        void response.end(
          '<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>u1</UploadId></Upload><Upload><Key>k</Key><UploadId>u2</UploadId></Upload></ListMultipartUploadsResult>',
        ),
    )
    await store.discard(
      {
        store: 's3',
        kind: 'multipart',
        key: 'b12/k',
        known: [],
        sinceMs: Date.now(),
        uploadId: null,
        completing: null,
      },
      o,
    )
    expect(asked.map(({ method }) => method)).toEqual(['GET'])
    expect(warnings).toHaveLength(1)
  })

  it('a PUT whose answer was lost is found by its ETag', async () => {
    let puts = 0
    const { store } = await facing((one, response) => {
      if (one.method === 'PUT') {
        puts += 1
        return void response.destroy()
      }
      if (one.method !== 'HEAD') return void response.writeHead(404).end(xmlError('NoSuchKey'))
      return void (puts === 0
        ? response.writeHead(404).end()
        : response.writeHead(200, { etag: `"${md5(part)}"`, 'content-length': part.byteLength }).end())
    })
    const { writer, parts } = await begun(store, writing({ size: part.byteLength }))
    expect(await writer.complete(parts, o)).toMatchObject({ etag: `"${md5(part)}"`, size: 100 })
    expect(puts).toBe(1)
  })

  it('by size and time where parts have ETags of another kind', async () => {
    let tries = 0
    for (const [age, code] of [
      [0, null],
      [-3_600_000, 'SLUICE_NETWORK'],
    ] as const) {
      tries = 0
      const { store } = await facing(
        (one, response, count) => {
          if (one.method === 'PUT') return void response.writeHead(200, { etag: '"kms"' }).end()
          if (one.method === 'HEAD' && tries > 0) {
            const modified = new Date(Date.now() + age).toUTCString()
            return void response
              .writeHead(200, { etag: '"kms-1"', 'content-length': 100, 'last-modified': modified })
              .end()
          }
          const lose: Answer = (_, lost) => {
            tries += 1
            lost.destroy()
          }
          multipart(lose, () => null)(one, response, count)
        },
        { retryForMs: 200 },
      )
      const { writer, parts } = await begun(store)
      const done = writer.complete(parts, o)
      if (code === null) expect(await done).toMatchObject({ etag: '"kms-1"', size: 100 })
      else expect((await failure(done)).code).toBe(code)
    }
  })

  it('has nothing to abort where Create was refused, and may try again', async () => {
    let isRefused = true
    const { store, warnings, asked } = await facing((one, response, count) => {
      if (isRefused && one.method === 'POST') return void response.writeHead(403).end(xmlError('AccessDenied'))
      multipart(
        () => undefined,
        () => null,
      )(one, response, count)
    })
    const writer = await store.openWriter('b12/k', writing({ size: 200 }), o)
    const write = (): Promise<WrittenPart> => writer.writePart({ number: 1, offset: 0, bytes: [part] }, o)
    expect((await failure(write())).code).toBe('SLUICE_ACCESS_DENIED')
    isRefused = false
    expect(await write()).toMatchObject({ number: 1, bytes: 100 })
    expect(writer.token()).toMatchObject({ uploadId: 'u' })
    isRefused = true
    const other = await store.openWriter('b12/k', writing({ size: 200 }), o)
    await failure(other.writePart({ number: 1, offset: 0, bytes: [part] }, o))
    await other.abort()
    expect(warnings).toEqual([])
    expect(asked.filter(({ method }) => method === 'DELETE')).toEqual([])
  })

  it('refuses more than 10,000 parts and a sum that is not the size announced', async () => {
    const { store } = await facing(
      multipart(
        (_, response) => void response.end(),
        () => null,
      ),
    )
    const { writer, parts } = await begun(store, writing({ size: 9_000_000 }))
    expect((await failure(writer.writePart({ number: 10_001, offset: 0, bytes: [part] }, o))).hint).toContain(
      '--part-size',
    )
    expect((await failure(writer.complete(parts, o))).code).toBe('SLUICE_SOURCE_SHORT')
  })
})
