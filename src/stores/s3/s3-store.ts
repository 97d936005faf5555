import { SluiceError } from '../../core/errors.ts'
import type { Abortable, ObjectInfo, WritableStore } from '../../core/ports.ts'
import { partBytes } from './part-size.ts'
import { s3Url, splitKey, splitPrefix } from './s3-address.ts'
import { createS3Client, type S3Client, type S3ClientOptions } from './s3-client.ts'
import { statusOf } from './s3-errors.ts'
import { headObject, readRange } from './s3-read.ts'
import { parseListPage } from './s3-xml.ts'

/** Where and how: see the flags of the same names. The endpoint also comes from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL. */
export type S3StoreOptions = S3ClientOptions

/**
 * S3 and what speaks like it. Keys are `bucket/key`, exactly as typed. No connection is opened before the first call.
 *
 * @throws SLUICE_USAGE for an endpoint that is no http or https URL
 */
export function createS3Store(options: S3StoreOptions): WritableStore {
  const client = createS3Client(options)
  return {
    head: (key, o) => headObject(client, key, o),
    read: (info, range, o) => readRange(client, { info, range }, o),
    list: (prefix, o) => listObjects(client, prefix, o),
    partBytes,
    checkPlace: (key, o) => checkBucket(client, key, o),
    openWriter: async (key, options, o) => (await writing()).openS3Writer(client, { key, options }, o),
    discard: async (intent, o) => (await writing()).discardIntent(client, intent, o),
    delete: (key, o) => deleteObject(client, key, o),
    close: () => client.close(),
  }
}

/** Who only reads does not load it: 5 modules. */
const writing = (): Promise<typeof import('./open-writer.ts')> => import('./open-writer.ts')

/** ListObjectsV2 in pages of 1,000, one page in memory. */
async function* listObjects(
  client: S3Client,
  storePrefix: string,
  o: Abortable,
): AsyncGenerator<ObjectInfo, void, undefined> {
  const { bucket, key: prefix } = splitPrefix(storePrefix)
  for (let token: string | null = null, first = true; first || token !== null; first = false) {
    const { text } = await client.sendForText({
      method: 'GET',
      bucket,
      query: [
        ['list-type', '2'],
        ['prefix', prefix],
        ['encoding-type', 'url'],
        ...(token === null ? [] : [['continuation-token', token] as const]),
      ],
      purpose: 'read',
      signal: o.signal,
    })
    const page = parseListPage(text)
    for (const { key, size, etag, modifiedMs, storageClass } of page.objects) {
      const url = s3Url({ bucket, key })
      yield { key: `${bucket}/${key}`, url, size, etag, modifiedMs, ranged: true, replayable: true, storageClass }
    }
    token = page.next
  }
}

/**
 * A list of one key, which has a body that says what is wrong (HeadBucket has none, and some stores answer an unknown access key with 404). Who may not list may
 * write all the same.
 */
async function checkBucket(client: S3Client, storeKey: string, o: Abortable): Promise<void> {
  const { bucket, key } = splitKey(storeKey)
  try {
    await client.sendForText({
      method: 'GET',
      bucket,
      query: [
        ['list-type', '2'],
        ['max-keys', '1'],
        ['prefix', key],
      ],
      purpose: 'read',
      signal: o.signal,
    })
  } catch (error) {
    const refusal = statusOf(error)
    const isOurs = error instanceof SluiceError && error.code.startsWith('SLUICE_CREDENTIALS')
    if (refusal === null || refusal.s3Code === 'NoSuchBucket' || isOurs) throw error
  }
}

/** An object that is not there is deleted. */
async function deleteObject(client: S3Client, storeKey: string, o: Abortable): Promise<void> {
  try {
    const response = await client.send({ method: 'DELETE', ...splitKey(storeKey), purpose: 'write', signal: o.signal })
    await response.body.discard()
  } catch (error) {
    const refusal = statusOf(error)
    if (refusal?.status !== 404 || refusal.s3Code === 'NoSuchBucket') throw error
  }
}
