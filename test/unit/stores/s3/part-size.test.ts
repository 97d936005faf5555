import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { partBytes } from '../../../../src/stores/s3/part-size.ts'

const MIB = 1024 ** 2
const GIB = 1024 ** 3

describe('partBytes', () => {
  it.each([
    [0, null, 8 * MIB],
    [208_888_910, null, 8 * MIB],
    [80_000 * MIB, null, 8 * MIB],
    [80_000 * MIB + 1, null, 9 * MIB],
    [5 * 1024 * GIB, null, 525 * MIB],
    [100, 64 * MIB, 64 * MIB],
    [60 * GIB, 5 * MIB, 7 * MIB],
    [null, null, 16 * MIB],
    [null, 5 * MIB, 5 * MIB],
  ])('of %s bytes, %s wanted, is %i', (size, wanted, bytes) => {
    expect(partBytes(size, wanted)).toBe(bytes)
  })

  it('reaches 150 GB where the size is unknown', () => {
    expect(partBytes(null, null) * 10_000).toBeGreaterThan(150e9)
  })

  it.each([1, 5 * MIB - 1, 5 * GIB + 1, Number.NaN])('refuses a wish of %d', (wanted) => {
    expect(() => partBytes(null, wanted)).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })

  it.each([
    [208_888_910, 3, 27],
    [208_888_910, 2, 26],
    [208_888_910, 1, 25],
    [208_888_910, 0, 25],
    [24 * MIB, 3, 3],
    [32 * MIB, 3, 6],
    [24 * MIB, 2, 4],
    [12 * MIB, 2, 2],
    // Less than 5 MiB for each of them: as many as there are parts.
    [12 * MIB, 3, 2],
    [8 * MIB, 4, 1],
  ])('cuts %i bytes, %i parts in flight, into %i parts', (size, inFlight, parts) => {
    expect(Math.ceil(size / partBytes(size, null, inFlight))).toBe(parts)
  })

  it('leaves a wish alone, however many parts are in flight', () => {
    expect(partBytes(208_888_910, 8 * MIB, 3)).toBe(8 * MIB)
  })

  it('keeps every object that S3 can hold within 10,000 parts, and the limits of one', () => {
    const size = fc.integer({ min: 0, max: 50_000 * GIB })
    const wanted = fc.option(fc.integer({ min: 5 * MIB, max: 5 * GIB }))
    const inFlight = fc.integer({ min: 0, max: 64 })
    fc.assert(
      fc.property(size, wanted, inFlight, (bytes, wish, parts) => {
        const part = partBytes(bytes, wish, parts)
        expect(Math.ceil(bytes / part)).toBeLessThanOrEqual(10_000)
        expect(part).toBeGreaterThanOrEqual(wish ?? 5 * MIB)
        expect(part).toBeLessThanOrEqual(5 * GIB)
      }),
    )
  })
})
