import { setTimeout as delay } from 'node:timers/promises'
import type { Abortable } from '../../core/ports.ts'
import { isUnsupported, type S3Client } from './s3-client.ts'
import { statusOf } from './s3-errors.ts'
import { listParts, type Upload } from './multipart.ts'

/** A part in flight while the upload is aborted may be stored afterwards (API reference of AbortMultipartUpload): so often it is looked for. */
const LATE_PART_ROUNDS = 5
const LATE_PART_PAUSE_MS = 200
/** How long one abort is retried. */
const ABORT_RETRY_MS = 5_000

/**
 * Aborts an upload and looks until it is gone, with what landed late. An upload that is gone already is fine; a store
 * without AbortMultipartUpload or ListParts is left as it is.
 *
 * @throws SluiceError where the store could not be reached or refuses
 */
export async function abortUpload(client: S3Client, upload: Upload, o: Abortable): Promise<void> {
  for (let round = 0; round < LATE_PART_ROUNDS; round += 1) {
    if (!(await abortOnce(client, upload, o))) return
    if (!(await isThere(client, upload, o))) return
    await delay(LATE_PART_PAUSE_MS * (round + 1), undefined, { signal: o.signal })
  }
  client.reporter.warn(
    `an upload to s3://${upload.place.bucket}/${upload.place.key} could not be removed: sluice uploads abort`,
  )
}

/** False where there is no more to be done. */
async function abortOnce(client: S3Client, upload: Upload, o: Abortable): Promise<boolean> {
  try {
    const response = await client.send({
      method: 'DELETE',
      ...upload.place,
      query: [['uploadId', upload.uploadId]],
      purpose: 'write',
      retryForMs: Math.min(ABORT_RETRY_MS, client.retryForMs),
      signal: o.signal,
    })
    await response.body.discard()
    return true
  } catch (error) {
    if (statusOf(error)?.status === 404 || isUnsupported(error)) return false
    throw error
  }
}

async function isThere(client: S3Client, upload: Upload, o: Abortable): Promise<boolean> {
  try {
    await listParts(client, upload, o)
    return true
  } catch (error) {
    // Gone, or not to be asked (no right to list parts, a store that does not know it): the abort itself was accepted.
    if (statusOf(error) !== null) return false
    throw error
  }
}
