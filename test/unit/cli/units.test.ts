import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatShortCount,
  parseDuration,
  parseSize,
} from '../../../src/cli/units.ts'

describe('sizes', () => {
  it.each([
    ['0', 0],
    ['17', 17],
    ['17B', 17],
    ['1KB', 1000],
    ['1KiB', 1024],
    ['8MiB', 8 * 1024 * 1024],
    ['8mib', 8 * 1024 * 1024],
    ['1.5 GiB', 1.5 * 1024 ** 3],
    ['2GB', 2e9],
    ['3MB', 3e6],
  ])('%s', (text, bytes) => expect(parseSize(text, 'part-size')).toBe(bytes))

  it.each(['', 'MiB', '8M', '8 TiB', '-1', '1e3', '8MiB2', '0x10'])('refuses %j', (text) => {
    expect(() => parseSize(text, 'part-size')).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })
})

describe('durations', () => {
  it.each([
    ['0', 0],
    ['250ms', 250],
    ['90s', 90_000],
    ['5m', 300_000],
    ['1.5h', 5_400_000],
  ])('%s', (text, ms) => expect(parseDuration(text, 'retry-for')).toBe(ms))

  it.each(['', '5', 's', '5d', '-5s', '1m30s'])('refuses %j', (text) => {
    expect(() => parseDuration(text, 'retry-for')).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })
})

describe('for people', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [208_888_910, '199.2 MiB'],
    [5 * 1024 ** 4, '5.0 TiB'],
  ])('%d bytes', (bytes, text) => expect(formatBytes(bytes)).toBe(text))

  it.each([
    [0, '0.00s'],
    [950, '0.95s'],
    [2_340, '2.3s'],
    [9_960, '10s'],
    [61_500, '1m02s'],
    [3_599_900, '1h00m'],
    [7_260_000, '2h01m'],
  ])('%d ms', (ms, text) => expect(formatDuration(ms)).toBe(text))

  it('counts with commas', () => {
    fc.assert(
      fc.property(fc.nat({ max: Number.MAX_SAFE_INTEGER }), (count) => {
        expect(formatCount(count)).toBe(count.toLocaleString('en-US'))
      }),
    )
  })

  it('short counts are never longer than six characters below 999.4 billion', () => {
    fc.assert(fc.property(fc.nat({ max: 999_400_000_000 }), (count) => formatShortCount(count).length <= 6))
    expect([999, 1000, 9_949, 9_950, 999_499, 999_500, 3_400_000].map(formatShortCount)).toEqual([
      '999',
      '1.0k',
      '9.9k',
      '10k',
      '999k',
      '1.0M',
      '3.4M',
    ])
  })
})
