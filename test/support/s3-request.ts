import { createHash, createHmac } from 'node:crypto'
import { request as httpRequest } from 'node:http'

/** How to reach an S3 service; JSON. */
export interface S3Address {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string
  /** What an S3 client reads: keys, region and endpoint. */
  readonly env: {
    readonly AWS_ACCESS_KEY_ID: string
    readonly AWS_SECRET_ACCESS_KEY: string
    readonly AWS_REGION: string
    readonly AWS_ENDPOINT_URL_S3: string
  }
}

/** An answer, its body in memory. */
export interface S3Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** What is asked; `path` is `/bucket/key` as it is, not percent-encoded. */
export interface S3Question {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
}

const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: Uint8Array | string, data: string): Buffer => createHmac('sha256', key).update(data).digest()

/** RFC 3986 percent-encoding of all but unreserved characters, as SigV4 wants it. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

/**
 * One signed request (AWS Signature Version 4, whole body in memory), for tests to set up and to look at a store by a way
 * that shares nothing with what is tested. Any status resolves.
 */
export function s3Request(address: S3Address, question: S3Question): Promise<S3Answer> {
  const { AWS_ACCESS_KEY_ID: keyId, AWS_SECRET_ACCESS_KEY: secret, AWS_REGION: region } = address.env
  const endpoint = new URL(address.endpoint)
  const body = Buffer.from(question.body ?? '')
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
  const path = question.path.split('/').map(encode).join('/')
  const query = Object.entries(question.query ?? {})
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
  const headers: Record<string, string> = {
    host: endpoint.host,
    'x-amz-date': stamp,
    'x-amz-content-sha256': sha256(body),
    ...Object.fromEntries(Object.entries(question.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])),
  }
  const names = Object.keys(headers).sort()
  const canonicalHeaders = names.map((name) => `${name}:${headers[name]?.trim()}\n`).join('')
  const signed = names.join(';')
  const canonical = [question.method, path, query, canonicalHeaders, signed, sha256(body)].join('\n')
  const scope = `${stamp.slice(0, 8)}/${region}/s3/aws4_request`
  const key = ['s3', 'aws4_request'].reduce<Buffer>(hmac, hmac(hmac(`AWS4${secret}`, stamp.slice(0, 8)), region))
  const signature = hmac(key, ['AWS4-HMAC-SHA256', stamp, scope, sha256(canonical)].join('\n')).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${keyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        host: endpoint.hostname,
        port: endpoint.port,
        method: question.method,
        path: query === '' ? path : `${path}?${query}`,
        headers: { ...headers, authorization, 'content-length': body.length },
        agent: false,
      },
      (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** The same, where another status than 2xx is an error. */
export async function s3Do(address: S3Address, question: S3Question): Promise<S3Answer> {
  const answer = await s3Request(address, question)
  if (answer.status < 200 || answer.status > 299) {
    throw new Error(`${question.method} ${question.path}: ${answer.status} ${answer.body.toString()}`)
  }
  return answer
}

/** A new bucket of a shared service, so that tests do not meet; its name. */
export async function freshBucket(address: S3Address, name = 'bucket'): Promise<string> {
  const bucket = `${name}-${process.pid}-${Math.random().toString(36).slice(2, 8)}`
  await s3Do(address, { method: 'PUT', path: `/${bucket}` })
  return bucket
}
