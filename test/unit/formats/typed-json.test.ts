import { describe, expect, it } from 'vitest'
import { createCsvEncoder } from '../../../src/formats/csv/csv-encoder.ts'
import { createJsonLinesEncoder } from '../../../src/formats/jsonl/jsonl-encoder.ts'
import { jsonNumber, type LostTypes, plainJson } from '../../../src/formats/typed-json.ts'
import type { Batch, Value } from '../../../src/core/batch.ts'

const START = { byte: 0, row: 0, line: 0 }
const batch = (columns: readonly string[], rows: readonly (readonly Value[])[]): Batch => ({
  form: 'rows',
  columns,
  rows,
  places: rows.map((_, i) => ({ row: i + 1, line: i + 1, byte: i })),
  start: START,
  end: START,
  mayEnd: true,
  sourceBytes: 100,
  filtered: 0,
})
const typed = (text: string): Value => ({ kind: 'typed-json', text })

describe('plainJson', () => {
  it('makes sets arrays, binary base64, and keeps numbers exact', () => {
    const lost: LostTypes = new Map()
    const text =
      '{"M":{"a":{"L":[{"N":"12345678901234567890.5"},{"S":"x\\"\\n"},{"NULL":true},{"BOOL":false},{"B":"AQI="}]},"s":{"SS":["b","a"]},"n":{"NS":["1","2.50"]},"b":{"BS":["AQ=="]},"__proto__":{"M":{}}}}'
    expect(plainJson(text, lost)).toBe(
      '{"a":[12345678901234567890.5,"x\\"\\n",null,false,"AQI="],"s":["b","a"],"n":[1,2.50],"b":["AQ=="],"__proto__":{}}',
    )
    expect(Object.fromEntries(lost)).toEqual({ B: 1, SS: 1, NS: 1, BS: 1 })
  })

  it.each([
    '{"X":1}',
    '{"S":1}',
    '{"S":"a","N":"1"}',
    '[]',
    '{"NS":[1]}',
    '{"L":["a"]}',
    '{"N":"one"}',
    '{"NULL":false}',
    '{',
  ])('refuses %s', (text) => {
    expect(() => plainJson(text)).toThrow(expect.objectContaining({ code: 'SLUICE_JSON' }) as Error)
  })

  it('writes numbers that JSON has no form of by the same value', () => {
    expect(['+1', '007', '.5', '5.', '-0.10E+2', '1E-130'].map(jsonNumber)).toEqual([
      '1',
      '7',
      '0.5',
      '5',
      '-0.10E+2',
      '1E-130',
    ])
    expect(['', '.', 'e1', '1x', 'NaN', '0x1'].map(jsonNumber)).toEqual([null, null, null, null, null, null])
  })
})

describe('encoders', () => {
  const rows = batch(['id', 'tags', 'bin'], [['a', typed('{"SS":["x","y"]}'), Uint8Array.of(1, 2)]])

  it('JSON Lines and CSV hold plain JSON, and count what lost its type', () => {
    const jsonl = createJsonLinesEncoder({ columns: ['id', 'tags', 'bin'] })
    expect(Buffer.from(jsonl.encode(rows)).toString()).toBe('{"id":"a","tags":["x","y"],"bin":"AQI="}\n')
    expect([...(jsonl.lost?.() ?? [])]).toEqual([
      ['SS', 1],
      ['B', 1],
    ])
    const csv = createCsvEncoder({ columns: ['id', 'tags', 'bin'] })
    expect(Buffer.from(csv.encode(rows)).toString()).toBe('id,tags,bin\na,"[""x"",""y""]",AQI=\n')
    expect([...(csv.lost?.() ?? [])].length).toBe(2)
  })
})
