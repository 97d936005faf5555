import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Batch, CsvBatch, Value } from '../../src/core/batch.ts'
import { SluiceError } from '../../src/core/errors.ts'
import type { Position } from '../../src/core/job.ts'
import type { FormatHead, FormatReader } from '../../src/core/ports.ts'
import { createCsvEncoder, encodeCopyRows } from '../../src/formats/csv/csv-encoder.ts'
import { createCsvReader } from '../../src/formats/csv/csv-reader.ts'
import type { CsvReadOptions } from '../../src/formats/csv/csv-reader.ts'
import { locateRecord, recordAtLine } from '../../src/formats/csv/locate.ts'
import { parseReference } from './csv-reference.ts'
import type { ReferenceDialect, ReferenceRecord } from './csv-reference.ts'

const place = { url: 'test.csv', warn: () => undefined, signal: new AbortController().signal }
const maxRowBytes = 1 << 20

async function* cutUp(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0
  for (let i = 0; at < bytes.byteLength; i += 1) {
    const size = cuts.length === 0 ? bytes.byteLength : Math.max(1, cuts[i % cuts.length] ?? 1)
    yield bytes.slice(at, at + size)
    at += size
  }
}

interface ReadResult {
  readonly head: FormatHead
  readonly batches: Batch[]
}

async function readAll(
  reader: FormatReader,
  bytes: Uint8Array,
  o: { form: 'csv' | 'rows'; cuts: readonly number[]; from?: Position },
): Promise<ReadResult> {
  const head = await reader.head(cutUp(bytes, o.cuts), place)
  const from = o.from ?? head.first
  const batches: Batch[] = []
  for await (const batch of reader.read(cutUp(bytes.subarray(from.byte), o.cuts), head, {
    ...place,
    form: o.form,
    from,
  }))
    batches.push(batch)
  return { head, batches }
}

interface Sample {
  readonly text: string
  readonly dialect: ReferenceDialect
}

const words = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'bc',
    ' ',
    '\\.',
    '\\N',
    'NULL',
    'é',
    '漢字',
    '🙂',
    '"',
    "'",
    ',',
    '\n',
    '\r',
    '\r\n',
    '\\',
    ';',
    '""',
    'x,y',
  ),
  fc.string({ maxLength: 6, unit: 'binary' }).map((s) => s.replaceAll('\0', '').replaceAll('\ufeff', '')),
)

const dialects = fc.constantFrom<ReferenceDialect>(
  { delimiter: ',', quote: '"', escape: '"' },
  { delimiter: '\t', quote: '"', escape: '"' },
  { delimiter: ';', quote: "'", escape: "'" },
  { delimiter: ',', quote: '"', escape: '\\' },
  { delimiter: '|', quote: null, escape: '' },
  { delimiter: '§', quote: '"', escape: '"' },
  { delimiter: '漢', quote: null, escape: '' },
)

/** Well-formed mostly: fields joined; sometimes raw text between, which may break it. */
const samples: fc.Arbitrary<Sample> = dialects.chain((dialect) => {
  const quotedField = words.map((word) => {
    if (dialect.quote === null) return word.replace(/[\r\n]/g, '').replaceAll(dialect.delimiter, '')
    return dialect.quote + escaped(word, dialect) + dialect.quote
  })
  const plainField = words.map((word) =>
    [...word].filter((c) => c !== dialect.delimiter && c !== dialect.quote && c !== '\n' && c !== '\r').join(''),
  )
  const field = fc.oneof(
    { weight: 6, arbitrary: plainField },
    { weight: 4, arbitrary: quotedField },
    { weight: 1, arbitrary: fc.constant('') },
  )
  const lineEnds = fc.constantFrom(['\n'], ['\r\n'], ['\r'], ['\n', '\r\n'], ['\n', '\r', '\r\n'])
  return fc
    .tuple(
      fc.array(fc.tuple(fc.array(field, { minLength: 1, maxLength: 4 }), fc.nat(), fc.integer({ min: 0, max: 14 })), {
        maxLength: 12,
      }),
      lineEnds,
      fc.boolean(),
      fc.integer({ min: 1, max: 4 }),
      fc.oneof({ weight: 8, arbitrary: fc.constant('') }, { weight: 1, arbitrary: words }),
    )
    .map(([rows, ends, lastEnd, width, rubbish]) => {
      const lines = rows.map(([fields, pick, blank], i) => {
        const padded = Array.from({ length: width }, (_, j) => fields[j] ?? '')
        const end = i === rows.length - 1 && !lastEnd ? '' : (ends[pick % ends.length] ?? '\n')
        return blank === 0 ? end : padded.join(dialect.delimiter) + end
      })
      return { dialect, text: lines.join('') + rubbish }
    })
})

