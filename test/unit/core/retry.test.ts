import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SluiceError } from '../../../src/core/errors.ts'
import { backoffMs, retry } from '../../../src/core/retry.ts'

const never = new AbortController().signal

describe('backoffMs', () => {
  it('doubles its bound up to 20 s', () => {
    const longest = (attempt: number): number => backoffMs(attempt, false, () => 1)
    expect([0, 1, 2, 8, 9, 60].map(longest)).toEqual([50, 100, 200, 12_800, 20_000, 20_000])
  })

  it('begins later where the server throttles', () => {
    expect(backoffMs(0, true, () => 1)).toBe(500)
  })

  it('may be nothing', () => {
    expect(backoffMs(5, false, () => 0)).toBe(0)
  })
})

describe('retry', () => {
  it('returns what the operation returns, and tells it which attempt it is', async () => {
    const attempts: number[] = []
    const result = await retry(
      (attempt) => {
        attempts.push(attempt)
        return attempt < 2 ? Promise.reject(new SluiceError('SLUICE_NETWORK', 'cut')) : Promise.resolve('done')
      },
      { retryForMs: 60_000, signal: never },
    )
    expect(result).toBe('done')
    expect(attempts).toEqual([0, 1, 2])
  })

  it.each([
    ['that can not be helped', new SluiceError('SLUICE_VALUE', 'bad')],
    ['whose throw site says no', new SluiceError('SLUICE_NETWORK', 'cut', { retryable: false })],
  ])('throws at once an error %s', async (_, error) => {
    let calls = 0
    const failing = retry(
      () => {
        calls += 1
        return Promise.reject(error)
      },
      { retryForMs: 60_000, signal: never },
    )
    await expect(failing).rejects.toBe(error)
    expect(calls).toBe(1)
  })

  it('throws foreign errors at once, as internal ones', async () => {
    await expect(
      retry(() => Promise.reject(new Error('x')), { retryForMs: 60_000, signal: never }),
    ).rejects.toMatchObject({ code: 'SLUICE_INTERNAL' })
  })

  it('never retries without a budget', async () => {
    let calls = 0
    const failing = retry(
      () => {
        calls += 1
        return Promise.reject(new SluiceError('SLUICE_NETWORK', `cut ${calls}`))
      },
      { retryForMs: 0, signal: never },
    )
    await expect(failing).rejects.toMatchObject({ message: 'cut 1' })
  })

  it('does not wait for a Retry-After that is longer than what is left', async () => {
    const waits: number[] = []
    const error = new SluiceError('SLUICE_THROTTLED', 'slow down', { retryAfterMs: 10_000 })
    await expect(
      retry(() => Promise.reject(error), { retryForMs: 5000, signal: never, onRetry: (_, ms) => waits.push(ms) }),
    ).rejects.toBe(error)
    expect(waits).toEqual([])
  })

  it('waits at least as long as Retry-After says', async () => {
    const waits: number[] = []
    const result = await retry(
      (attempt) =>
        attempt === 0
          ? Promise.reject(new SluiceError('SLUICE_SERVER', 'busy', { retryAfterMs: 60 }))
          : Promise.resolve(attempt),
      { retryForMs: 5000, signal: never, onRetry: (_, ms) => waits.push(ms) },
    )
    expect(result).toBe(1)
    expect(waits[0]).toBeGreaterThanOrEqual(60)
  })

  it("rejects with the signal's reason, before and while it waits", async () => {
    const before = new Error('before')
    await expect(retry(() => Promise.resolve(1), { retryForMs: 1000, signal: AbortSignal.abort(before) })).rejects.toBe(
      before,
    )
    const controller = new AbortController()
    const reason = new Error('while')
    const failing = retry(() => Promise.reject(new SluiceError('SLUICE_SERVER', 'busy', { retryAfterMs: 60_000 })), {
      retryForMs: 600_000,
      signal: controller.signal,
      onRetry: () => queueMicrotask(() => controller.abort(reason)),
    })
    await expect(failing).rejects.toBe(reason)
  })

  it("rejects with the signal's reason where the operation failed because of it", async () => {
    const controller = new AbortController()
    const reason = new Error('stop')
    const failing = retry(
      () => {
        controller.abort(reason)
        return Promise.reject(new SluiceError('SLUICE_NETWORK', 'aborted'))
      },
      { retryForMs: 1000, signal: controller.signal },
    )
    await expect(failing).rejects.toBe(reason)
  })
})

describe('the budget of retry', () => {
  let nowMs = 1000
  beforeEach(() => {
    nowMs = 1000
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  })
  afterEach(() => vi.restoreAllMocks())

  const attemptsUntilGivenUp = async (lastProgressMs?: () => number): Promise<number> => {
    let calls = 0
    const failing = retry(
      () => {
        calls += 1
        nowMs += 100
        return Promise.reject(new SluiceError('SLUICE_NETWORK', 'cut', { retryAfterMs: 1 }))
      },
      { retryForMs: 350, signal: never, ...(lastProgressMs === undefined ? {} : { lastProgressMs }) },
    )
    vi.spyOn(Math, 'random').mockReturnValue(0)
    await expect(failing).rejects.toMatchObject({ code: 'SLUICE_NETWORK' })
    return calls
  }

  it('counts from the beginning', async () => {
    expect(await attemptsUntilGivenUp()).toBe(4)
  })

  it('counts from the last progress where there is some', async () => {
    const madeProgressUntilMs = 1500
    expect(await attemptsUntilGivenUp(() => Math.min(nowMs, madeProgressUntilMs))).toBe(9)
  })
})
