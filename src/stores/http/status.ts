import { retryAfterMs } from '../../aws/http-pool.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Headers } from './pin.ts'

/** An answer that is no success, as an error. Statuses as RFC 9110 and RFC 6585 have them. */
export function statusError(status: number, headers: Headers, url: string): SluiceError {
  const where = { url }
  switch (status) {
    case 401:
    case 407:
      return new SluiceError('SLUICE_CREDENTIALS', `the server wants a user and a password (${status})`, {
        where,
        hint: 'check them; they can be given as https://USER:PASSWORD@host/…',
      })
    case 403:
      return new SluiceError('SLUICE_ACCESS_DENIED', 'the server refuses access (403)', {
        where,
        hint: 'check the URL; the signature of a presigned one may have expired',
      })
    case 404:
      return new SluiceError('SLUICE_NOT_FOUND', 'the server has no such file (404)', {
        where,
        hint: 'check the spelling of the URL',
      })
    case 410:
      return new SluiceError('SLUICE_NOT_FOUND', 'the server has this file no more (410)', {
        where,
        hint: 'look for its new place',
      })
    case 412:
    case 416:
      return new SluiceError('SLUICE_SOURCE_CHANGED', `the file changed while it was read (${status})`, { where })
    case 408:
    case 425:
    case 429:
      return new SluiceError('SLUICE_THROTTLED', `the server asks to come back later (${status})`, {
        where,
        retryAfterMs: retryAfterMs(headers['retry-after']),
      })
    default:
      return status >= 500 ? serverError(status, headers, url) : unexpected(status, url)
  }
}

function serverError(status: number, headers: Headers, url: string): SluiceError {
  const wait = retryAfterMs(headers['retry-after'])
  return new SluiceError(
    status === 503 ? 'SLUICE_THROTTLED' : 'SLUICE_SERVER',
    `the server fails on its side (${status})`,
    {
      where: { url },
      retryAfterMs: wait,
      // Not implemented; HTTP version not supported: the next request would hear the same.
      ...(status === 501 || status === 505 ? { retryable: false } : {}),
    },
  )
}

function unexpected(status: number, url: string): SluiceError {
  return new SluiceError('SLUICE_PROTOCOL', `the server answers with status ${status}`, { where: { url } })
}
