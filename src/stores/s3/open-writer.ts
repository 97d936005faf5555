import { SluiceError, toSluiceError } from '../../core/errors.ts'
import type { Json } from '../../core/job.ts'
import type { Abortable, ObjectInfo, ObjectWriter, WriteOptions, WrittenPart } from '../../core/ports.ts'
import { abortUpload } from './abort-upload.ts'
import { findOurs } from './finish-object.ts'
import { createUpload, listParts, listUploads, newUploads, type ObjectPlace, type Upload } from './multipart.ts'
import { partBytes } from './part-size.ts'
import { s3Url, splitKey } from './s3-address.ts'
import { isUnsupported, type S3Client } from './s3-client.ts'
import { refuseExisting, S3Writer, type WriterStart } from './s3-writer.ts'
import type { ListedPart } from './s3-xml.ts'
import { tokenFromJson, tokenToJson, type UploadToken } from './upload-token.ts'

interface Opening {
  readonly client: S3Client
  readonly place: ObjectPlace
  readonly options: WriteOptions
}

/**
 * A writer for `bucket/key`, new or taken up again. The intent is recorded before CreateMultipartUpload is sent, with the
 * uploads that are there already, and again with the upload's id.
 *
 * @throws SLUICE_EXISTS where `ifExists` is fail and the object is there; SLUICE_NOT_FOUND for a missing bucket
 */
export async function openS3Writer(
  client: S3Client,
  request: { readonly key: string; readonly options: WriteOptions },
  o: Abortable,
): Promise<ObjectWriter> {
  const opening = { client, place: splitKey(request.key), options: request.options }
  const { options, place } = opening
  if (options.resume !== undefined) {
    const taken = await takeUp(opening, tokenFromJson(options.resume), o)
    if (taken !== null) return taken
  }
  if (options.ifExists === 'fail') await refuseExisting(client, place, o)
  const blank = blankToken(place)
  if (options.size !== null && options.size <= partBytes(options.size, null))
    return new S3Writer(startOf(opening, blank))
  const begun = await begin(opening, o)
  return new S3Writer({ ...startOf(opening, begun.token), upload: begun.upload })
}

function blankToken(place: ObjectPlace): UploadToken {
  const key = `${place.bucket}/${place.key}`
  return { store: 's3', kind: 'put', key, known: null, sinceMs: 0, uploadId: null, completing: null }
}

function startOf(opening: Opening, token: UploadToken): WriterStart {
  return {
    ...opening,
    token,
    upload: null,
    present: [],
    crcs: new Map(),
    finished: null,
    begin: (o) => begin(opening, o),
  }
}

/** Records, creates, records. What fails in between is cleaned up before the error goes on. */
async function begin(opening: Opening, o: Abortable): Promise<{ upload: Upload; token: UploadToken }> {
  const { client, place, options } = opening
  const before = await listUploads(client, place, o).catch((error: unknown) => {
    const { code } = toSluiceError(error)
    if (isUnsupported(error) || code === 'SLUICE_ACCESS_DENIED' || code === 'SLUICE_PROTOCOL') return null
    throw error
  })
  const known = before?.uploads.map(({ uploadId }) => uploadId) ?? null
  const sinceMs = before?.serverMs ?? Date.now()
  const intent: UploadToken = { ...blankToken(place), kind: 'multipart', known, sinceMs }
  await options.record(tokenToJson(intent))
  try {
    const upload = await createOrAdopt(opening, intent, o)
    const token = { ...intent, uploadId: upload.uploadId }
    await options.record(tokenToJson(token))
    return { upload, token }
  } catch (error) {
    await discardIntent(client, tokenToJson(intent), { signal: AbortSignal.timeout(5_000) }).catch(() => undefined)
    throw error
  }
}

