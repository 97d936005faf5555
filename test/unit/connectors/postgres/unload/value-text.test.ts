import { describe, expect, it } from 'vitest'
import { parseArray } from '../../../../../src/connectors/postgres/unload/array-text.ts'
import { createRowParser } from '../../../../../src/connectors/postgres/unload/copy-rows.ts'
import { converterOf } from '../../../../../src/connectors/postgres/unload/value-text.ts'

const scalar = (baseTypeOid: number): ((text: string) => unknown) => converterOf({ baseTypeOid, element: null })
const array = (typeOid: number): ((text: string) => unknown) => converterOf({ baseTypeOid: 0, element: { typeOid } })

describe('values of text', () => {
  it.each<[string, number, string, unknown]>([
    ['an exact number', 1700, '-0.10', { kind: 'number', text: '-0.10' }],
    ['a float', 701, '1e-07', { kind: 'number', text: '1e-07' }],
    ['NaN', 700, 'NaN', 'NaN'],
    ['infinity', 1700, '-Infinity', '-Infinity'],
    ['a timestamp', 1114, '12020-01-02 03:04:05', '12020-01-02T03:04:05'],
    ['a timestamp before Christ', 1114, '0044-03-15 00:00:00 BC', '0044-03-15 00:00:00 BC'],
    ['a timestamp of a zone', 1184, '2020-01-02 03:04:05.5+05:30', '2020-01-02T03:04:05.5+05:30'],
    ['whole hours', 1184, '2020-01-02 03:04:05-08', '2020-01-02T03:04:05-08:00'],
    ['UTC', 1184, '2020-01-02 03:04:05+00', '2020-01-02T03:04:05Z'],
    ['local mean time', 1184, '1900-01-01 00:19:32+00:19:32', '1900-01-01T00:19:32+00:19:32'],
    ['json over lines', 114, '{\n\t"a" : "x\\ny" ,\r\n "b":1}', { kind: 'json', text: '{ "a" : "x\\ny" , "b":1}' }],
    ['text that looks like a number', 25, '12', '12'],
  ])('%s', (_, oid, text, expected) => {
    expect(scalar(oid)(text)).toEqual(expected)
  })

  it.each<[string, number, string, string]>([
    ['numbers', 1700, '{1.50,NaN,NULL}', '[1.50,"NaN",null]'],
    ['nested', 25, '{{a,"b c"},{"NULL",""}}', '[["a","b c"],["NULL",""]]'],
    ['json', 3802, '{"{\\"a\\": [1]}",NULL}', '[{"a": [1]},null]'],
    ['bytea', 17, '{"\\\\x00ff"}', '["AP8="]'],
    ['boxes', 603, '{(2,2),(1,1);(4,4),(3,3)}', '["(2,2),(1,1)","(4,4),(3,3)"]'],
    ['none', 16, '{}', '[]'],
  ])('an array: %s', (_, oid, text, expected) => {
    expect(array(oid)(text)).toEqual({ kind: 'json', text: expected })
    expect(JSON.parse(expected)).toBeInstanceOf(Array)
  })

  it.each<[string, number, string, string]>([
    ['that counts from 0', 23, '[0:1]={1,2}', 'an array whose first index is not 1 ([0:1])'],
    ['of dimensions with bounds', 23, '[1:1][-2:-1]={{1,2}}', 'an array whose first index is not 1 ([1:1][-2:-1])'],
    ["of json with JSON's null", 3802, '{1,null,NULL}', "an array that holds JSON's null, which is not NULL,"],
    ['of json of dimensions', 114, '{{1},{2}}', 'an array of json of several dimensions'],
  ])('an array %s is special', (_, oid, text, what) => {
    expect(array(oid)(oid === 3802 ? text.replace('null', '"null"') : text)).toEqual({ kind: 'special', what })
  })

  it("JSON's null is special, for NULL is the same in JSON", () => {
    for (const oid of [114, 3802])
      expect(scalar(oid)(' null ')).toEqual({ kind: 'special', what: "JSON's null, which is not NULL," })
    expect(scalar(114)('"null"')).toEqual({ kind: 'json', text: '"null"' })
  })

  it.each(['', '{', '{1', '{1,', '{"a}', '{1}x', '1'])('%j is no array', (text) => {
    expect(parseArray(text)).toBeNull()
  })
})

describe('rows of the text format', () => {
  const types = [25, 23, 25].map((baseTypeOid) => ({ name: 'x', baseTypeOid, element: null }))
  const parse = createRowParser(types)

  it('tells NULL, empty and escaped apart, and says where each row begins', () => {
    const bytes = Buffer.from('ä\t1\t\\N\n\\\\N\t\\N\t\na\\tb\\nc\\\\d\\x\t-2\t~\n')
    const { rows, places } = parse({ bytes, rows: 3 }, { byte: 100, row: 7, line: 7 })
    expect(rows).toEqual([
      ['ä', { kind: 'number', text: '1' }, null],
      ['\\N', null, ''],
      ['a\tb\nc\\dx', { kind: 'number', text: '-2' }, '~'],
    ])
    expect(places).toEqual([
      { row: 8, line: 8, byte: 100 },
      { row: 9, line: 9, byte: 108 },
      { row: 10, line: 10, byte: 116 },
    ])
  })

  it('refuses what JSON has no form for, with row and column, or makes it NULL, or its own text', () => {
    const columns = [
      { name: 'id', baseTypeOid: 23, element: null },
      { name: 'a', baseTypeOid: 1007, element: { typeOid: 23 } },
      { name: 'j', baseTypeOid: 3802, element: null },
    ]
    const block = { bytes: Buffer.from('1\t{1}\t{}\n2\t[0:1]={1,2}\tnull\n'), rows: 2 }
    const at = { byte: 0, row: 40, line: 40 }
    const read = (onSpecial?: 'error' | 'null' | 'text', nulls: string[] = []): unknown =>
      createRowParser(columns, onSpecial && { onSpecial, onNull: (name) => nulls.push(name) })(block, at).rows[1]
    expect(() => read()).toThrow(
      expect.objectContaining({
        code: 'SLUICE_VALUE',
        message: 'an array whose first index is not 1 ([0:1]) has no form in JSON',
        where: { row: 42, column: 'a' },
      }),
    )
    const nulls: string[] = []
    expect(read('null', nulls)).toEqual([{ kind: 'number', text: '2' }, null, null])
    expect(nulls).toEqual(['a', 'j'])
    expect(read('text')).toEqual([{ kind: 'number', text: '2' }, '[0:1]={1,2}', 'null'])
  })

  it('reads rows without columns', () => {
    expect(createRowParser([])({ bytes: Buffer.from('\n\n'), rows: 2 }, { byte: 0, row: 0, line: 0 }).rows).toEqual([
      [],
      [],
    ])
  })
})

describe('a text of many MiB', () => {
  it.each([0, 1, 2, 3])('is unescaped in pieces that part no escape: %i characters before', (before) => {
    const escaped = 'x'.repeat(before) + String.raw`\n\\\\\\y\\n`.repeat(300_000)
    const value = 'x'.repeat(before) + '\n\\\\\\y\\n'.repeat(300_000)
    const parse = createRowParser([{ name: 'a', baseTypeOid: 25, element: null }])
    const { rows } = parse({ bytes: Buffer.from(`${escaped}\n`), rows: 1 }, { byte: 0, row: 0, line: 0 })
    expect(rows.flat().map((one) => one === value)).toEqual([true])
  })
})
