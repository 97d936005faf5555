import { describe, expect, it } from 'vitest'
import type { ColumnVector } from '../../../../src/core/batch.ts'
import { dictionaryPays } from '../../../../src/formats/parquet/dictionary-choice.ts'

const ROWS = 100_000

function ints(valueOf: (i: number) => number, validity: Uint8Array | null = null): ColumnVector {
  const values = new Uint8Array(Int32Array.from({ length: ROWS }, (_, i) => valueOf(i)).buffer)
  return { type: { kind: 'int32' }, length: ROWS, nulls: 0, validity, offsets: null, values, items: null }
}

function texts(list: readonly string[]): ColumnVector {
  const offsets = new Int32Array(list.length + 1)
  for (const [i, text] of list.entries()) offsets[i + 1] = (offsets[i] ?? 0) + Buffer.byteLength(text)
  const values = new Uint8Array(Buffer.from(list.join('')))
  return { type: { kind: 'utf8' }, length: list.length, nulls: 0, validity: null, offsets, values, items: null }
}

describe('dictionaryPays', () => {
  it('where values come again, and not where each is another one', () => {
    expect(dictionaryPays(ints((i) => i % 100))).toBe(true)
    expect(dictionaryPays(ints((i) => Math.imul(i, 2_654_435_761 | 0) >>> 20))).toBe(true)
    expect(dictionaryPays(ints((i) => i))).toBe(false)
  })

  it('for texts, by their bytes', () => {
    const rows = Array.from({ length: 5000 }, (_, i) => i)
    expect(dictionaryPays(texts(rows.map((i) => `city ${i % 40}`)))).toBe(true)
    expect(dictionaryPays(texts(rows.map((i) => `é ${i}`)))).toBe(false)
    expect(dictionaryPays(texts([]))).toBe(true)
  })

  it('looks at values that are there: what lies under a NULL does not count', () => {
    const even = new Uint8Array(ROWS / 8).fill(0b01010101)
    expect(dictionaryPays(ints((i) => (i % 2 === 0 ? 7 : i), even))).toBe(true)
  })
})