function escaped(word: string, dialect: ReferenceDialect): string {
  const { quote, escape } = dialect
  if (quote === null) return word
  return [...word].map((c) => (c === quote || c === escape ? escape + c : c)).join('')
}

function optionsOf(dialect: ReferenceDialect): CsvReadOptions {
  const quoting = dialect.quote === null ? { quote: 'none' } : { quote: dialect.quote, escape: dialect.escape }
  return { delimiter: dialect.delimiter, header: false, maxRowBytes, ...quoting }
}

/** What the rules make of the records: blank lines gone where there are several columns; null where a row is wrong. */
function expected(sample: Sample): { width: number; rows: ReferenceRecord[] } | null {
  const records = parseReference(sample.text, sample.dialect)
  if (records === null) return null
  const isBlank = (record: ReferenceRecord): boolean =>
    record.fields.length === 1 && record.fields[0]?.text === '' && !record.fields[0].quoted
  const width = records.find((record) => !isBlank(record))?.fields.length ?? (records.length > 0 ? 1 : 0)
  const rows = width === 1 ? records : records.filter((record) => !isBlank(record))
  return { width, rows }
}

const valuesOf = (rows: readonly ReferenceRecord[], nulls: readonly string[] = []): Value[][] =>
  rows.map((row) =>
    row.fields.map((field) => (!field.quoted && (field.text === '' || nulls.includes(field.text)) ? null : field.text)),
  )

async function outcome<T>(work: Promise<T>): Promise<T | SluiceError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
}

/** What COPY (FORMAT csv) would make of the bytes, strictly: one kind of line end, nothing bare that it objects to or reads otherwise. */
function parseAsCopy(batch: CsvBatch): { rows: Value[][] } {
  const text = Buffer.from(batch.bytes).toString('utf8')
  expect(Buffer.from(text).equals(Buffer.from(batch.bytes)), 'valid UTF-8').toBe(true)
  expect(text.endsWith('\n')).toBe(true)
  const { quote, delimiter, escape } = batch.csv
  // What COPY is given ends its lines with LF, so that a CR is none.
  const records = parseReference(text, { delimiter, quote, escape }, false)
  if (records === null) throw new Error(`COPY would not read ${JSON.stringify(text)}`)
  const crlf = text.endsWith('\r\n')
  let bare = ''
  let inside = false
  for (let i = 0; i < text.length; i += 1) {
    if (inside && text[i] === escape && escape !== quote && i + 1 < text.length) i += 1
    else if (text[i] === quote) inside = !inside
    else if (!inside) bare += text[i]
  }
  const ends = bare.match(/\r\n|\r|\n/g) ?? []
  expect(new Set(ends)).toEqual(new Set(ends.length === 0 ? [] : [crlf ? '\r\n' : '\n']))
  expect(ends.length).toBe(batch.rows)
  expect(text.includes(quote ?? '\0')).toBe(batch.quoted)
  for (const line of text.split(/\r?\n/)) if (!batch.quoted) expect(line).not.toBe('\\.')
  if (batch.columns.length > 1)
    for (const { fields } of records) expect(fields).not.toEqual([{ text: '', quoted: false }])
  return { rows: valuesOf(records) }
}

const cutting = fc.oneof(
  fc.constant([1]),
  fc.constant([]),
  fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
)

