import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { byteSize, type Batch } from '../../../src/core/batch.ts'
import { START, type Partition, type Position } from '../../../src/core/job.ts'
import { ExtentBuilder, type LoadedExtent } from '../../../src/engine/extent-builder.ts'
import { memoryBatch, memoryPosition } from '../../support/memory-ends.ts'

const partition: Partition = { id: 'p0', url: 'memory:p0', bytes: null, state: null }

interface How {
  readonly targetBytes: number
  readonly exact: boolean
  readonly last?: boolean
  readonly start?: Position
}

function build(batches: readonly Batch[], how: How): LoadedExtent[] {
  let next = 0
  const builder = new ExtentBuilder(partition, how, { nextSequence: () => next++, start: how.start ?? START })
  return [...batches.flatMap((batch) => [...builder.add(batch)]), ...builder.finish(how.last ?? true)]
}

function rowBatches(sizes: readonly number[]): Batch[] {
  let row = 0
  return sizes.map((size) => {
    row += size
    return memoryBatch('p0', row - size, row)
  })
}

function bytesBatches(sizes: readonly number[]): Batch[] {
  let byte = 0
  return sizes.map((size) => {
    const bytes = Uint8Array.from({ length: size }, (_, i) => byte + i)
    byte += size
    return { form: 'bytes', bytes, start: { ...START, byte: byte - size }, end: { ...START, byte }, mayEnd: true }
  })
}

const bytesOf = (batches: readonly Batch[]): Buffer =>
  Buffer.concat(batches.map((batch) => ('bytes' in batch ? batch.bytes : new Uint8Array())))

/** What holds of all extents of a partition, whatever it holds. */
function expectChain(extents: readonly LoadedExtent[], last: boolean): void {
  expect(extents.map(({ extent }) => extent.sequence)).toEqual(extents.map((_, i) => i))
  expect(extents.map(({ extent }) => extent.last)).toEqual(extents.map((_, i) => last && i === extents.length - 1))
  for (const [i, { extent, batches }] of extents.entries()) {
    if (i > 0) expect(extent.start).toEqual(extents[i - 1]?.extent.end)
    expect(extent.bytes).toBe(batches.reduce((sum, batch) => sum + byteSize(batch), 0))
    if (batches.length > 0) expect([extent.start, extent.end]).toEqual([batches[0]?.start, batches.at(-1)?.end])
  }
}

const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 20 })

describe('ExtentBuilder', () => {
  it('loses and doubles nothing, whatever the sizes, and marks the last', () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 400 }), fc.boolean(), (list, targetBytes, last) => {
        const batches = rowBatches(list)
        const extents = build(batches, { targetBytes, exact: false, last })
        expectChain(extents, last)
        expect(extents.flatMap((one) => one.batches)).toEqual(batches)
        for (const { extent } of extents.slice(0, -1)) expect(extent.bytes).toBeGreaterThanOrEqual(targetBytes)
        for (const { batches: own, extent } of extents)
          expect(extent.bytes - byteSize(own.at(-1) ?? memoryBatch('p0', 0, 0))).toBeLessThan(targetBytes)
      }),
    )
  })

  it('cuts parts of exactly the size that is asked for, save the last', () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 50 }), (list, targetBytes) => {
        const batches = bytesBatches(list)
        const extents = build(batches, { targetBytes, exact: true })
        expectChain(extents, true)
        expect(bytesOf(extents.flatMap((one) => one.batches)).equals(bytesOf(batches))).toBe(true)
        const total = bytesOf(batches).byteLength
        expect(extents.map(({ extent }) => extent.start.byte)).toEqual(extents.map((_, i) => i * targetBytes))
        expect(extents).toHaveLength(Math.max(1, Math.ceil(total / targetBytes)))
      }),
    )
  })

  it('gives one empty extent for an empty partition, and none for an empty gap in the middle', () => {
    const [only, ...rest] = build([], { targetBytes: 10, exact: false })
    expect(only).toEqual({
      batches: [],
      extent: { partition: 'p0', sequence: 0, start: START, end: START, rows: 0, filtered: 0, bytes: 0, last: true },
    })
    expect(rest).toEqual([])
    expect(build([], { targetBytes: 10, exact: false, last: false, start: memoryPosition(4) })).toEqual([])
  })

  it('puts the empty end of a partition where reading began', () => {
    const [only] = build([], { targetBytes: 10, exact: false, start: memoryPosition(4) })
    expect(only?.extent).toMatchObject({ start: memoryPosition(4), end: memoryPosition(4), last: true })
  })

  it('ends no extent where none may end', () => {
    const batches = rowBatches([1, 1, 1, 1]).map((batch, i) => ({ ...batch, mayEnd: i === 2 }))
    expect(build(batches, { targetBytes: 1, exact: false }).map(({ extent }) => extent.rows)).toEqual([3, 1])
  })

  it('counts the rows that a mapping left out', () => {
    const batches = [1, 2].map((filtered, i) => ({ ...memoryBatch('p0', i, i + 1), filtered }))
    expect(build(batches, { targetBytes: 1000, exact: false })[0]?.extent).toMatchObject({ rows: 2, filtered: 3 })
  })
})

describe('rows that a mapping left out', () => {
  /** A batch of CSV with so many rows left of ten. */
  const written = (from: number, rows: number): Batch => ({
    form: 'csv',
    bytes: Buffer.from('x\n'.repeat(rows)),
    rows,
    columns: ['name'],
    csv: { delimiter: ',', quote: '"', escape: '"' },
    quoted: false,
    filtered: 10 - rows,
    sourceBytes: 100,
    start: memoryPosition(from),
    end: memoryPosition(from + 10),
    mayEnd: true,
  })

  it('count as read, by the bytes that they had; a batch without rows is not dealt', () => {
    const extents = build([written(0, 4), written(10, 0), written(20, 0), written(30, 10)], {
      targetBytes: 200,
      exact: false,
    })
    expect(extents.map(({ extent: { rows, filtered, bytes } }) => [rows, filtered, bytes])).toEqual([
      [4, 16, 200],
      [10, 10, 200],
    ])
    expect(extents.map(({ batches }) => batches.length)).toEqual([1, 1])
    expect(extents.map(({ extent }) => [extent.start.row, extent.end.row])).toEqual([
      [0, 20],
      [20, 40],
    ])
  })

  it('are all that an extent may be of', () => {
    const [extent] = build([written(0, 0), written(10, 0)], { targetBytes: 1000, exact: false, last: false })
    expect(extent?.batches).toEqual([])
    expect(extent?.extent).toMatchObject({ rows: 0, filtered: 20, start: memoryPosition(0), end: memoryPosition(20) })
  })
})
