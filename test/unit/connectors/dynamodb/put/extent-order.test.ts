import { expect, it } from 'vitest'
import { ExtentOrder } from '../../../../../src/connectors/dynamodb/put/extent-order.ts'

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('extents are written one at a time, and sealed in the same order', async () => {
  const order = new ExtentOrder(new AbortController().signal)
  const log: string[] = []
  const seals: (() => void)[] = []
  const writes: (() => void)[] = []
  for (const name of ['a', 'b', 'c'])
    void order.begin().then(() => {
      log.push(`write ${name}`)
      writes.push(() => {
        const { done, next } = order.written()
        void done.then(() => {
          log.push(`seal ${name}`)
          seals.push(next)
        })
      })
    })
  await settle()
  expect(log).toEqual(['write a'])
  writes[0]?.()
  await settle()
  writes[1]?.()
  await settle()
  // b is in, but a is not sealed.
  expect(log.filter((line) => line.startsWith('write'))).toEqual(['write a', 'write b', 'write c'])
  expect(log.filter((line) => line.startsWith('seal'))).toEqual(['seal a'])
  seals[0]?.()
  await settle()
  expect(log.at(-1)).toBe('seal b')
})

it('an abort ends every wait with its reason', async () => {
  const stop = new AbortController()
  const order = new ExtentOrder(stop.signal)
  await order.begin()
  const second = order.begin()
  const { done } = order.written()
  await done
  await second
  const third = order.begin()
  const { done: notYet } = order.written()
  await third
  const fourth = order.begin()
  stop.abort(new Error('enough'))
  await expect(fourth).rejects.toThrow('enough')
  await expect(notYet).rejects.toThrow('enough')
  await expect(order.begin()).rejects.toThrow('enough')
})
