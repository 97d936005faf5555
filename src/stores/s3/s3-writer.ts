import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { SluiceError, toSluiceError } from '../../core/errors.ts'
import type { Json } from '../../core/job.ts'
import type { Abortable, ObjectInfo, ObjectWriter, WriteOptions, WrittenPart } from '../../core/ports.ts'
import { abortUpload } from './abort-upload.ts'
import { crc32Base64, crc32Of } from './checksum.ts'
import { finishOnce, putHeaders, sendComplete, sendPut } from './finish-object.ts'
import type { ObjectPlace, Upload } from './multipart.ts'
import { MAX_PARTS } from './part-size.ts'
import { s3Url } from './s3-address.ts'
import type { S3Client } from './s3-client.ts'
import { statusOf } from './s3-errors.ts'
import { headObject } from './s3-read.ts'
import { tokenToJson, type UploadToken } from './upload-token.ts'

/** How long `abort` may take: a signal ends sluice within 10 s. */
const ABORT_WITHIN_MS = 8_000

/** What a writer begins with. */
export interface WriterStart {
  readonly client: S3Client
  readonly place: ObjectPlace
  readonly options: WriteOptions
  readonly token: UploadToken
  /** Absent: decided by the first part, one PUT if it is the whole object. */
  readonly upload: Upload | null
  readonly present: readonly WrittenPart[]
  /** CRC32s of the parts that are there, in base64. */
  readonly crcs: ReadonlyMap<number, string>
  /** The object that an earlier run completed. */
  readonly finished: ObjectInfo | null
  /** Begins a multipart upload, recorded before and after. */
  readonly begin: (o: Abortable) => Promise<{ upload: Upload; token: UploadToken }>
}

/** One object on its way to S3: a single PUT where the first part is all of it, else a multipart upload. */
export class S3Writer implements ObjectWriter {
  readonly present: readonly WrittenPart[]
  readonly #start: WriterStart
  readonly #stop = new AbortController()
  readonly #inFlight = new Set<Promise<unknown>>()
  readonly #crcs: Map<number, string>
  #token: UploadToken
  #upload: Promise<Upload> | null
  /** A copy of the whole object, at most one part of 8 MiB, as it must not be visible before `complete`. */
  #whole: Buffer | null = null
  #finished: ObjectInfo | null

  constructor(start: WriterStart) {
    this.#start = start
    this.#token = start.token
    this.present = start.present
    this.#upload = start.upload === null ? null : Promise.resolve(start.upload)
    this.#crcs = new Map(start.crcs)
    this.#finished = start.finished
  }

  token(): Json {
    return tokenToJson(this.#token)
  }

  writePart(
    part: { number: number; offset: number; bytes: readonly Uint8Array[] },
    o: Abortable,
  ): Promise<WrittenPart> {
    const written = this.#writePart(part, o)
    const settled = written.then(
      () => undefined,
      () => undefined,
    )
    this.#inFlight.add(settled)
    void settled.then(() => this.#inFlight.delete(settled))
    return written
  }

  async #writePart(
    part: { number: number; offset: number; bytes: readonly Uint8Array[] },
    o: Abortable,
  ): Promise<WrittenPart> {
    const { client, place, options, upload } = this.#start
    if (part.number > MAX_PARTS) {
      throw new SluiceError('SLUICE_USAGE', `more than ${MAX_PARTS} parts, which is all that S3 takes`, {
        where: { url: s3Url(place) },
        hint: 'raise --part-size',
      })
    }
    const bytes = part.bytes.reduce((sum, chunk) => sum + chunk.byteLength, 0)
    if (upload === null && this.#upload === null && part.number === 1 && bytes === options.size) {
      this.#whole = Buffer.concat(part.bytes)
      return { number: 1, offset: 0, bytes, etag: null }
    }
    const linked = linkSignals(o.signal, this.#stop.signal)
    try {
      const { uploadId } = await this.#ensureUpload(linked)
      const checksum = crc32Base64(crc32Of(part.bytes))
      const response = await client.send({
        method: 'PUT',
        ...place,
        query: [
          ['partNumber', String(part.number)],
          ['uploadId', uploadId],
        ],
        headers: { 'x-amz-checksum-crc32': checksum },
        body: part.bytes,
        purpose: 'write',
        bulk: true,
        signal: linked.signal,
      })
      await response.body.discard()
      this.#crcs.set(part.number, checksum)
      return { number: part.number, offset: part.offset, bytes, etag: response.headers.etag ?? null }
    } finally {
      linked.unlink()
    }
  }

  #ensureUpload(o: Abortable): Promise<Upload> {
    this.#upload ??= this.#start.begin(o).then(
      ({ upload, token }) => {
        this.#token = token
        return upload
      },
      (error: unknown) => {
        // Nothing was begun: the next part may try again, and there is nothing to abort.
        this.#upload = null
        throw error
      },
    )
    return this.#upload
  }

  async complete(parts: readonly WrittenPart[], o: Abortable): Promise<ObjectInfo> {
    this.#finished ??= await this.#complete(parts, o)
    return this.#finished
  }

