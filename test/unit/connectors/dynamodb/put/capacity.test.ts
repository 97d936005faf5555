import { expect, it } from 'vitest'
import { CapacityBudget } from '../../../../../src/connectors/dynamodb/put/capacity.ts'

/** Units consumed in a minute of a made-up clock, where each put costs so many. */
function consumedInAMinute(unitsPerSecond: number, unitsPerPut: number): number {
  let nowMs = 0
  let used = 0
  const budget = new CapacityBudget(unitsPerSecond)
  while (nowMs < 60_000) {
    const waitMs = budget.waitMs(nowMs)
    if (waitMs > 0) {
      nowMs += waitMs
      continue
    }
    const estimate = budget.take(25)
    used += 25 * unitsPerPut
    budget.consumed(estimate, 25 * unitsPerPut, 25)
    nowMs += 1
  }
  return used
}

it.each([
  [100, 1],
  [1000, 1],
  [1000, 3],
  [5000, 8],
])('keeps to %d units a second within 5 %%, at %d a put', (unitsPerSecond, unitsPerPut) => {
  const used = consumedInAMinute(unitsPerSecond, unitsPerPut)
  expect(used).toBeGreaterThan(unitsPerSecond * 60 * 0.95)
  expect(used).toBeLessThan(unitsPerSecond * 60 * 1.05)
})

it('saves one second at most', () => {
  const budget = new CapacityBudget(100)
  expect(budget.waitMs(1)).toBe(0)
  budget.take(1)
  expect(budget.waitMs(60_000)).toBe(0)
  budget.take(200)
  expect(budget.waitMs(60_000)).toBe(1000)
})

it('has nothing saved before the first request', () => {
  const budget = new CapacityBudget(100)
  expect(budget.waitMs(60_000)).toBe(0)
  budget.take(200)
  expect(budget.waitMs(60_000)).toBe(2000)
})

it.each([2, 8])(
  '%d threads with a cell in common keep to the units together, however unequal their work is',
  (threads) => {
    const unitsPerSecond = 1000
    const cell = new BigInt64Array(new SharedArrayBuffer(8))
    const budgets = Array.from({ length: threads }, () => new CapacityBudget(unitsPerSecond, cell))
    let used = 0
    for (let nowMs = 0; nowMs < 60_000; nowMs += 1)
      for (const [i, budget] of budgets.entries()) {
        // The first always has something to send, the last hardly ever.
        if (nowMs % (i * 10 + 1) !== 0 || budget.waitMs(nowMs) > 0) continue
        const units = 25 * (i + 1)
        used += units
        budget.consumed(budget.take(25), units, 25)
      }
    expect(used).toBeGreaterThan(unitsPerSecond * 60 * 0.95)
    expect(used).toBeLessThan(unitsPerSecond * 60 * 1.05)
  },
)
