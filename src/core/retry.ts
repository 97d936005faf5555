import { setTimeout as delay } from 'node:timers/promises'
import { SluiceError, toSluiceError } from './errors.ts'

export interface RetryPolicy {
  /** How long without progress before the last error is thrown; `--retry-for`. 0: never retry. */
  readonly retryForMs: number
  readonly signal: AbortSignal
  /** Told before each wait. */
  readonly onRetry?: ((error: SluiceError, delayMs: number) => void) | undefined
  /** Time of the latest progress, where the operation makes some by itself; the budget counts from there. */
  readonly lastProgressMs?: (() => number) | undefined
}

const FIRST_DELAY_MS = 50
/** A throttled server wants longer pauses (the figure of AWS's own clients). */
const FIRST_THROTTLED_DELAY_MS = 500
const LONGEST_DELAY_MS = 20_000

/** Full jitter (AWS Architecture Blog, "Exponential Backoff and Jitter"): anywhere between 0 and the exponential bound. */
export function backoffMs(attempt: number, throttled: boolean, random: () => number = Math.random): number {
  const first = throttled ? FIRST_THROTTLED_DELAY_MS : FIRST_DELAY_MS
  return random() * Math.min(LONGEST_DELAY_MS, first * 2 ** Math.min(attempt, 20))
}

/**
 * Runs an operation until it succeeds, fails for good (not retryable), or the budget is used up: then its last error is thrown.
 * Honours Retry-After. `attempt` counts from 0.
 *
 * @throws the operation's SluiceError; the signal's reason where that ended it
 */
export async function retry<T>(operation: (attempt: number) => Promise<T>, policy: RetryPolicy): Promise<T> {
  const beganMs = performance.now()
  for (let attempt = 0; ; attempt += 1) {
    policy.signal.throwIfAborted()
    try {
      return await operation(attempt)
    } catch (thrown) {
      policy.signal.throwIfAborted()
      const error = toSluiceError(thrown)
      if (!error.retryable) throw error
      const since = Math.max(beganMs, policy.lastProgressMs?.() ?? 0)
      const leftMs = since + policy.retryForMs - performance.now()
      const delayMs = Math.max(backoffMs(attempt, error.code === 'SLUICE_THROTTLED'), error.retryAfterMs ?? 0)
      if (delayMs > leftMs) throw error
      policy.onRetry?.(error, delayMs)
      await delay(delayMs, undefined, { signal: policy.signal }).catch(() => policy.signal.throwIfAborted())
    }
  }
}
