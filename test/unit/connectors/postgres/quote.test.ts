import { describe, expect, it } from 'vitest'
import { quoteIdentifier, quoteLiteral, quoteTable } from '../../../../src/connectors/postgres/quote.ts'

describe('quoting', () => {
  it('doubles what would end the text', () => {
    expect(quoteIdentifier('a"b')).toBe('"a""b"')
    expect(quoteLiteral("it's")).toBe("'it''s'")
    expect(quoteTable({ schema: 'S', name: 'order' })).toBe('"S"."order"')
  })

  it('means the same under any standard_conforming_strings where there is a backslash', () => {
    expect(quoteLiteral("a\\'b")).toBe(" E'a\\\\''b'")
  })
})
