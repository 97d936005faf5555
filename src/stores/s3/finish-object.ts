import { nullIfMissing, toSluiceError, type SluiceError } from '../../core/errors.ts'
import type { Abortable, ObjectInfo, WriteOptions } from '../../core/ports.ts'
import type { ObjectPlace, Upload } from './multipart.ts'
import { s3Url } from './s3-address.ts'
import { isUnsupported, type S3Client } from './s3-client.ts'
import { headObject } from './s3-read.ts'
import { completeXml, parseCompleted } from './s3-xml.ts'
import type { Completing } from './upload-token.ts'

/** The request that makes an object visible. */
export interface FinishRequest {
  readonly client: S3Client
  readonly place: ObjectPlace
  readonly ifExists: 'fail' | 'overwrite'
  readonly expected: Completing
  /** An earlier run got this far: the object that is there may be its. */
  readonly wasCompleting: boolean
}

/** A store may join the parts for long before it says a byte (versitygw copies them: 1 GB/s or so). */
const COMPLETE_STALL_MS = 10 * 60_000
/** Stores give times in whole seconds. */
const CLOCK_STEP_MS = 2_000

/**
 * Sends the last request of an object once, and again only when the object is not there: an answer may be lost after the
 * store did its work. Where a store does not know If-None-Match, `refuseExisting` at the beginning has to do.
 *
 * @throws SLUICE_EXISTS where `ifExists` is fail and another's object is there
 */
export function finishOnce(
  request: FinishRequest,
  send: (isConditional: boolean) => Promise<ObjectInfo>,
  o: Abortable,
): Promise<ObjectInfo> {
  let isUncertain = request.wasCompleting
  let isConditional = request.ifExists === 'fail'
  return request.client.retrying(async () => {
    try {
      return await send(isConditional).catch((error: unknown) => {
        if (!isConditional || !isUnsupported(error)) throw error
        isConditional = false
        return send(false)
      })
    } catch (thrown) {
      o.signal.throwIfAborted()
      const error = toSluiceError(thrown)
      isUncertain ||= mayHaveWorked(error)
      if (isUncertain && (error.retryable || error.code === 'SLUICE_EXISTS' || error.code === 'SLUICE_NOT_FOUND')) {
        const found = await findOurs(request, o)
        if (found !== null) return found
      }
      throw error
    }
  }, o)
}

function mayHaveWorked(error: SluiceError): boolean {
  return error.retryable && error.code !== 'SLUICE_THROTTLED' && error.code !== 'SLUICE_UNREACHABLE'
}

/** The object, if it is the one that was to be made: by ETag; by size and time where no ETag could be foretold (SSE-KMS). */
export async function findOurs(
  request: Pick<FinishRequest, 'client' | 'place' | 'expected'>,
  o: Abortable,
): Promise<ObjectInfo | null> {
  const { client, place, expected } = request
  const info = await nullIfMissing(headObject(client, `${place.bucket}/${place.key}`, o))
  if (info === null || info.size !== expected.bytes) return null
  const isOurs =
    expected.etag === null ? (info.modifiedMs ?? 0) >= expected.sinceMs - CLOCK_STEP_MS : info.etag === expected.etag
  return isOurs ? info : null
}

export function putHeaders(options: WriteOptions, crc32: string): Record<string, string> {
  const type = options.contentType === undefined ? {} : { 'content-type': options.contentType }
  return { ...type, 'x-amz-checksum-crc32': crc32 }
}

/** PutObject, sent once. */
export async function sendPut(
  request: FinishRequest & {
    readonly body: Uint8Array
    readonly headers: Readonly<Record<string, string>>
    readonly isConditional: boolean
  },
  o: Abortable,
): Promise<ObjectInfo> {
  const { client, place, body, headers, isConditional } = request
  const response = await client.send({
    method: 'PUT',
    ...place,
    headers: isConditional ? { ...headers, 'if-none-match': '*' } : headers,
    body: [body],
    purpose: 'write',
    bulk: true,
    retryForMs: 0,
    signal: o.signal,
  })
  await response.body.discard()
  return infoOf(place, body.byteLength, response.headers.etag ?? null)
}

/** CompleteMultipartUpload, sent once; then HEAD, so that the size is the store's own word. */
export async function sendComplete(
  request: FinishRequest & {
    readonly upload: Upload
    readonly parts: readonly { number: number; etag: string; crc32: string | undefined }[]
    readonly isConditional: boolean
  },
  o: Abortable,
): Promise<ObjectInfo> {
  const { client, place, upload, parts, isConditional, expected } = request
  const { text } = await client.sendForText({
    method: 'POST',
    ...place,
    query: [['uploadId', upload.uploadId]],
    headers: { 'content-type': 'application/xml', ...(isConditional ? { 'if-none-match': '*' } : {}) },
    body: [Buffer.from(completeXml(parts))],
    purpose: 'write',
    retryForMs: 0,
    stallTimeoutMs: COMPLETE_STALL_MS,
    signal: o.signal,
  })
  const made = infoOf(place, expected.bytes, parseCompleted(text))
  return headObject(client, made.key, o).catch((error: unknown) => {
    if (toSluiceError(error).code === 'SLUICE_ACCESS_DENIED') return made
    throw error
  })
}

function infoOf(place: ObjectPlace, size: number, etag: string | null): ObjectInfo {
  const key = `${place.bucket}/${place.key}`
  return { key, url: s3Url(place), size, etag, modifiedMs: null, ranged: true, replayable: true }
}
