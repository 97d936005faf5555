import { describe, expect, it } from 'vitest'
import { arrayLiteral } from '../../../../../src/connectors/postgres/load/array-literal.ts'

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

  it.each([
    ['["x", "5", "null", 5, null]', String.raw`{"\"x\"","\"5\"","\"null\"",5,NULL}`],
    ['[[1, [2]], {"a": "]"}, true]', String.raw`{"[1, [2]]","{\"a\": \"]\"}",true}`],
    ['["{\\"a\\": 1}", "[not json"]', String.raw`{"{\"a\": 1}","\"[not json\""}`],
  ])('takes elements of json as JSON values: %s', (json, literal) => {
    for (const typeOid of [114, 3802]) expect(arrayLiteral(json, { typeOid })).toBe(literal)
  })

  it('takes JSON documents as they are: their null is not NULL, their strings are strings', () => {
    const json = String.raw`[null,null,"{\"a\": 1}",{"b":null}]`
    for (const typeOid of [114, 3802])
      expect(arrayLiteral(json, { typeOid }, [1])).toBe(String.raw`{NULL,"null","\"{\\\"a\\\": 1}\"","{\"b\":null}"}`)
    expect(arrayLiteral('[null,"null"]', TEXT, [0])).toBe('{NULL,"null"}')
  })

  it('parts boxes by semicolons, as PostgreSQL does', () => {
    expect(arrayLiteral('["(1,1),(0,0)",null]', { typeOid: 603 })).toBe('{"(1,1),(0,0)";NULL}')
  })

  it('takes elements of bytea from base64', () => {
    expect(arrayLiteral('["AP8="]', { typeOid: 17 })).toBe(String.raw`{"\\x00ff"}`)
  })
})
