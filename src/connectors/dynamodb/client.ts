import { createCredentialSource, type CredentialSource } from '../../aws/credentials.ts'
import { PostPool } from '../../aws/post-pool.ts'
import { JsonSigner } from '../../aws/sign-json.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Abortable, Reporter } from '../../core/ports.ts'
import { retry } from '../../core/retry.ts'
import type { EndpointRequest } from '../connector.ts'
import type { DynamoCalls } from './answer.ts'
import { toDynamoError } from './errors.ts'
import { dynamoHost, type DynamoTarget } from './url.ts'

export interface DynamoClientOptions {
  readonly target: DynamoTarget
  readonly credentials: CredentialSource
  readonly retryForMs: number
  readonly reporter: Reporter
  /** Requests at the same time; default 128. */
  readonly maxConnections?: number | undefined
  /** Time without a byte after which a request is given up; default 15,000 ms. */
  readonly stallTimeoutMs?: number | undefined
}

/** A first contact that is refused may be a server that is just starting; longer than this it is a wrong address. */
const FIRST_CONTACT_MS = 3_000
/** Name and version of the service's API, as every request's target has them. */
const API = 'DynamoDB_20120810'

/** DynamoDB's JSON 1.0 protocol, signed, over connections that are kept alive. Opens none before the first request. */
export class DynamoClient implements DynamoCalls {
  readonly retryForMs: number
  readonly reporter: Reporter
  readonly #url: string
  readonly #pool: PostPool
  readonly #signer: JsonSigner
  readonly #credentials: CredentialSource

  constructor(options: DynamoClientOptions) {
    const { target, retryForMs, reporter, maxConnections = 128, stallTimeoutMs } = options
    const endpoint = target.endpoint ?? new URL(`https://${dynamoHost(target.region)}`)
    this.retryForMs = retryForMs
    this.reporter = reporter
    this.#url = target.url
    this.#credentials = options.credentials
    this.#pool = new PostPool({ origin: endpoint.origin, maxConnections, stallTimeoutMs })
    this.#signer = new JsonSigner({
      host: endpoint.host,
      path: endpoint.pathname.endsWith('/') ? endpoint.pathname : `${endpoint.pathname}/`,
      region: target.region,
      service: 'dynamodb',
      contentType: 'application/x-amz-json-1.0',
    })
  }

  get credentials(): CredentialSource {
    return this.#credentials
  }

  /** Whether the server has ever answered. */
  get answered(): boolean {
    return this.#pool.answered
  }

  /**
   * One request, tried once; the answer's body. Credentials that expired are asked for anew, and the request is tried a second time with others.
   *
   * @throws what toDynamoError and the network give
   */
  async send(operation: string, body: Uint8Array, o: Abortable): Promise<Buffer> {
    const credentials = await this.#credentials.get()
    const target = `${API}.${operation}`
    const {
      status,
      headers,
      body: answer,
    } = await this.#pool.post(this.#signer.head(target, body, credentials), body, o.signal)
    if (status === 200) return answer
    const error = toDynamoError({ status, headers, body: answer.toString('utf8'), operation, url: this.#url })
    if (error.code !== 'SLUICE_CREDENTIALS_EXPIRED') throw error
    this.#credentials.invalidate()
    const renewed = await this.#credentials.get()
    if (renewed === null || renewed.sessionToken === credentials?.sessionToken) throw error
    return this.send(operation, body, o)
  }

  /**
   * One operation, its answer parsed. Throttles, failures of the server and of the network are tried again for `retryForMs`.
   *
   * @throws as send; SLUICE_PROTOCOL where the answer is no JSON
   */
  async call(operation: string, body: object | Uint8Array, o: Abortable): Promise<unknown> {
    const bytes = body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body))
    const beganMs = performance.now()
    const answer = await retry(
      async () => {
        try {
          return await this.send(operation, bytes, o)
        } catch (error) {
          throw this.#finalIfNobodyIsThere(error, beganMs)
        }
      },
      {
        retryForMs: this.retryForMs,
        signal: o.signal,
        onRetry: (error) => this.reporter.retried({ throttled: error.code === 'SLUICE_THROTTLED' }),
      },
    )
    return parseJson(answer, operation)
  }

  close(): Promise<void> {
    this.#pool.close()
    return Promise.resolve()
  }

  /** Nothing listens, and never did: not worth `--retry-for`. */
  #finalIfNobodyIsThere(error: unknown, beganMs: number): unknown {
    const unreachable = error instanceof SluiceError && error.code === 'SLUICE_UNREACHABLE'
    if (!unreachable || this.answered || performance.now() - beganMs < FIRST_CONTACT_MS) return error
    return new SluiceError(error.code, error.message, {
      where: error.where,
      hint: 'check AWS_ENDPOINT_URL_DYNAMODB, the region, and that the server runs',
      cause: error.cause,
      retryable: false,
    })
  }
}

/** A client for what a request names; credentials as the environment and `--profile` say. */
export function openDynamoClient(
  request: EndpointRequest,
  target: DynamoTarget,
  o: { readonly maxConnections?: number; readonly stallTimeoutMs?: number } = {},
): DynamoClient {
  const { options, env, retryForMs, reporter } = request
  const credentials = createCredentialSource({ env, profile: options.profile, signRequest: options.signRequest })
  return new DynamoClient({ target, credentials, retryForMs, reporter, ...o })
}

function parseJson(answer: Buffer, operation: string): unknown {
  try {
    return JSON.parse(answer.toString('utf8'))
  } catch (error) {
    throw new SluiceError('SLUICE_PROTOCOL', `the answer to ${operation} is no JSON`, { cause: error })
  }
}