/** A Create whose answer was lost may have made an upload: that one is then ours. */
function createOrAdopt(opening: Opening, intent: UploadToken, o: Abortable): Promise<Upload> {
  const { client, place, options } = opening
  return client.retrying(async () => {
    try {
      return await createUpload(client, { place, contentType: options.contentType }, o)
    } catch (thrown) {
      o.signal.throwIfAborted()
      const error = toSluiceError(thrown)
      const isLost = error.retryable && error.code !== 'SLUICE_THROTTLED' && error.code !== 'SLUICE_UNREACHABLE'
      const adopted = isLost ? await theNewUpload(client, intent, o).catch(() => null) : null
      if (adopted === null) throw error
      return adopted
    }
  }, o)
}

/** The upload that this intent made, if it can be told from others'. */
async function theNewUpload(client: S3Client, intent: UploadToken, o: Abortable): Promise<Upload | null> {
  if (intent.known === null) return null
  const since = { place: splitKey(intent.key), known: intent.known, serverMs: intent.sinceMs }
  const found = await newUploads(client, since, o)
  if (found.length > 1) {
    const url = s3Url(since.place)
    client.reporter.warn(
      `${found.length} unfinished uploads to ${url}, of which one may be ours: sluice uploads list ${url}`,
    )
  }
  return found.length === 1 ? (found[0] ?? null) : null
}

/** Null where nothing can be taken up and the object is begun anew. */
async function takeUp(opening: Opening, token: UploadToken, o: Abortable): Promise<ObjectWriter | null> {
  const { client, place, options } = opening
  if (token.key !== `${place.bucket}/${place.key}`) {
    throw new SluiceError('SLUICE_STATE', `the record is of ${token.key}, and not of ${s3Url(place)}`)
  }
  const upload = token.uploadId !== null ? { place, uploadId: token.uploadId } : await unrecorded(client, token, o)
  const parts = upload === null ? null : await partsOf(client, upload, o)
  if (upload === null || parts === null) {
    const finished = token.completing === null ? null : await findOurs({ client, place, expected: token.completing }, o)
    return finished === null ? null : finishedWriter(opening, token, finished)
  }
  const current = { ...token, uploadId: upload.uploadId }
  if (token.uploadId === null) await options.record(tokenToJson(current))
  const present = placeParts(parts)
  const crcs = new Map(parts.flatMap(({ number, crc32 }) => (crc32 === undefined ? [] : [[number, crc32] as const])))
  return new S3Writer({ ...startOf(opening, current), upload, present, crcs })
}

function unrecorded(client: S3Client, token: UploadToken, o: Abortable): Promise<Upload | null> {
  return token.kind === 'put' ? Promise.resolve(null) : theNewUpload(client, token, o)
}

/** An earlier run was killed between Complete and the word that it was done. */
function finishedWriter(opening: Opening, token: UploadToken, finished: ObjectInfo): ObjectWriter {
  return new S3Writer({ ...startOf(opening, token), present: token.completing?.parts ?? [], finished })
}

async function partsOf(client: S3Client, upload: Upload, o: Abortable): Promise<ListedPart[] | null> {
  try {
    return await listParts(client, upload, o)
  } catch (error) {
    if (isUnsupported(error) || toSluiceError(error).code === 'SLUICE_NOT_FOUND') return null
    throw error
  }
}

/**
 * Offsets of listed parts. All but the last are of one size, which is the largest seen as soon as two are there; a single part
 * other than the first could be either, so it is left out and written again.
 */
export function placeParts(parts: readonly ListedPart[]): WrittenPart[] {
  const [only] = parts
  if (parts.length === 1 && only?.number !== 1) return []
  const full = Math.max(...parts.map(({ bytes }) => bytes))
  return parts.map(({ number, bytes, etag }) => ({ number, offset: (number - 1) * full, bytes, etag }))
}

/** Aborts what a recorded intent may have left; an object that became visible stays. */
export async function discardIntent(client: S3Client, intent: Json, o: Abortable): Promise<void> {
  const token = tokenFromJson(intent)
  if (token.kind === 'put') return
  const place = splitKey(token.key)
  const upload = token.uploadId !== null ? { place, uploadId: token.uploadId } : await theNewUpload(client, token, o)
  if (upload !== null) await abortUpload(client, upload, o)
}
