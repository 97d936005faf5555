import { setTimeout as delay } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { HttpResponse } from '../../aws/http-pool.ts'
import { SluiceError, toSluiceError } from '../../core/errors.ts'
import type { Abortable, ByteRange, ObjectInfo } from '../../core/ports.ts'
import { backoffMs } from '../../core/retry.ts'
import { s3Url, splitKey } from './s3-address.ts'
import type { S3Client } from './s3-client.ts'
import { statusOf } from './s3-errors.ts'
import { crc32Base64 } from './checksum.ts'

/**
 * What the store knows of an object. A refused HEAD has no body to say why: the first byte is then asked for, and its error taken.
 *
 * @throws SLUICE_NOT_FOUND (bucket and object told apart), SLUICE_ACCESS_DENIED, SLUICE_CREDENTIALS, SLUICE_UNREACHABLE
 */
export async function headObject(client: S3Client, storeKey: string, o: Abortable): Promise<ObjectInfo> {
  const place = splitKey(storeKey)
  try {
    const response = await client.send({ method: 'HEAD', ...place, purpose: 'read', signal: o.signal })
    await response.body.discard()
    return infoOf(storeKey, response)
  } catch (error) {
    const status = statusOf(error)?.status ?? 0
    if (status < 400 || status >= 500) throw error
    const range = { range: 'bytes=0-0' }
    const response = await client.send({ method: 'GET', ...place, headers: range, purpose: 'read', signal: o.signal })
    response.body.destroy()
    throw error
  }
}

function infoOf(storeKey: string, response: HttpResponse): ObjectInfo {
  const { headers } = response
  const modifiedMs = Date.parse(headers['last-modified'] ?? '')
  const size = Number(headers['content-length'] ?? Number.NaN)
  return {
    key: storeKey,
    url: s3Url(splitKey(storeKey)),
    size: Number.isNaN(size) ? null : size,
    etag: headers.etag ?? null,
    modifiedMs: Number.isNaN(modifiedMs) ? null : modifiedMs,
    ranged: true,
    replayable: true,
    storageClass: headers['x-amz-storage-class'],
    contentType: headers['content-type'],
  }
}

/** One read in progress. */
interface ReadState {
  readonly client: S3Client
  readonly info: ObjectInfo
  readonly end: number
  readonly whole: boolean
  at: number
  /** CRC32 of the bytes so far, kept only where the store gave one to compare with. */
  crc: number
  wantedCrc: string | null
}

/**
 * Bytes of a range, pinned by If-Match and by the ETag that comes back. A cut is taken up again where it broke, as long as
 * some byte came within the time to retry. A whole object whose CRC32 the store has is checked against it.
 *
 * @throws SLUICE_SOURCE_CHANGED, SLUICE_SOURCE_SHORT, SLUICE_NETWORK
 */
export async function* readRange(
  client: S3Client,
  request: { readonly info: ObjectInfo; readonly range: ByteRange },
  o: Abortable,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { info, range } = request
  const size = info.size ?? Number.POSITIVE_INFINITY
  const end = Math.min(range.end, size)
  const state: ReadState = {
    client,
    info,
    end,
    at: range.start,
    whole: range.start === 0 && end === size,
    crc: 0,
    wantedCrc: null,
  }
  let lastProgressMs = performance.now()
  for (let attempt = 0; state.at < end; attempt += 1) {
    const before = state.at
    try {
      yield* readOnce(state, o)
    } catch (thrown) {
      o.signal.throwIfAborted()
      const error = toSluiceError(thrown)
      if (state.at > before) {
        attempt = 0
        lastProgressMs = performance.now()
      }
      const delayMs = Math.max(backoffMs(attempt, error.code === 'SLUICE_THROTTLED'), error.retryAfterMs ?? 0)
      const leftMs = lastProgressMs + client.retryForMs - performance.now()
      if (!error.retryable || delayMs > leftMs) throw error.at({ url: info.url, byte: state.at })
      client.reporter.retried({ throttled: error.code === 'SLUICE_THROTTLED' })
      await delay(delayMs, undefined, { signal: o.signal }).catch(() => o.signal.throwIfAborted())
    }
  }
  if (state.wantedCrc !== null && crc32Base64(state.crc) !== state.wantedCrc) {
    throw new SluiceError('SLUICE_NETWORK', "bytes were damaged on the way down: the CRC32 differs from the store's", {
      where: { url: info.url },
      retryable: false,
    })
  }
}

async function* readOnce(state: ReadState, o: Abortable): AsyncGenerator<Uint8Array, void, undefined> {
  const response = await open(state, o)
  for await (const chunk of response.body) {
    const left = state.end - state.at
    if (chunk.byteLength > left) throw tooLong(state)
    if (state.wantedCrc !== null) state.crc = crc32(chunk, state.crc)
    state.at += chunk.byteLength
    yield chunk
  }
  if (state.at < state.end) {
    throw new SluiceError('SLUICE_SOURCE_SHORT', `the object ended at byte ${state.at}, ${state.end} were announced`, {
      where: { url: state.info.url, byte: state.at },
    })
  }
}

async function open(state: ReadState, o: Abortable): Promise<HttpResponse> {
  const { client, info, at, end, whole } = state
  const fresh = whole && at === 0
  const headers: Record<string, string> = fresh
    ? { 'x-amz-checksum-mode': 'ENABLED' }
    : { range: `bytes=${at}-${end - 1}` }
  if (info.etag !== null) headers['if-match'] = info.etag
  const response = await client
    .send({ method: 'GET', ...splitKey(info.key), headers, purpose: 'read', bulk: true, signal: o.signal })
    .catch((error: unknown) => {
      const status = statusOf(error)
      // It was there when it was pinned.
      if (status?.status === 404 && status.s3Code !== 'NoSuchBucket')
        throw changed(info, 'was deleted while it was read')
      throw error
    })
  try {
    check(state, response, fresh)
  } catch (error) {
    response.body.destroy()
    throw error
  }
  return response
}

/** Stores that ignore If-Match or Range are found out here. */
function check(state: ReadState, response: HttpResponse, fresh: boolean): void {
  const { info, at } = state
  const { headers, status } = response
  if (info.etag !== null && headers.etag !== undefined && headers.etag !== info.etag) {
    throw changed(info, 'changed while it was read')
  }
  const range = status === 206 ? headers['content-range'] : undefined
  const total = Number(range === undefined ? headers['content-length'] : range.split('/')[1])
  if (info.size !== null && !Number.isNaN(total) && total !== info.size) {
    throw changed(info, `changed while it was read: ${total} bytes now, ${info.size} before`)
  }
  if (!fresh && !(range ?? '').startsWith(`bytes ${at}-`)) {
    throw new SluiceError('SLUICE_PROTOCOL', 'the store answered with another range than was asked for', {
      where: { url: info.url, byte: at },
    })
  }
  if (fresh) state.wantedCrc = wholeCrc32(headers)
}

/** Null where the store gave none, or one that is made of parts' checksums (`…-3`). */
function wholeCrc32(headers: HttpResponse['headers']): string | null {
  const given = headers['x-amz-checksum-crc32'] ?? null
  return given === null || given.includes('-') || headers['x-amz-checksum-type'] === 'COMPOSITE' ? null : given
}

function changed(info: ObjectInfo, how: string): SluiceError {
  return new SluiceError('SLUICE_SOURCE_CHANGED', `${info.url} ${how}`, { where: { url: info.url } })
}

function tooLong(state: ReadState): SluiceError {
  return new SluiceError('SLUICE_PROTOCOL', 'the store sent more bytes than were asked for', {
    where: { url: state.info.url },
  })
}
