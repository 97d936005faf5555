import { createCredentialSource, type AwsCredentials, type CredentialSource } from '../../aws/credentials.ts'
import { createHttpPool, type HttpPool, type HttpResponse } from '../../aws/http-pool.ts'
import { findRegion } from '../../aws/region.ts'
import { EMPTY_SHA256, UNSIGNED_PAYLOAD, encodeQuery, sha256Hex, signV4, type QueryPair } from '../../aws/sign-v4.ts'
import { SluiceError } from '../../core/errors.ts'
import { AdaptiveLimiter } from '../../core/limiter.ts'
import type { Environment } from '../../core/options.ts'
import type { Abortable, Reporter } from '../../core/ports.ts'
import { retry } from '../../core/retry.ts'
import { awsHost, locate, parseEndpoint, s3Url, type PathStyle } from './s3-address.ts'
import { statusOf, toS3Error } from './s3-errors.ts'
import { parseErrorBody } from './s3-xml.ts'

export interface S3ClientOptions {
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
  readonly profile?: string | undefined
  readonly signRequest?: boolean | undefined
  readonly pathStyle?: PathStyle | undefined
  readonly maxConnections?: number | undefined
  readonly retryForMs: number
  readonly env: Environment
  readonly reporter: Reporter
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  readonly bucket: string
  readonly key?: string | undefined
  readonly query?: readonly QueryPair[] | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: readonly Uint8Array[] | undefined
  /** `read` and `write` differ in what a failed condition means; `bulk` marks what carries an object's bytes. */
  readonly purpose: 'read' | 'write'
  readonly bulk?: boolean | undefined
  readonly signal: AbortSignal
  /** Shorter than the store's own, where little is lost. */
  readonly retryForMs?: number | undefined
  /** Longer than the pool's, for requests over which a store may brood. */
  readonly stallTimeoutMs?: number | undefined
}

/** Signed requests to one S3, with retries. */
export interface S3Client {
  /** Resolves for 2xx only. The body has to be read, discarded or destroyed. @throws what toS3Error and the network give */
  send(request: S3Request): Promise<HttpResponse>
  /** As send, with the body as text; an error in the body of a 200 is an error. */
  sendForText(request: S3Request): Promise<{ readonly text: string; readonly response: HttpResponse }>
  /** Tries an operation made of several requests again, as a single one would be. */
  retrying<T>(operation: (attempt: number) => Promise<T>, o: Abortable): Promise<T>
  readonly retryForMs: number
  readonly reporter: Reporter
  close(): Promise<void>
}

/** A first contact that is refused may be a server that is just starting; longer than this it is a wrong address. */
const FIRST_CONTACT_MS = 3_000
const DEFAULT_CONNECTIONS = 64
/** Below this a throttled store is served by pauses, no longer by fewer requests. */
const LEAST_IN_FLIGHT = 4
/** Buckets whose region or host was learned. */
const KNOWN_BUCKETS = 1000

/** Opens no connection and looks up no credentials before the first request. @throws SLUICE_USAGE for an endpoint that is none */
export function createS3Client(options: S3ClientOptions): S3Client {
  return new Client(options)
}

class Client implements S3Client {
  readonly retryForMs: number
  readonly reporter: Reporter
  readonly #pool: HttpPool
  readonly #credentials: CredentialSource
  readonly #options: S3ClientOptions
  readonly #endpoint: URL | null
  readonly #reads: AdaptiveLimiter
  readonly #writes: AdaptiveLimiter
  readonly #learned = new Map<string, { region?: string; origin?: string }>()
  #region: Promise<string> | null = null

  constructor(options: S3ClientOptions) {
    const connections = Math.max(1, options.maxConnections ?? DEFAULT_CONNECTIONS)
    const { env } = options
    this.retryForMs = options.retryForMs
    this.reporter = options.reporter
    this.#options = options
    this.#endpoint = parseEndpoint(options.endpoint ?? env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL)
    this.#pool = createHttpPool({ maxConnections: connections })
    this.#credentials = createCredentialSource({ env, profile: options.profile, signRequest: options.signRequest })
    // The caller's own parallelism is the limit until the store asks for less.
    const bounds = { initial: connections, min: Math.min(LEAST_IN_FLIGHT, connections), max: connections }
    this.#reads = new AdaptiveLimiter(bounds)
    this.#writes = new AdaptiveLimiter(bounds)
  }

