import { SluiceError, toSluiceError } from '../core/errors.ts'
import { requireSound } from '../core/option-rules.ts'
import type { CopyOptions, Environment } from '../core/options.ts'

interface Asked {
  readonly options: CopyOptions
  readonly env: Environment
  readonly signal?: AbortSignal | undefined
}

/** What a request of the library is inside it. */
interface Entered<R> {
  readonly request: R & { readonly signal: AbortSignal }
  /** What to throw for what was thrown. */
  told(thrown: unknown): SluiceError
  /** Lets go of the caller's signal. */
  leave(): void
}

/**
 * Where a request comes in: its options are sound, and whatever its signal is aborted with, inside it is aborted with a SluiceError.
 *
 * @throws SLUICE_USAGE; SLUICE_INTERRUPTED where the signal is aborted already
 */
export function enter<R extends Asked>(request: R): Entered<R> {
  requireObject('options', request.options)
  requireObject('env', request.env)
  requireSound(request.options)
  const outer = request.signal
  const inner = new AbortController()
  const onAbort = (): void => inner.abort(interruption(outer?.reason))
  if (outer?.aborted === true) throw interruption(outer.reason)
  outer?.addEventListener('abort', onAbort, { once: true })
  return {
    request: { ...request, signal: inner.signal },
    told: (thrown) => {
      const error = toSluiceError(thrown)
      // A wait of Node's own that was cut short throws an error of its own.
      return inner.signal.aborted && error.code === 'SLUICE_INTERNAL' ? interruption(outer?.reason) : error
    },
    leave: () => outer?.removeEventListener('abort', onAbort),
  }
}

/** `work` on a request that was let in. @throws SluiceError */
export async function within<R extends Asked, T>(
  request: R,
  work: (request: R & { readonly signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const entered = enter(request)
  try {
    return await work(entered.request)
  } catch (error) {
    throw entered.told(error)
  } finally {
    entered.leave()
  }
}

/** That what must be a string is one, and says something. @throws SLUICE_USAGE */
export function requireText(name: string, value: unknown): void {
  if (typeof value === 'string') return
  throw new SluiceError('SLUICE_USAGE', `${name} is missing, or no string`, { hint: `say ${name}` })
}

/** That a count is one, where it is said. @throws SLUICE_USAGE */
export function requireCount(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return
  throw new SluiceError('SLUICE_USAGE', `${name} ${value}: not a number that fits`, {
    hint: 'a whole number from 0 on',
  })
}

/** @throws SLUICE_USAGE */
function requireObject(name: string, value: unknown): void {
  if (typeof value === 'object' && value !== null) return
  throw new SluiceError('SLUICE_USAGE', `${name} is missing, or no object`, {
    hint: `${name}: {}, if there is nothing to say`,
  })
}

function interruption(reason: unknown): SluiceError {
  if (reason instanceof SluiceError) return reason
  const why = reason instanceof Error && reason.name !== 'AbortError' ? `: ${reason.message}` : ''
  return new SluiceError('SLUICE_INTERRUPTED', `stopped by the caller${why}`, { cause: reason })
}
