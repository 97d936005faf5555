import type { HttpResponse } from '../../aws/http-pool.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Abortable, ObjectInfo, Reporter } from '../../core/ports.ts'
import { redactUrl } from '../../core/redact.ts'
import { retry, type RetryPolicy } from '../../core/retry.ts'
import type { HttpRequests } from './http-requests.ts'
import { contentCoding, contentLength, parseContentRange, pinOf } from './pin.ts'
import { statusError } from './status.ts'

/** What the parts of the HTTP store share. */
export interface HttpContext {
  readonly requests: HttpRequests
  readonly retryForMs: number
  readonly reporter: Reporter
  /** Keys without a pin that have been read; one entry for each. */
  readonly taken: Set<string>
}

/** What a probe found. */
interface Found {
  readonly response: HttpResponse
  readonly size: number | null
  readonly ranged: boolean
}

/**
 * Asks for one byte by GET: what HEAD would say, and whether ranges work in truth, also where HEAD is refused (presigned URLs allow the one
 * method they were signed for). A server without ranges begins to send the whole file; that connection is closed.
 *
 * @throws what HttpRequests.send throws; SLUICE_COMPRESSION
 */
export async function headHttp(context: HttpContext, key: string, o: Abortable): Promise<ObjectInfo> {
  const { response, size, ranged } = await retry(() => probe(context, key, o), policyOf(context, o))
  const { headers } = response
  checkCoding(context, headers, key)
  const etag = pinOf(headers, size)
  const modifiedMs = Date.parse(headers['last-modified'] ?? '')
  return {
    key,
    url: redactUrl(key),
    size,
    etag,
    modifiedMs: Number.isNaN(modifiedMs) ? null : modifiedMs,
    // Without a pin several requests could see several states of it.
    ranged: ranged && etag !== null,
    replayable: etag !== null,
    contentType: headers['content-type'],
  }
}

/** Codings whose bytes tell what they are (magic numbers). */
const TELLING_CODINGS = new Set(['gzip', 'x-gzip', 'zstd'])

/**
 * We ask for the file as it is; some servers have nothing but its compressed form. That is read where it can be told from its bytes, and
 * whoever copies bytes is told that they are those of the compressed form.
 */
function checkCoding(context: HttpContext, headers: HttpResponse['headers'], key: string): void {
  const coding = contentCoding(headers)
  if (coding === null) return
  const url = redactUrl(key)
  if (!TELLING_CODINGS.has(coding))
    throw new SluiceError(
      'SLUICE_COMPRESSION',
      `the server sends it compressed (Content-Encoding: ${coding}), which sluice does not read`,
      {
        where: { url },
        hint: 'download it by curl --compressed, and take that file',
      },
    )
  if (!/\.(?:gz|gzip|tgz|zst|zstd)$/i.test(new URL(key).pathname))
    context.reporter.warn(`${url} comes compressed (Content-Encoding: ${coding}); bytes are copied as they come`)
}

/** Retries are told to the reporter. */
export function policyOf(context: HttpContext, o: Abortable): RetryPolicy {
  return {
    retryForMs: context.retryForMs,
    signal: o.signal,
    onRetry: (error) => context.reporter.retried({ throttled: error.code === 'SLUICE_THROTTLED' }),
  }
}

/** What servers say that stumble over a Range, which they should pass over (RFC 9110, 14.2): then the file is asked for once more, as one stream. */
const RANGE_REFUSED: readonly number[] = [400, 405, 501]

async function probe(context: HttpContext, key: string, o: Abortable): Promise<Found> {
  const response = await context.requests.send(key, {
    headers: { range: 'bytes=0-0' },
    signal: o.signal,
    taken: RANGE_REFUSED,
  })
  const { status, headers } = response
  const contentRange = parseContentRange(headers['content-range'])
  if (status === 206) {
    await response.body.discard()
    if (contentRange?.range?.start !== 0) throw oddRange(headers['content-range'], key)
    return { response, size: contentRange.size ?? (await sizeByHead(context, key, o)), ranged: true }
  }
  response.body.destroy()
  if (status === 200) return { response, size: contentLength(headers), ranged: false }
  // An empty file has no first byte, and many servers say so by 416; what they say of the file then is not enough for a pin.
  if (status === 416 || RANGE_REFUSED.includes(status)) return probeWhole(context, key, o)
  throw statusError(status, headers, redactUrl(key))
}

async function probeWhole(context: HttpContext, key: string, o: Abortable): Promise<Found> {
  const response = await context.requests.send(key, { headers: {}, signal: o.signal })
  response.body.destroy()
  if (response.status !== 200) throw statusError(response.status, response.headers, redactUrl(key))
  return { response, size: contentLength(response.headers), ranged: false }
}

/** Null where HEAD is refused, or does not say. */
async function sizeByHead(context: HttpContext, key: string, o: Abortable): Promise<number | null> {
  const response = await context.requests
    .send(key, { method: 'HEAD', headers: {}, signal: o.signal })
    .catch((error: unknown) => {
      if (error instanceof SluiceError && !error.retryable) return null
      throw error
    })
  await response?.body.discard()
  return response === null ? null : contentLength(response.headers)
}

/** @returns an error that names what came */
export function oddRange(header: string | undefined, key: string): SluiceError {
  return new SluiceError(
    'SLUICE_PROTOCOL',
    `the server sent another range than was asked for (Content-Range: ${header ?? 'missing'})`,
    {
      where: { url: redactUrl(key) },
    },
  )
}