  async #complete(parts: readonly WrittenPart[], o: Abortable): Promise<ObjectInfo> {
    const { options, place } = this.#start
    const sorted = parts.toSorted((a, b) => a.number - b.number)
    const bytes = sorted.reduce((sum, part) => sum + part.bytes, 0)
    if (options.size !== null && bytes !== options.size) {
      throw new SluiceError('SLUICE_SOURCE_SHORT', `${bytes} bytes were written, ${options.size} announced`, {
        where: { url: s3Url(place) },
      })
    }
    if (this.#whole !== null) return this.#put(this.#whole, o)
    if (sorted.length === 0) {
      if (this.#upload !== null) await this.#abortUpload()
      return this.#put(Buffer.alloc(0), o)
    }
    return this.#completeUpload({ parts: sorted, bytes }, o)
  }

  async #put(body: Buffer, o: Abortable): Promise<ObjectInfo> {
    const { client, place, options } = this.#start
    const etag = `"${createHash('md5').update(body).digest('hex')}"`
    const part = { number: 1, offset: 0, bytes: body.byteLength, etag: null }
    const completing = {
      etag,
      sinceMs: this.#token.sinceMs,
      bytes: body.byteLength,
      parts: [part],
    }
    await this.#record({ ...this.#token, kind: 'put', uploadId: null, completing })
    const request = {
      client,
      place,
      ifExists: options.ifExists,
      expected: completing,
      wasCompleting: this.#start.token.completing !== null,
    }
    const headers = putHeaders(options, crc32Base64(crc32Of([body])))
    return finishOnce(request, (isConditional) => sendPut({ ...request, body, headers, isConditional }, o), o)
  }

  async #completeUpload(
    whole: { readonly parts: readonly WrittenPart[]; readonly bytes: number },
    o: Abortable,
  ): Promise<ObjectInfo> {
    const { client, place, options } = this.#start
    const upload = await this.#upload
    if (upload === null) throw new SluiceError('SLUICE_INTERNAL', 'complete with parts that were never written')
    const { sinceMs } = this.#token
    const completing = { etag: multipartEtag(whole.parts), sinceMs, bytes: whole.bytes, parts: whole.parts }
    await this.#record({ ...this.#token, completing })
    const request = {
      client,
      place,
      ifExists: options.ifExists,
      expected: completing,
      wasCompleting: this.#start.token.completing !== null,
    }
    const parts = whole.parts.map(({ number, etag }) => ({ number, etag: etag ?? '', crc32: this.#crcs.get(number) }))
    const info = await finishOnce(
      request,
      (isConditional) => sendComplete({ ...request, upload, parts, isConditional }, o),
      o,
    )
    if (info.size !== null && info.size !== whole.bytes) {
      throw new SluiceError('SLUICE_PROTOCOL', `the store made an object of ${info.size} bytes out of ${whole.bytes}`, {
        where: { url: info.url },
      })
    }
    return info
  }

  async #record(token: UploadToken): Promise<void> {
    await this.#start.options.record(tokenToJson(token))
    this.#token = token
  }

  async abort(): Promise<void> {
    this.#stop.abort(new SluiceError('SLUICE_INTERRUPTED', 'the upload is given up'))
    this.#whole = null
    await Promise.all(this.#inFlight)
    if (this.#finished === null) await this.#abortUpload()
  }

  /** Never throws: what stays behind is told, and `discard` finds it by the recorded intent. */
  async #abortUpload(): Promise<void> {
    const { client, place } = this.#start
    try {
      const upload = await this.#upload
      if (upload !== null) await abortUpload(client, upload, { signal: AbortSignal.timeout(ABORT_WITHIN_MS) })
    } catch (error) {
      const { message } = toSluiceError(error)
      client.reporter.warn(`an upload to ${s3Url(place)} was begun and could not be removed: ${message}`)
    }
  }
}

/** Refuses where the object is there, for stores that do not know If-None-Match; without the right to look, the condition has to do. */
export async function refuseExisting(client: S3Client, place: ObjectPlace, o: Abortable): Promise<void> {
  try {
    await headObject(client, `${place.bucket}/${place.key}`, o)
  } catch (error) {
    const { code } = toSluiceError(error)
    if (code === 'SLUICE_ACCESS_DENIED') return
    if (code === 'SLUICE_NOT_FOUND' && statusOf(error)?.s3Code !== 'NoSuchBucket') return
    throw error
  }
  throw new SluiceError('SLUICE_EXISTS', 'the object exists already', { where: { url: s3Url(place) } })
}

/** What S3 calls a multipart object: MD5 of its parts' MD5s, and their number; null where parts have other ETags (SSE-KMS). */
export function multipartEtag(parts: readonly WrittenPart[]): string | null {
  const hash = createHash('md5')
  for (const { etag } of parts) {
    const hex = /^"?([0-9a-f]{32})"?$/.exec(etag ?? '')?.[1]
    if (hex === undefined) return null
    hash.update(Buffer.from(hex, 'hex'))
  }
  return `"${hash.digest('hex')}-${parts.length}"`
}

/** One signal out of two; AbortSignal.any would keep every part's signal alive on Node 20 as long as the job's. */
function linkSignals(a: AbortSignal, b: AbortSignal): Abortable & { unlink(): void } {
  const controller = new AbortController()
  const stopA = (): void => controller.abort(a.reason)
  const stopB = (): void => controller.abort(b.reason)
  // One listener a part in flight, taken off at its end: Node would warn of the eleventh.
  setMaxListeners(0, a, b)
  if (a.aborted) stopA()
  if (b.aborted) stopB()
  a.addEventListener('abort', stopA, { once: true })
  b.addEventListener('abort', stopB, { once: true })
  return {
    signal: controller.signal,
    unlink() {
      a.removeEventListener('abort', stopA)
      b.removeEventListener('abort', stopB)
    },
  }
}
