import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { AdaptiveLimiter } from '../../../src/core/limiter.ts'

let nowMs = 0
beforeEach(() => {
  nowMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
})
afterEach(() => vi.restoreAllMocks())

/** A server that does so many units a second at a given number in flight; runs the limiter for some windows. */
function drive(limiter: AdaptiveLimiter, unitsPerMs: (inFlight: number) => number, windows: number): number[] {
  const limits: number[] = []
  for (let i = 0; i < windows; i += 1) {
    const { limit } = limiter
    const each = 100
    const tookMs = (each * limit * 2) / unitsPerMs(limit)
    nowMs += tookMs
    for (let done = 0; done < limit * 2; done += 1) limiter.completed(each, tookMs / 2)
    limits.push(limiter.limit)
  }
  return limits
}

describe('AdaptiveLimiter', () => {
  it('grows while throughput grows', () => {
    const limiter = new AdaptiveLimiter({ initial: 1, min: 1, max: 8 })
    drive(limiter, (inFlight) => inFlight, 60)
    expect(limiter.limit).toBe(8)
  })

  it('stays where more bring nothing', () => {
    const limiter = new AdaptiveLimiter({ initial: 2, min: 1, max: 32 })
    const limits = drive(limiter, (inFlight) => Math.min(4, inFlight), 400)
    const last = limits.slice(-200)
    expect(Math.max(...last)).toBeLessThanOrEqual(5)
    expect(last.filter((limit) => limit === 4).length).toBeGreaterThan(150)
  })

  it('does not wander up where rates swing by a tenth', () => {
    const limiter = new AdaptiveLimiter({ initial: 2, min: 1, max: 16 })
    let state = 7
    const swing = (): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return 0.9 + (state / 0x7fffffff) * 0.2
    }
    const limits = drive(limiter, (inFlight) => Math.min(2, inFlight) * swing(), 400)
    expect(Math.max(...limits)).toBeLessThanOrEqual(4)
    expect(limits.filter((limit) => limit < 2)).toEqual([])
  })

  it('takes a higher latency for usual after a while, and has as many in flight as help', () => {
    const limiter = new AdaptiveLimiter({ initial: 2, min: 1, max: 4 })
    drive(limiter, (inFlight) => Math.min(2, inFlight), 20)
    drive(limiter, (inFlight) => Math.min(2, inFlight) / 4, 100)
    expect(drive(limiter, (inFlight) => Math.min(2, inFlight) / 4, 100).filter((limit) => limit < 2)).toEqual([])
  })

  it('keeps a fixed number where min is max', () => {
    const limiter = new AdaptiveLimiter({ initial: 3, min: 3, max: 3 })
    limiter.throttled()
    expect(new Set(drive(limiter, (inFlight) => inFlight, 50))).toEqual(new Set([3]))
  })

  it('keeps to its bounds whatever it is asked to begin with', () => {
    expect(new AdaptiveLimiter({ initial: 100, min: 1, max: 8 }).limit).toBe(8)
    expect(new AdaptiveLimiter({ initial: 0, min: 0, max: 0 }).limit).toBe(1)
  })

  it('cuts to 70 % where it is throttled, once a second, never below its minimum', () => {
    nowMs = 5000
    const limiter = new AdaptiveLimiter({ initial: 10, min: 6, max: 20 })
    limiter.throttled()
    limiter.throttled()
    expect(limiter.limit).toBe(7)
    nowMs += 1001
    limiter.throttled()
    expect(limiter.limit).toBe(6)
  })

  it('takes one away where latency doubles without a gain', () => {
    const limiter = new AdaptiveLimiter({ initial: 4, min: 1, max: 5 })
    drive(limiter, () => 4, 3)
    const before = limiter.limit
    drive(limiter, () => 0.5, 1)
    expect(limiter.limit).toBeLessThan(before)
  })

  it('tells of changes', async () => {
    const limiter = new AdaptiveLimiter({ initial: 10, min: 1, max: 20 })
    nowMs = 5000
    const told = limiter.changed()
    limiter.throttled()
    await told
    expect(limiter.limit).toBe(7)
  })

  it('runs no more at once than its limit, and all in the end, whether they fail or not', async () => {
    const limiter = new AdaptiveLimiter({ initial: 3, min: 3, max: 3 })
    let running = 0
    let most = 0
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) =>
        limiter.run(
          async () => {
            running += 1
            most = Math.max(most, running)
            for (let tick = 0; tick <= i % 4; tick += 1) await Promise.resolve()
            running -= 1
            if (i % 5 === 0) throw new Error('failed')
            return i
          },
          () => 1,
        ),
      ),
    )
    expect(most).toBe(3)
    expect(limiter.inFlight).toBe(0)
    expect(results.filter((result) => result.status === 'rejected')).toHaveLength(10)
  })

  it('begins in the order of asking', async () => {
    const limiter = new AdaptiveLimiter({ initial: 1, min: 1, max: 1 })
    const order: number[] = []
    const run = (i: number) =>
      limiter.run(
        () => Promise.resolve(order.push(i)),
        () => 1,
      )
    await Promise.all([0, 1, 2, 3, 4].map(run))
    expect(order).toEqual([0, 1, 2, 3, 4])
  })
})