describe('CSV, cut anywhere', () => {
  it('rows are those of a plain parser, with their places', async () => {
    await fc.assert(
      fc.asyncProperty(samples, cutting, async (sample, cuts) => {
        const want = expected(sample)
        const got = await outcome(
          readAll(createCsvReader(optionsOf(sample.dialect)), Buffer.from(sample.text), { form: 'rows', cuts }),
        )
        const broken = want === null || want.rows.some((row) => row.fields.length !== want.width)
        if (got instanceof SluiceError) return void expect(broken, `${got.code} ${got.message}`).toBe(true)
        expect(broken).toBe(false)
        const rows = got.batches.flatMap((batch) => (batch.form === 'rows' ? batch.rows : []))
        expect(rows).toEqual(valuesOf(want?.rows ?? []))
        const places = got.batches.flatMap((batch) => (batch.form === 'rows' ? batch.places : []))
        expect(places).toEqual((want?.rows ?? []).map(({ line, byte }, i) => ({ row: i + 1, line, byte })))
      }),
      { numRuns: 600 },
    )
  })

  it('the bytes of the csv form are what COPY reads to the same values', async () => {
    await fc.assert(
      fc.asyncProperty(
        samples,
        cutting,
        fc.constantFrom([], ['NULL'], ['\\N', 'a', '\\.']),
        async (sample, cuts, nulls) => {
          const want = expected(sample)
          const reader = createCsvReader({ ...optionsOf(sample.dialect), nulls })
          const got = await outcome(readAll(reader, Buffer.from(sample.text), { form: 'csv', cuts }))
          if (want === null) return void expect(got).toBeInstanceOf(SluiceError)
          const ragged = want.rows.some((row) => row.fields.length !== want.width)
          if (got instanceof SluiceError) return void expect(ragged, `${got.code} ${got.message}`).toBe(true)
          const batches = got.batches.filter((batch) => batch.form === 'csv')
          expect(batches.flatMap((batch) => parseAsCopy(batch).rows)).toEqual(valuesOf(want.rows, nulls))
          let row = 0
          for (const batch of batches)
            for (let k = 0; k < batch.rows; k += 1, row += 1)
              expect(locateRecord(batch, k)).toEqual({
                row: row + 1,
                line: want.rows[row]?.line,
                byte: want.rows[row]?.byte,
              })
        },
      ),
      { numRuns: 600 },
    )
  })

  it('any bytes: rows or a SluiceError, never a crash', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .array(fc.constantFrom(34, 44, 10, 13, 0, 97, 0xef, 0xbb, 0xbf, 0xff, 0xfe, 0xd8, 0xed, 0xa0, 92, 46), {
          maxLength: 80,
        })
        .map((b) => Uint8Array.from(b)),
    )
    const options = fc.record({
      encoding: fc.constantFrom('utf-8', 'utf-16le', 'utf-16be', 'windows-1252', 'shift_jis', 'gb18030', 'iso-2022-jp'),
      onInvalidUtf8: fc.constantFrom('error', 'replace'),
      onNul: fc.constantFrom('error', 'strip'),
      quote: fc.constantFrom('"', 'none'),
      header: fc.boolean(),
      ragged: fc.constantFrom('reject', 'fill', 'trim'),
      empty: fc.constantFrom('null', 'string', 'omit'),
      skipLines: fc.nat({ max: 2 }),
    })
    await fc.assert(
      fc.asyncProperty(
        bytes,
        options,
        cutting,
        fc.constantFrom<'csv' | 'rows'>('csv', 'rows'),
        async (input, o, cuts, form) => {
          const reader = createCsvReader({ ...o, maxRowBytes } as CsvReadOptions)
          const head = await outcome(reader.head(cutUp(input, cuts), place))
          if (head instanceof SluiceError) return void expect(head.where.url).toBe('test.csv')
          const seekable = (head.state as { seekable: boolean }).seekable
          const chunks = cutUp(seekable ? input.subarray(head.first.byte) : input, cuts)
          const work = (async () => {
            let rows = 0
            for await (const batch of reader.read(chunks, head, { ...place, form, from: head.first })) {
              expect(batch.start.row).toBe(rows)
              rows = batch.end.row
              if (batch.form === 'csv') parseAsCopy(batch)
            }
          })()
          const got = await outcome(work)
          if (got instanceof SluiceError) expect(got.where.url).toBe('test.csv')
        },
      ),
      { numRuns: 1500 },
    )
  })
})

