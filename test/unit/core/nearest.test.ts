import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { editDistance, nearest } from '../../../src/core/nearest.ts'

describe('nearest', () => {
  it.each([
    ['delimter', 'delimiter'],
    ['delimeter', 'delimiter'],
    ['cpoy', 'copy'],
    ['sourceformat', 'source-format'],
    ['conc', 'concurrency'],
    ['xyzzy', null],
    ['z', null],
  ])('%s', (word, meant) => {
    expect(nearest(word, ['delimiter', 'copy', 'source-format', 'concurrency', 'compression', 'quote'])).toBe(meant)
  })

  it('is the word itself where that is there', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.stringMatching(/^[a-z-]{1,20}$/), { minLength: 1 }), (words) => {
        expect(nearest(words[0] ?? '', words)).toBe(words[0])
      }),
    )
  })
})

describe('editDistance', () => {
  it('is 0 for the same word only, symmetric, and no more than the longer word', () => {
    const word = fc.stringMatching(/^[ab-]{0,8}$/)
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b)
        expect(distance === 0).toBe(a === b)
        expect(distance).toBe(editDistance(b, a))
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length))
      }),
    )
  })
})
