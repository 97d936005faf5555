import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { WakeUps } from '../../../src/core/wake-ups.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('wakes those who wait now, and not those who wait again', async () => {
  const changes = new WakeUps()
  const woken: string[] = []
  const first = changes.next().then(() => woken.push('a'))
  changes.wake()
  void changes.next().then(() => woken.push('b'))
  await first
  expect(woken).toEqual(['a'])
  changes.wake()
  await vi.waitFor(() => expect(woken).toEqual(['a', 'b']))
})

it('waits for so long at most, and leaves no timer behind', async () => {
  const changes = new WakeUps()
  const woken: string[] = []
  void changes.next(1000).then(() => woken.push('by time'))
  const early = changes.next(5000).then(() => woken.push('by a change'))
  await vi.advanceTimersByTimeAsync(999)
  expect(woken).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(woken).toEqual(['by time'])
  changes.wake()
  await early
  expect(woken).toEqual(['by time', 'by a change'])
  expect(vi.getTimerCount()).toBe(0)
})
