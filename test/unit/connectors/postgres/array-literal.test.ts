import { describe, expect, it } from 'vitest'
import { arrayLiteral } from '../../../../src/connectors/postgres/array-literal.ts'

const TEXT = { typeOid: 25 }

describe('arrayLiteral', () => {
  it.each([
    ['[]', '{}'],
    ['[1, 12345678901234567890.10, -0]', '{1,12345678901234567890.10,-0}'],
    ['[null, "null", ""]', '{NULL,"null",""}'],
    ['["a,b", "{x}", "say \\"hi\\"", "back\\\\slash"]', '{"a,b","{x}","say \\"hi\\"","back\\\\slash"}'],
    ['["\\u00e9\\n"]', '{"é\n"}'],
    ['[[1,2],[3,null]]', '{{1,2},{3,NULL}}'],
    ['[{"a": {"b": [1, "}"]}}, true]', '{"{\\"a\\": {\\"b\\": [1, \\"}\\"]}}",true}'],
  ])('writes %s as %s', (json, literal) => {
    expect(arrayLiteral(json, TEXT)).toBe(literal)
  })

  it('takes elements of bytea from base64', () => {
    expect(arrayLiteral('["AP8="]', { typeOid: 17 })).toBe(String.raw`{"\\x00ff"}`)
  })
})
