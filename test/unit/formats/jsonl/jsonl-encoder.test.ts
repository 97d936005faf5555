import { describe, expect, it } from 'vitest'
import type { RowsBatch, Value } from '../../../../src/core/batch.ts'
import { START } from '../../../../src/core/job.ts'
import { createJsonLinesEncoder } from '../../../../src/formats/jsonl/jsonl-encoder.ts'

const number = (text: string): Value => ({ kind: 'number', text })
const json = (text: string): Value => ({ kind: 'json', text })

function batch(columns: readonly string[], rows: readonly (readonly Value[])[]): RowsBatch {
  return {
    form: 'rows',
    columns,
    rows,
    places: rows.map((_, i) => ({ row: i + 1, line: i + 1, byte: i })),
    sourceBytes: 0,
    filtered: 0,
    start: START,
    end: START,
    mayEnd: true,
  }
}

function encode(columns: readonly string[], ...rows: (readonly Value[])[]): string {
  const encoder = createJsonLinesEncoder({ columns })
  return Buffer.from(encoder.encode(batch(columns, rows))).toString() + Buffer.from(encoder.end()).toString()
}

describe('createJsonLinesEncoder', () => {
  it('writes one object a line, undefined left out', () => {
    expect(encode(['a', 'b"é'], ['x', null], [undefined, true], [undefined, undefined])).toBe(
      '{"a":"x","b\\"é":null}\n{"b\\"é":true}\n{}\n',
    )
  })

  it('writes numbers bare by their own text', () => {
    for (const text of ['0', '-0', '1.10', '1e+20', '9'.repeat(400)])
      expect(encode(['a'], [number(text)])).toBe(`{"a":${text}}\n`)
  })

  it('writes what JSON has no number for as a string', () => {
    for (const text of ['NaN', 'Infinity', '-Infinity', '01', '+1', '.5', '1.', '0x1f', '1_000', '', ' 1', '1\n']) {
      expect(encode(['a'], [number(text)])).toBe(`{"a":${JSON.stringify(text)}}\n`)
    }
  })

  it('writes nested values as they are, on one line', () => {
    expect(encode(['a'], [json('{"x": [1,\r\n "a\\nb"]}')])).toBe('{"a":{"x": [1,   "a\\nb"]}}\n')
  })

  it('writes bytes as base64, text escaped', () => {
    expect(encode(['a', 'b'], [Uint8Array.of(0, 255, 16).subarray(1), '"\\\n\u0001é🙂\u2028'])).toBe(
      '{"a":"/xA=","b":"\\"\\\\\\n\\u0001é🙂\u2028"}\n',
    )
  })

  it('writes a column that only the batch has', () => {
    const encoder = createJsonLinesEncoder({ columns: ['a'] })
    expect(Buffer.from(encoder.encode(batch(['a', 'late'], [['x', 'y']]))).toString()).toBe('{"a":"x","late":"y"}\n')
    expect(Buffer.from(encoder.encode(batch(['a'], [['z']]))).toString()).toBe('{"a":"z"}\n')
  })

  it('refuses other forms', () => {
    const encoder = createJsonLinesEncoder({ columns: ['a'] })
    const bytes = { form: 'bytes', bytes: new Uint8Array(1), start: START, end: START, mayEnd: true } as const
    expect(() => encoder.encode(bytes)).toThrow(expect.objectContaining({ code: 'SLUICE_INTERNAL' }) as Error)
  })
})
