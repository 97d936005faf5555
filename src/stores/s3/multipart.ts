import type { Abortable } from '../../core/ports.ts'
import type { S3Place } from './s3-address.ts'
import type { S3Client } from './s3-client.ts'
import { parseCreated, parsePartPage, parseUploadPage, type ListedPart, type ListedUpload } from './s3-xml.ts'

/** Bucket and key of an object. */
export type ObjectPlace = S3Place & { readonly key: string }

/** One multipart upload. */
export interface Upload {
  readonly place: ObjectPlace
  readonly uploadId: string
}

/**
 * CreateMultipartUpload, asking for a CRC32 of the whole object where the store knows such. Sent once: an answer that is lost
 * leaves an upload behind, which the caller has to look for before it tries again.
 */
export async function createUpload(
  client: S3Client,
  request: { readonly place: ObjectPlace; readonly contentType: string | undefined },
  o: Abortable,
): Promise<Upload> {
  const type = request.contentType === undefined ? {} : { 'content-type': request.contentType }
  const { text } = await client.sendForText({
    method: 'POST',
    ...request.place,
    query: [['uploads', '']],
    headers: { ...type, 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-checksum-type': 'FULL_OBJECT' },
    purpose: 'write',
    signal: o.signal,
    retryForMs: 0,
  })
  return { place: request.place, uploadId: parseCreated(text) }
}

/** Unfinished uploads for exactly this key, of all pages. */
export async function listUploads(
  client: S3Client,
  place: ObjectPlace,
  o: Abortable,
): Promise<{ uploads: readonly ListedUpload[]; serverMs: number }> {
  const found: ListedUpload[] = []
  let marker: readonly (readonly [string, string])[] = []
  for (;;) {
    const { text, response } = await client.sendForText({
      method: 'GET',
      bucket: place.bucket,
      query: [['uploads', ''], ['prefix', place.key], ['encoding-type', 'url'], ['max-uploads', '1000'], ...marker],
      purpose: 'read',
      signal: o.signal,
    })
    const page = parseUploadPage(text)
    found.push(...page.uploads.filter((upload) => upload.key === place.key))
    if (page.next === null) {
      const serverMs = Date.parse(response.headers.date ?? '')
      return { uploads: found, serverMs: Number.isNaN(serverMs) ? Date.now() : serverMs }
    }
    marker = [
      ['key-marker', page.next.keyMarker],
      ['upload-id-marker', page.next.uploadIdMarker],
    ]
  }
}

/** Parts that are stored, ascending, of all pages. @throws SLUICE_NOT_FOUND where the upload is gone */
export async function listParts(client: S3Client, upload: Upload, o: Abortable): Promise<ListedPart[]> {
  const found: ListedPart[] = []
  let marker: readonly (readonly [string, string])[] = []
  for (;;) {
    const { text } = await client.sendForText({
      method: 'GET',
      ...upload.place,
      query: [['uploadId', upload.uploadId], ['max-parts', '1000'], ...marker],
      purpose: 'read',
      signal: o.signal,
    })
    const page = parsePartPage(text)
    found.push(...page.parts)
    if (page.next === null) return found.sort((a, b) => a.number - b.number)
    marker = [['part-number-marker', page.next]]
  }
}

/**
 * Uploads for the key that are new since a list was taken, and begun within five minutes of it by the store's clock: what a
 * Create whose answer was lost may have left. More than one means that another process is at work on the same key.
 */
export async function newUploads(
  client: S3Client,
  since: { readonly place: ObjectPlace; readonly known: readonly string[]; readonly serverMs: number },
  o: Abortable,
): Promise<Upload[]> {
  const { uploads } = await listUploads(client, since.place, o)
  return uploads
    .filter(({ uploadId }) => !since.known.includes(uploadId))
    .filter(({ initiatedMs }) => initiatedMs === null || isNear(initiatedMs, since.serverMs))
    .map(({ uploadId }) => ({ place: since.place, uploadId }))
}

/** Stores give times in whole seconds; Create follows the list at once, and is retried for minutes at most. */
function isNear(initiatedMs: number, serverMs: number): boolean {
  return initiatedMs >= serverMs - 2_000 && initiatedMs <= serverMs + 5 * 60_000
}