  async sendForText(request: S3Request): Promise<{ text: string; response: HttpResponse }> {
    return this.#retried(request, async (response) => {
      const text = await response.body.text(64 * 1024 * 1024)
      // CompleteMultipartUpload says 200 before it knows how it ends (API reference of CompleteMultipartUpload).
      if (parseErrorBody(text) !== null) throw this.#refusal(request, { ...response, status: 200 }, text)
      return { text, response }
    })
  }

  send(request: S3Request): Promise<HttpResponse> {
    return this.#retried(request, (response) => Promise.resolve(response))
  }

  retrying<T>(operation: (attempt: number) => Promise<T>, o: Abortable): Promise<T> {
    const policy = { retryForMs: this.retryForMs, signal: o.signal }
    return retry(operation, { ...policy, onRetry: (error) => this.#onRetry(error) })
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  #retried<T>(request: S3Request, use: (response: HttpResponse) => Promise<T>): Promise<T> {
    const wantedMs = request.retryForMs ?? this.retryForMs
    let origin = ''
    const choose = (chosen: string): void => {
      origin = chosen
    }
    const attempt = async (): Promise<T> => use(await this.#once(request, choose))
    const operation = (): Promise<T> =>
      this.#limited(request, attempt).catch((error: unknown) => {
        // Missing credentials know no place.
        throw error instanceof SluiceError ? error.at({ url: s3Url(request) }) : error
      })
    const pool = this.#pool
    return retry(operation, {
      get retryForMs() {
        return pool.hasAnswered(origin) ? wantedMs : Math.min(FIRST_CONTACT_MS, wantedMs)
      },
      signal: request.signal,
      onRetry: (error) => this.#onRetry(error),
    })
  }

  #onRetry(error: SluiceError): void {
    const throttled = error.code === 'SLUICE_THROTTLED'
    this.reporter.retried({ throttled })
    if (!throttled) return
    this.#reads.throttled()
    this.#writes.throttled()
  }

  /** A read holds its place until its head is there, as its body waits for the consumer, who may wait for other reads. */
  #limited<T>(request: S3Request, operation: () => Promise<T>): Promise<T> {
    if (request.bulk !== true) return operation()
    const limiter = request.purpose === 'read' ? this.#reads : this.#writes
    const bytes = request.body?.reduce((sum, chunk) => sum + chunk.byteLength, 0) ?? 1
    return limiter.run(operation, () => bytes)
  }

  /** One attempt; a second one where the store names the right region or host, or where expired credentials could be renewed. */
  async #once(request: S3Request, chosen: (origin: string) => void): Promise<HttpResponse> {
    for (let redirects = 0; ; redirects += 1) {
      const credentials = await this.#credentials.get()
      const response = await this.#attempt(request, credentials, chosen)
      if (response.status >= 200 && response.status < 300) return response
      const text = await response.body.text()
      if (redirects === 0 && (await this.#learn(request, response, text))) continue
      const error = this.#refusal(request, response, text)
      if (redirects === 0 && error.code === 'SLUICE_CREDENTIALS_EXPIRED' && (await this.#renewed(credentials))) continue
      throw error
    }
  }

  async #attempt(
    request: S3Request,
    credentials: AwsCredentials | null,
    chosen: (origin: string) => void,
  ): Promise<HttpResponse> {
    const learned = this.#learned.get(request.bucket)
    const region = learned?.region ?? (await this.#ownRegion())
    const { endpoint, pathStyle } = { endpoint: this.#endpoint, pathStyle: this.#options.pathStyle ?? 'auto' }
    const place = locate(request, { endpoint, region, pathStyle })
    const origin = learned?.origin ?? place.origin
    chosen(origin)
    const headers = this.#sign(request, { credentials, region, host: new URL(origin).host, path: place.path })
    const query = encodeQuery(request.query ?? [])
    return this.#pool.request({
      method: request.method,
      origin,
      path: query === '' ? place.path : `${place.path}?${query}`,
      headers: { ...headers, 'user-agent': 'sluice' },
      body: request.body,
      signal: request.signal,
      label: s3Url(request),
      bulk: request.bulk === true && request.method === 'GET',
      stallTimeoutMs: request.stallTimeoutMs,
    })
  }

  #sign(
    request: S3Request,
    to: { credentials: AwsCredentials | null; region: string; host: string; path: string },
  ): Record<string, string> {
    const headers = { ...request.headers }
    if (to.credentials === null) return headers
    // Hashing 208 MB would cost 0.2 s and more: an object's bytes carry a CRC instead, control requests their hash.
    const payloadHash =
      request.bulk === true && request.body !== undefined ? UNSIGNED_PAYLOAD : hashOf(request.body ?? [])
    return signV4({
      method: request.method,
      host: to.host,
      path: to.path,
      query: request.query ?? [],
      headers: { ...headers, 'x-amz-content-sha256': payloadHash },
      payloadHash,
      timeMs: Date.now(),
      region: to.region,
      service: 's3',
      credentials: to.credentials,
    })
  }

  #refusal(request: S3Request, response: HttpResponse, body: string): SluiceError {
    const { status, headers } = response
    return toS3Error({ status, headers, body, url: s3Url(request), purpose: request.purpose })
  }

  /** Whether the answer told something new about where the bucket is. */
  async #learn(request: S3Request, response: HttpResponse, text: string): Promise<boolean> {
    if (![301, 307, 400, 403].includes(response.status)) return false
    const known = this.#learned.get(request.bucket)
    const region = response.headers['x-amz-bucket-region'] ?? parseErrorBody(text)?.region
    const current = known?.region ?? (await this.#ownRegion())
    if (this.#learned.size >= KNOWN_BUCKETS) this.#learned.clear()
    if (region !== undefined && region !== '' && region !== current) {
      this.#learned.set(request.bucket, { region })
      return true
    }
    const origin = response.status === 307 ? this.#trustedOrigin(response.headers.location) : null
    if (origin === null || origin === known?.origin) return false
    this.#learned.set(request.bucket, { ...known, origin })
    return true
  }

  /** Only hosts of the same owner are followed: our signature goes there. */
  #trustedOrigin(location: string | undefined): string | null {
    if (location === undefined || !URL.canParse(location)) return null
    const to = new URL(location)
    const base = this.#endpoint ?? new URL(`https://${awsHost('us-east-1')}`)
    const home = /\bamazonaws\.com(\.cn)?$/.exec(base.hostname)?.[0] ?? base.hostname
    const sameOwner = to.hostname === home || to.hostname.endsWith(`.${home}`)
    return sameOwner && (to.protocol === base.protocol || to.protocol === 'https:') ? to.origin : null
  }

  async #renewed(used: AwsCredentials | null): Promise<boolean> {
    if (used === null) return false
    this.#credentials.invalidate()
    const fresh = await this.#credentials.get()
    return fresh !== null && (fresh.accessKeyId !== used.accessKeyId || fresh.sessionToken !== used.sessionToken)
  }

  #ownRegion(): Promise<string> {
    const { region, profile, env } = this.#options
    this.#region ??= findRegion({ region, profile, env })
    return this.#region
  }
}

function hashOf(body: readonly Uint8Array[]): string {
  return body.length === 0 ? EMPTY_SHA256 : sha256Hex(Buffer.concat(body))
}

/** Whether a store says that it does not know an operation or a header, so that we do without it. */
export function isUnsupported(error: unknown): boolean {
  const refusal = statusOf(error)
  return refusal !== null && (refusal.status === 501 || refusal.status === 405 || refusal.s3Code === 'NotImplemented')
}
