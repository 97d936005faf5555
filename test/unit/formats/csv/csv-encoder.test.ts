import { describe, expect, it } from 'vitest'
import type { RowsBatch, Value } from '../../../../src/core/batch.ts'
import { START } from '../../../../src/core/job.ts'
import { createCsvEncoder, encodeCopyRows } from '../../../../src/formats/csv/csv-encoder.ts'

function batchOf(columns: readonly string[], rows: readonly (readonly Value[])[]): RowsBatch {
  return {
    form: 'rows',
    columns,
    rows,
    places: [],
    sourceBytes: 0,
    filtered: 0,
    start: START,
    end: START,
    mayEnd: true,
  }
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

describe('CSV encoder', () => {
  it('writes each kind of value', () => {
    const columns = ['a', 'b,c', 'd', 'e', 'f']
    const encoder = createCsvEncoder({ columns })
    const row: Value[] = [null, '', 'say "x"', true, { kind: 'number', text: '1e999' }]
    const other: Value[] = [undefined, 'a\nb', { kind: 'json', text: '{"a":1}' }, false, Uint8Array.of(0, 255)]
    expect(text(encoder.encode(batchOf(columns, [row, other])))).toBe(
      'a,"b,c",d,e,f\n,"","say ""x""",true,1e999\n,"a\nb","{""a"":1}",false,AP8=\n',
    )
    expect(text(encoder.end())).toBe('')
  })

  it('one column: NULL is a blank line, and \\. is quoted', () => {
    const encoder = createCsvEncoder({ columns: ['a'], header: false })
    expect(text(encoder.encode(batchOf(['a'], [[null], ['\\.'], ['']])))).toBe('\n"\\."\n""\n')
  })

  it('the header comes also where no row does', () => {
    expect(text(createCsvEncoder({ columns: ['a', 'b'], lineEnd: 'crlf' }).end())).toBe('a,b\r\n')
  })

  it('hands on csv bytes of its own shape', () => {
    const bytes = Buffer.from('1,2\r\n')
    const csv = { delimiter: ',', quote: '"', escape: '"' }
    const batch = {
      form: 'csv' as const,
      bytes,
      rows: 1,
      columns: ['a', 'b'],
      csv,
      quoted: false,
      start: START,
      end: START,
      mayEnd: true,
    }
    const encoder = createCsvEncoder({ columns: ['a', 'b'] })
    expect(text(encoder.encode(batch))).toBe('a,b\r\n1,2\r\n')
    expect(encoder.encode(batch)).toBe(bytes)
    expect(text(createCsvEncoder({ columns: ['a', 'b'], delimiter: ';', header: false }).encode(batch))).toBe('1;2\r\n')
  })

  it.each([
    ['lf', 'crlf', '1,"a\nb"\n"x""\n","c\r\nd"\n', '1,"a\nb"\r\n"x""\n","c\r\nd"\r\n'],
    ['crlf', 'lf', '1,"a\nb"\r\n"x""\r\n",c\rd\r\n', '1,"a\nb"\n"x""\r\n",c\rd\n'],
    ['lf', 'crlf', '1,2\n3,4\n', '1,2\r\n3,4\r\n'],
  ] as const)('ends records of %s by %s, and leaves what quotes hold', (_from, lineEnd, given, expected) => {
    const place = { start: START, end: START, mayEnd: true }
    const csv = { delimiter: ',', quote: '"', escape: '"' }
    const columns = ['a', 'b']
    const batch = { form: 'csv' as const, bytes: Buffer.from(given), rows: 2, columns, csv, quoted: true, ...place }
    for (const quoted of given.includes('"') ? [true] : [true, false])
      expect(text(createCsvEncoder({ columns, header: false, lineEnd }).encode({ ...batch, quoted }))).toBe(expected)
  })

  it('knows a quote that is escaped by another byte', () => {
    const csv = { delimiter: ',', quote: '"', escape: '\\' }
    const batch = {
      form: 'csv' as const,
      bytes: Buffer.from('"a\\"\nb",1\n'),
      rows: 1,
      columns: ['a', 'b'],
      csv,
      quoted: true,
      start: START,
      end: START,
      mayEnd: true,
    }
    const encoder = createCsvEncoder({ columns: ['a', 'b'], escape: '\\', header: false, lineEnd: 'crlf' })
    expect(text(encoder.encode(batch))).toBe('"a\\"\nb",1\r\n')
  })

  it('COPY rows take binary as the column wants it', () => {
    const shape = { delimiter: ',', quote: '"', escape: '"' }
    const hex = (bytes: Uint8Array): string => `\\x${Buffer.from(bytes).toString('hex')}`
    expect(text(encodeCopyRows(batchOf(['a', 'b'], [[Uint8Array.of(1), null]]), { shape, formatBinary: hex }))).toBe(
      '\\x01,\n',
    )
  })
})