describe('encode, then read', () => {
  const value = fc.oneof(fc.constant(null), words, words)
  const table = fc
    .integer({ min: 1, max: 4 })
    .chain((width) =>
      fc.array(fc.array(value, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 20 }),
    )
  const shape = fc.constantFrom({}, { delimiter: '\t' }, { quote: "'" }, { escape: '\\' }, { lineEnd: 'crlf' as const })

  it('gives the values back', async () => {
    await fc.assert(
      fc.asyncProperty(table, shape, async (rows, options) => {
        const columns = (rows[0] ?? []).map((_, i) => `c${i}`)
        const zero = { byte: 0, row: 0, line: 0 }
        const batch = {
          form: 'rows' as const,
          columns,
          rows,
          places: [],
          sourceBytes: 0,
          filtered: 0,
          start: zero,
          end: zero,
          mayEnd: true,
        }
        const encoder = createCsvEncoder({ columns, ...options })
        const bytes = Buffer.concat([encoder.encode(batch), encoder.end()])
        const { lineEnd: _, ...reading } = { lineEnd: undefined, ...options }
        const { head, batches } = await readAll(createCsvReader({ ...reading, maxRowBytes }), bytes, {
          form: 'rows',
          cuts: [7],
        })
        expect(head.columns.map((column) => column.name)).toEqual(columns)
        expect(batches.flatMap((one) => (one.form === 'rows' ? one.rows : []))).toEqual(rows)
        const copy = encodeCopyRows(batch, { shape: { delimiter: ',', quote: '"', escape: '"' }, formatBinary: String })
        const read = await readAll(createCsvReader({ header: false, columns, maxRowBytes }), copy, {
          form: 'rows',
          cuts: [],
        })
        expect(read.batches.flatMap((one) => (one.form === 'rows' ? one.rows : []))).toEqual(rows)
      }),
      { numRuns: 300 },
    )
  })

  it('a csv batch comes out as its values, whatever its shape', async () => {
    await fc.assert(
      fc.asyncProperty(samples, shape, async (sample, options) => {
        const got = await outcome(
          readAll(createCsvReader(optionsOf(sample.dialect)), Buffer.from(sample.text), { form: 'csv', cuts: [] }),
        )
        if (got instanceof SluiceError || got.batches.length === 0) return
        const want = expected(sample)
        if (want === null || want.rows.some((row) => row.fields.length !== want.width)) return
        const columns = got.head.columns.map((column) => column.name)
        const encoder = createCsvEncoder({ columns, ...options })
        const bytes = Buffer.concat([...got.batches.map((batch) => encoder.encode(batch)), encoder.end()])
        const { lineEnd: _, ...reading } = { lineEnd: undefined, ...options }
        const again = await readAll(createCsvReader({ ...reading, maxRowBytes }), bytes, { form: 'rows', cuts: [] })
        expect(again.batches.flatMap((one) => (one.form === 'rows' ? one.rows : []))).toEqual(valuesOf(want.rows))
      }),
      { numRuns: 300 },
    )
  })

  it('a physical line belongs to one record', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.constantFrom('a', 'b\nc', 'd\r\n\ne', ''), { minLength: 2, maxLength: 2 }), {
          minLength: 1,
          maxLength: 8,
        }),
        (rows) => {
          const text = rows.map((row) => row.map((field) => `"${field}"`).join(',') + '\n')
          const shapeOf = { delimiter: ',', quote: '"', escape: '"' }
          let line = 0
          for (const [index, record] of text.entries())
            for (let k = 1; k < record.split('\n').length; k += 1) {
              line += 1
              expect(recordAtLine(Buffer.from(text.join('')), shapeOf, line)).toBe(index)
            }
          expect(recordAtLine(Buffer.from(text.join('')), shapeOf, line + 1)).toBe(-1)
        },
      ),
    )
  })
})
