import { describe, expect, it } from 'vitest'
import type { Partition, Receipt } from '../../../src/core/job.ts'
import { Deal, type Gap } from '../../../src/engine/deal.ts'
import type { LoadedExtent } from '../../../src/engine/extent-builder.ts'
import { memoryPosition, memoryReceipt } from '../../support/memory-ends.ts'

const signal = new AbortController().signal
const partition = (id: string): Partition => ({ id, url: `memory:${id}`, bytes: null, state: null })
const P0 = partition('p0')

async function gapsOf(sealed: readonly Receipt[], partitions: readonly Partition[] = [P0]): Promise<Gap[]> {
  const deal = new Deal(partitions, sealed, 1)
  const gaps: Gap[] = []
  for (let gap = await deal.takeGap(signal); gap !== null; gap = await deal.takeGap(signal)) {
    gaps.push(gap)
    deal.gapRead(gap)
  }
  return gaps
}

const loaded = (from: number, until: number, last = false): LoadedExtent => ({
  extent: memoryReceipt('p0', from, until, { last }).extent,
  batches: [],
})
const receiptOf = ({ extent }: LoadedExtent): Receipt => ({
  extent,
  durable: true,
  rowsWritten: extent.rows,
  bytesWritten: 0,
  state: null,
})

/** Whether a promise is settled by the time that everything queued before has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  void promise.finally(() => (settled = true)).catch(() => undefined)
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

describe('what Deal finds to be read', () => {
  it('is everything where nothing is sealed, in the order of the partitions', async () => {
    const gaps = await gapsOf([], [P0, partition('p1')])
    expect(gaps.map((gap) => [gap.partition.id, gap.from, gap.until, gap.last])).toEqual([
      ['p0', undefined, undefined, true],
      ['p1', undefined, undefined, true],
    ])
  })

  it.each([
    ['the end', [memoryReceipt('p0', 0, 5, { last: false })], [[5, undefined, true]]],
    ['the beginning', [memoryReceipt('p0', 5, 9, { last: true })], [[undefined, 5, false]]],
    [
      'the middle',
      [memoryReceipt('p0', 7, 9, { last: true }), memoryReceipt('p0', 0, 5, { last: false })],
      [[5, 7, false]],
    ],
    ['nothing', [memoryReceipt('p0', 0, 5, { last: false }), memoryReceipt('p0', 5, 9, { last: true })], []],
    ['nothing of an empty partition', [memoryReceipt('p0', 0, 0, { last: true })], []],
    [
      'what two that overlap leave',
      [memoryReceipt('p0', 0, 8, { last: false }), memoryReceipt('p0', 2, 4, { last: false })],
      [[8, undefined, true]],
    ],
  ] as const)('is %s', async (_, sealed, expected) => {
    const gaps = await gapsOf(sealed)
    expect(gaps.map((gap) => [gap.from?.row, gap.until?.row, gap.last])).toEqual(expected)
  })

  it('does not take a header for rows that are missing', async () => {
    const receipt = memoryReceipt('p0', 0, 5, { last: true })
    const afterHeader = { ...receipt, extent: { ...receipt.extent, start: { byte: 12, row: 0, line: 1 } } }
    expect(await gapsOf([afterHeader])).toEqual([])
  })

  it('ignores receipts of partitions that the job does not have', async () => {
    expect(await gapsOf([memoryReceipt('other', 0, 5, { last: true })])).toHaveLength(1)
  })
})

describe('Deal', () => {
  it('lets a reader wait until there is room', async () => {
    const deal = new Deal([P0], [], 1)
    await deal.offer(loaded(0, 1), signal)
    const second = deal.offer(loaded(1, 2), signal)
    expect(await isSettled(second)).toBe(false)
    expect(await deal.take(signal, () => true)).toEqual(loaded(0, 1))
    await second
    expect(await deal.take(signal, () => true)).toEqual(loaded(1, 2))
  })

  it('deals what a broken lane had before all else', async () => {
    const deal = new Deal([P0], [], 2)
    await deal.offer(loaded(0, 1), signal)
    await deal.offer(loaded(1, 2), signal)
    const first = await deal.take(signal, () => true)
    expect(deal.writing).toBe(1)
    if (first !== null) deal.putBack(first)
    expect(deal.writing).toBe(0)
    expect(await deal.take(signal, () => true)).toEqual(loaded(0, 1))
  })

  it('gives a lane nothing that it may not take yet', async () => {
    const deal = new Deal([P0], [], 1)
    await deal.offer(loaded(0, 1), signal)
    let may = false
    const taking = deal.take(signal, () => may)
    expect(await isSettled(taking)).toBe(false)
    may = true
    deal.wakeAll()
    expect(await taking).toEqual(loaded(0, 1))
  })

  it('holds a partition complete once all is read and sealed, in whatever order the two end', async () => {
    const readFirst = new Deal([P0], [], 1)
    const gap = await readFirst.takeGap(signal)
    if (gap === null) throw new Error('no gap')
    await readFirst.offer(loaded(0, 1, true), signal)
    expect(readFirst.gapRead(gap)).toBe(false)
    await readFirst.take(signal, () => true)
    expect(readFirst.sealed(receiptOf(loaded(0, 1, true)))).toBe(true)

    const sealedFirst = new Deal([P0], [], 1)
    const same = await sealedFirst.takeGap(signal)
    if (same === null) throw new Error('no gap')
    await sealedFirst.offer(loaded(0, 1, true), signal)
    await sealedFirst.take(signal, () => true)
    expect(sealedFirst.sealed(receiptOf(loaded(0, 1, true)))).toBe(false)
    expect(sealedFirst.gapRead(same)).toBe(true)
    expect(sealedFirst.complete()).toEqual([P0])
  })

  it('has what was lost read again, up to where the next begins, and its receipt no longer counts', async () => {
    const receipts = [memoryReceipt('p0', 0, 5, { last: false }), memoryReceipt('p0', 5, 9, { last: true })]
    const deal = new Deal([P0], receipts, 1)
    expect(await deal.takeGap(signal)).toBeNull()
    deal.voided(receipts.map((receipt) => receipt.extent))
    expect(deal.receipts()).toEqual([])
    expect(deal.complete()).toEqual([])
    expect(await deal.takeGap(signal)).toMatchObject({ from: memoryPosition(0), until: memoryPosition(5), last: false })
    expect(await deal.takeGap(signal)).toMatchObject({ from: memoryPosition(5), until: undefined, last: true })
  })

  it('numbers extents on from what earlier runs left', () => {
    const sealed = { ...memoryReceipt('p0', 0, 5, { last: false }) }
    const deal = new Deal([P0], [{ ...sealed, extent: { ...sealed.extent, sequence: 7 } }], 1)
    expect([deal.nextSequence('p0'), deal.nextSequence('p0')]).toEqual([8, 9])
  })

  it('is idle once nothing waits for a lane and no lane holds anything', async () => {
    const deal = new Deal([P0], [], 1)
    await deal.takeGap(signal)
    await deal.idle(signal)
    await deal.offer(loaded(0, 1), signal)
    const idle = deal.idle(signal)
    expect(await isSettled(idle)).toBe(false)
    const taken = await deal.take(signal, () => true)
    expect(await isSettled(idle)).toBe(false)
    if (taken !== null) deal.sealed(receiptOf(taken))
    expect(await isSettled(idle)).toBe(true)
  })

  it('lets everyone who waits go when the job is aborted', async () => {
    const controller = new AbortController()
    const deal = new Deal([P0], [], 1)
    await deal.takeGap(controller.signal)
    await deal.offer(loaded(0, 1), controller.signal)
    const waiting = [
      deal.takeGap(controller.signal),
      deal.offer(loaded(1, 2), controller.signal),
      deal.take(controller.signal, () => false),
    ]
    const settled = Promise.allSettled(waiting)
    const reason = new Error('stop')
    controller.abort(reason)
    deal.wakeAll()
    expect((await settled).map((result) => (result.status === 'rejected' ? result.reason : null))).toEqual([
      reason,
      reason,
      reason,
    ])
  })
})
