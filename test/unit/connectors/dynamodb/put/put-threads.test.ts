import { describe, expect, it } from 'vitest'
import { inFlightOf, threadsFor } from '../../../../../src/connectors/dynamodb/put/put-threads.ts'

describe('how many threads', () => {
  it.each([
    ['0: none', { workers: 0 }, 8, { count: 0, when: 'never' }],
    ['as many as said', { workers: 5 }, 2, { count: 5, when: 'always' }],
    ['no more than requests may be in flight', { workers: 5, concurrency: 3 }, 8, { count: 3, when: 'always' }],
    ['auto on two cores: none', {}, 2, { count: 0, when: 'never' }],
    ['auto: a core each, but for the main thread', {}, 4, { count: 3, when: 'busy' }],
    ['auto: 8 at most', { workers: 'auto' as const }, 64, { count: 8, when: 'busy' }],
    ['auto, where keys are remembered', { dedupe: 'error' as const }, 8, { count: 0, when: 'never' }],
  ])('%s', (_, options, cores, wanted) => {
    expect(threadsFor(options, cores)).toEqual(wanted)
  })
})

it('--concurrency holds for all threads together', () => {
  for (const [concurrency, sharers] of [
    [1, 1],
    [7, 3],
    [8, 8],
    [100, 6],
  ] as const) {
    const all = Array.from({ length: sharers }, (_, index) => inFlightOf(concurrency, { sharers, index }))
    expect(all.reduce((sum, one) => sum + one.max, 0)).toBe(concurrency)
    for (const { initial, min, max } of all) expect([initial, min]).toEqual([max, max])
  }
})

it('where nobody says, more threads begin with more, within a bound', () => {
  for (const sharers of [1, 2, 8, 200]) {
    const { initial, min, max } = inFlightOf(null, { sharers, index: 0 })
    expect(initial).toBeGreaterThanOrEqual(min)
    expect(initial).toBeLessThanOrEqual(inFlightOf(null, { sharers: 1, index: 0 }).initial)
    expect(initial * sharers).toBeLessThanOrEqual(Math.max(max, sharers))
  }
})
