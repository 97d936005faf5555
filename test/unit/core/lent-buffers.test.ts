import { describe, expect, it } from 'vitest'
import { BufferPool, LentSpace, giveBack } from '../../../src/core/lent-buffers.ts'
import { SluiceError } from '../../../src/core/errors.ts'

const BYTES = 1024

describe('a pool of buffers', () => {
  it('lends a buffer again once it is closed and every byte that was handed on came back', () => {
    const pool = new BufferPool(BYTES)
    const loan = pool.take()
    loan.lent(1000)
    giveBack(loan.buffer.subarray(0, 400))
    loan.close()
    expect(pool.take().buffer).not.toBe(loan.buffer)
    giveBack(loan.buffer.subarray(400, 1000))
    expect(pool.take().buffer).toBe(loan.buffer)
  })

  it('does not lend what is still read into, though all of it came back', () => {
    const pool = new BufferPool(BYTES)
    const loan = pool.take()
    loan.lent(10)
    giveBack(loan.buffer.subarray(0, 10))
    expect(pool.take().buffer).not.toBe(loan.buffer)
    loan.close()
    expect(pool.take().buffer).toBe(loan.buffer)
  })

  it('lends to one at a time, however often a loan is closed', () => {
    const pool = new BufferPool(BYTES)
    const loan = pool.take()
    loan.close()
    const next = pool.take()
    expect(next.buffer).toBe(loan.buffer)
    loan.close()
    expect(pool.take().buffer).not.toBe(next.buffer)
  })

  it('tells of bytes that are given back twice', () => {
    const loan = new BufferPool(BYTES).take()
    loan.lent(10)
    giveBack(loan.buffer.subarray(0, 10))
    expect(() => giveBack(loan.buffer.subarray(0, 10))).toThrow(SluiceError)
  })

  it('leaves bytes alone that are of no pool', () => {
    expect(() => giveBack(new Uint8Array(10))).not.toThrow()
  })

  it('keeps 128 MiB free at most', () => {
    const pool = new BufferPool(32 * 1024 * 1024)
    const loans = Array.from({ length: 5 }, () => pool.take())
    for (const loan of loans) loan.close()
    const again = new Set(Array.from({ length: 5 }, () => pool.take().buffer))
    expect(loans.filter((loan) => again.has(loan.buffer))).toHaveLength(4)
  })
})

describe('space for blocks', () => {
  it('lays them side by side in one buffer, and in the next where there is no room', () => {
    const space = new LentSpace(new BufferPool(BYTES))
    const first = space.room(600)
    space.handOn(400)
    const second = space.room(600)
    space.handOn(600)
    const third = space.room(100)
    expect(second.buffer).toBe(first.buffer)
    expect([first.byteOffset, second.byteOffset]).toEqual([0, 400])
    expect(third.buffer).not.toBe(first.buffer)
    expect(space.left).toBe(BYTES)
  })

  it('uses a buffer again once it is full and all blocks in it came back', () => {
    const space = new LentSpace(new BufferPool(BYTES))
    const first = space.room(700)
    space.handOn(700)
    const second = space.room(700)
    space.handOn(700)
    giveBack(first)
    const third = space.room(700)
    expect(second.buffer).not.toBe(first.buffer)
    expect(third.buffer).toBe(first.buffer)
  })

  it('lends nothing of a buffer anew before it is closed', () => {
    const pool = new BufferPool(BYTES)
    const space = new LentSpace(pool)
    const block = space.room(100)
    space.handOn(100)
    giveBack(block)
    expect(pool.take().buffer.buffer).not.toBe(block.buffer)
    space.close()
    expect(pool.take().buffer.buffer).toBe(block.buffer)
  })
})
