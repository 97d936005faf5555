import { redactUrl } from '../core/redact.ts'
import { SluiceError, type ErrorCode } from '../core/errors.ts'

/** Node's, libuv's and undici's codes that mean that no connection came about (Node "Errors"; undici docs/api/Errors.md). */
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** … that a connection which was there broke or went silent. */
const BROKEN = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'UND_ERR_INFO',
  'HPE_INVALID_EOF_STATE',
])

const TLS =
  /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|CRL_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|EPROTO)/

const TLS_HINT =
  'check the host name and the certificate; a private authority is trusted by NODE_EXTRA_CA_CERTS, and a server without TLS wants http://'

/**
 * What Node and undici throw around a request, as a SluiceError; the one place where their codes are read.
 * `url` names the host, and the place for people unless `placeUrl` does (secrets are struck out here). A SluiceError comes back as it is.
 */
export function translateNetworkError(error: unknown, url: string, placeUrl: string = url): SluiceError {
  if (error instanceof SluiceError) return error
  const code = networkCode(error)
  const where = { url: redactUrl(placeUrl) }
  const host = hostOf(url)
  const fail = (sluiceCode: ErrorCode, message: string, hint?: string): SluiceError =>
    new SluiceError(sluiceCode, message, { where, hint, cause: error })

  if (code === 'ENOTFOUND') {
    return fail('SLUICE_NOT_FOUND', `no host is named ${host}`, 'check the spelling of the host name, and the DNS')
  }
  if (UNREACHABLE.has(code)) return fail('SLUICE_UNREACHABLE', `no connection to ${host}: ${inWords(code)}`)
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return fail('SLUICE_NETWORK', `the connection to ${host} stalled: ${inWords(code)}`)
  }
  if (BROKEN.has(code)) return fail('SLUICE_NETWORK', `the connection to ${host} broke: ${inWords(code)}`)
  if (TLS.test(code)) return fail('SLUICE_TLS', `no secure connection to ${host}: ${tlsReason(error)}`, TLS_HINT)
  if (code.startsWith('HPE_') || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return fail('SLUICE_PROTOCOL', `${host} does not answer in HTTP (${code})`)
  }
  return fail('SLUICE_INTERNAL', `a request to ${host} failed: ${messageOf(error)}`)
}

/** The most telling code: an AggregateError (one attempt an address) and a cause are looked into. */
function networkCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const own = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (own !== '') return own
  if (error instanceof AggregateError) {
    for (const one of error.errors) {
      const code = networkCode(one)
      if (code !== '') return code
    }
  }
  return 'cause' in error ? networkCode(error.cause) : ''
}

function inWords(code: string): string {
  switch (code) {
    case 'ECONNREFUSED':
      return 'nothing listens there (ECONNREFUSED)'
    case 'UND_ERR_CONNECT_TIMEOUT':
      return 'no answer within the time to connect'
    case 'EAI_AGAIN':
      return 'the name server does not answer (EAI_AGAIN)'
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
    case 'HPE_INVALID_EOF_STATE':
      return `the other side closed it (${code})`
    case 'UND_ERR_HEADERS_TIMEOUT':
      return 'no answer came'
    case 'UND_ERR_BODY_TIMEOUT':
      return 'no byte came any more'
    default:
      return code
  }
}

/** OpenSSL's own words, without its files and numbers: `…:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:…`. */
function tlsReason(error: unknown): string {
  const message = messageOf(error)
  const reason = /:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1]
  if (reason === undefined) return message
  return /^(?:wrong version number|packet length too long|http request)$/.test(reason)
    ? `it does not answer in TLS (${reason})`
    : reason
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function hostOf(url: string): string {
  try {
    const parsed = new URL(url)
    return parsed.host === '' ? redactUrl(url) : parsed.host
  } catch {
    return redactUrl(url)
  }
}
