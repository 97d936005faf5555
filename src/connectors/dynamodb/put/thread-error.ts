import { SluiceError, type ErrorCode, type ErrorPlace } from '../../../core/errors.ts'

/** A SluiceError as it goes from thread to thread. */
export interface ThreadError {
  readonly code: ErrorCode
  readonly message: string
  readonly where: ErrorPlace
  readonly hint: string
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined
  readonly stack: string | undefined
  readonly cause: string | undefined
}

export function toThreadError(error: SluiceError): ThreadError {
  const { code, message, where, hint, retryable, retryAfterMs, stack, cause } = error
  const causeText = cause instanceof Error ? (cause.stack ?? cause.message) : undefined
  return { code, message, where, hint, retryable, retryAfterMs, stack, cause: causeText }
}

export function fromThreadError(plain: ThreadError): SluiceError {
  const { code, message, where, hint, retryable, retryAfterMs, stack, cause } = plain
  const error = new SluiceError(code, message, {
    where,
    hint,
    retryable,
    retryAfterMs,
    cause: cause === undefined ? undefined : new Error(cause),
  })
  if (stack !== undefined) error.stack = stack
  return error
}
