import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Batch, CsvBatch, RowPlace, Value } from '../../src/core/batch.ts'
import { SluiceError } from '../../src/core/errors.ts'
import type { CopyOptions } from '../../src/core/options.ts'
import { applyMapping, compileMapping, type Mapping } from '../../src/engine/mapping.ts'
import { columnValues } from '../../src/formats/csv/column-values.ts'
import { createCsvReader, type CsvReadOptions } from '../../src/formats/csv/csv-reader.ts'
import { locateRecord } from '../../src/formats/csv/locate.ts'
import { rewriteRecords } from '../../src/formats/csv/rewrite.ts'
import { parseReference } from './csv-reference.ts'

const url = 'test.csv'
const place = { url, warn: () => undefined, signal: new AbortController().signal }
const COLUMNS = ['a', 'b', 'c']

interface Sample {
  readonly text: string
  readonly read: CsvReadOptions
}

const WORDS = [
  '',
  '',
  'x',
  'x y',
  ' ',
  '\\.',
  '\\N',
  'NULL',
  '-',
  'é',
  '🙂',
  '17',
  'a,b',
  "it's",
  'say "so"',
  'two\nlines',
  'c\rr',
  ';|\t',
]

const dialects = fc.constantFrom<Pick<CsvReadOptions, 'delimiter' | 'quote' | 'escape'>>(
  {},
  { delimiter: '\t' },
  { delimiter: ';', quote: "'" },
  { escape: '\\' },
  { delimiter: '|', quote: 'none' },
  { delimiter: '§' },
)

/** A field as a file may have it. */
function written(word: string, wantsQuotes: boolean, read: CsvReadOptions): string {
  const { delimiter = ',', quote = '"', escape = quote } = read
  if (quote === 'none') return word.replaceAll(delimiter, '').replace(/[\r\n]/g, '')
  if (!wantsQuotes && ![delimiter, quote, '\n', '\r'].some((special) => word.includes(special))) return word
  return quote + [...word].map((c) => (c === quote || c === escape ? escape + c : c)).join('') + quote
}

const fields = fc.tuple(
  fc.constantFrom(...WORDS),
  fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
)
const rowsOf = fc.array(
  // Seldom ragged.
  fc.tuple(fc.array(fields, { minLength: 4, maxLength: 4 }), fc.constantFrom(3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 4)),
  { maxLength: 8 },
)

const samples: fc.Arbitrary<Sample> = fc
  .record({
    dialect: dialects,
    width: fc.constantFrom(1, 2, 3, 3),
    rows: rowsOf,
    lineEnd: fc.constantFrom('\n', '\n', '\r\n'),
    nulls: fc.constantFrom<readonly string[]>([], [], ['NULL', '\\N'], ['-']),
    empty: fc.constantFrom<'null' | 'string' | 'omit'>('null', 'null', 'string', 'omit'),
    ragged: fc.constantFrom<'reject' | 'fill' | 'trim'>('reject', 'reject', 'fill', 'trim'),
  })
  .map(({ dialect, width, rows, lineEnd, nulls, empty, ragged }) => {
    const read: CsvReadOptions = {
      ...dialect,
      nulls,
      empty,
      ragged,
      columns: COLUMNS.slice(0, width),
      header: false,
      maxRowBytes: 1 << 20,
    }
    const lines = rows.map(([list, count]) =>
      list
        .slice(0, Math.max(1, count + width - 3))
        .map(([word, quotes]) => written(word, quotes, read))
        .join(dialect.delimiter ?? ','),
    )
    return { text: lines.map((line) => line + lineEnd).join(''), read }
  })

const REPLACEMENTS = [
  '/ //',
  '/x/"q"/',
  '/^.*$//',
  '/^$/new/',
  '/[a-z]/,/',
  '/y/\\./',
  '/7/\n/',
  '/./é/',
  '#x y#\\.#',
  '/x/🙂;|\t/i',
]
const CONSTANTS = ['', 'k', '\\.', 'a,b;c|d\te', 'q"r\'s', 'two\nlines', 'c\r', 'ü']

/** Flags for as many of the columns as there are. */
function mappings(width: number): fc.Arbitrary<CopyOptions> {
  const names = COLUMNS.slice(0, width)
  const name = fc.constantFrom(...names)
  const some = fc.uniqueArray(name, { maxLength: width })
  return fc
    .record({
      select: fc.option(fc.uniqueArray(name, { minLength: 1, maxLength: width }), { nil: undefined }),
      rename: some.map((list) => list.map((one) => `${one}=${one}2`)),
      replace: fc.array(fc.tuple(name, fc.constantFrom(...REPLACEMENTS)), { maxLength: 3 }),
      set: fc.uniqueArray(fc.tuple(fc.constantFrom(...names, 'd', 'e'), fc.constantFrom(...CONSTANTS)), {
        maxLength: 2,
        selector: ([one]) => one,
      }),
      skipIfEmpty: fc.oneof(fc.constant([]), some),
    })
    .map(({ select, replace, set, ...rest }) => ({
      ...rest,
      ...(select === undefined ? {} : { select }),
      replace: replace.map(([one, rule]) => `${one}=${rule}`),
      set: set.map(([one, text]) => `${one}=${text}`),
    }))
}

const cases = samples.chain((sample) =>
  mappings(sample.read.columns?.length ?? 1).map((options) => ({ sample, options })),
)

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield Uint8Array.from(bytes)
  await Promise.resolve()
}

interface Outcome {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Value[])[]
  readonly places: readonly RowPlace[]
  readonly filtered: number
}

/** Rows after the mapping, read in a form; or what went wrong, and where. */
async function outcomeIn(form: 'csv' | 'rows', { text, read }: Sample, mapping: Mapping): Promise<Outcome | object> {
  const reader = createCsvReader(read)
  const bytes = Buffer.from(text)
  const total = {
    columns: [] as readonly string[],
    rows: [] as (readonly Value[])[],
    places: [] as RowPlace[],
    filtered: 0,
  }
  try {
    const head = await reader.head(once(bytes), place)
    for await (const batch of reader.read(once(bytes), head, { ...place, form, from: head.first })) {
      const size = batch.form === 'csv' ? batch.bytes.byteLength : 0
      const mapped = applyMapping(mapping, batch, url)
      expect([mapped.start, mapped.end]).toEqual([batch.start, batch.end])
      if (mapped.form === 'csv') expect(mapped.sourceBytes).toBe(size)
      add(total, mapped)
    }
  } catch (error) {
    if (error instanceof SluiceError) return { code: error.code, message: error.message, where: error.where }
    throw error
  }
  return total
}

function add(
  total: { columns: readonly string[]; rows: (readonly Value[])[]; places: RowPlace[]; filtered: number },
  batch: Batch,
): void {
  if (batch.form !== 'csv' && batch.form !== 'rows') throw new Error(`no rows: ${batch.form}`)
  total.columns = batch.columns
  total.filtered += batch.filtered ?? 0
  const rows = batch.form === 'rows' ? batch.rows : rowsIn(batch)
  // In CSV a value that is left out is one that is not there.
  total.rows.push(...rows.map((row) => row.map((value) => value ?? null)))
  total.places.push(...(batch.form === 'rows' ? batch.places : rows.map((_, i) => locateRecord(batch, i))))
}

/** What the plain parser makes of the bytes, which have to be as every CsvBatch is. */
function rowsIn(batch: CsvBatch): Value[][] {
  const text = Buffer.from(batch.bytes).toString('utf8')
  const { quote, delimiter, escape } = batch.csv
  const records = parseReference(text, { delimiter, quote, escape }, false)
  if (records === null) throw new Error(`not to be read: ${JSON.stringify(text)}`)
  expect(records.length).toBe(batch.rows)
  expect(text.includes(quote ?? '\0')).toBe(batch.quoted)
  if (!batch.quoted) {
    expect(text.split(/\r?\n/)).not.toContain('\\.')
    const ends = text.match(/\r\n|\r|\n/g) ?? []
    expect(new Set(ends).size).toBeLessThanOrEqual(1)
  }
  return records.map(({ fields: list }) => {
    if (batch.columns.length === 1 && text.includes('\\.')) expect(list).not.toEqual([{ text: '\\.', quoted: false }])
    return list.map((field) => (field.text === '' && !field.quoted ? null : field.text))
  })
}

function compiled({ read }: Sample, options: CopyOptions): Mapping | null {
  const schema = { columns: (read.columns ?? []).map((name) => ({ name })), named: true }
  try {
    return compileMapping(schema, options, { rewrite: rewriteRecords, values: columnValues })
  } catch (error) {
    if (error instanceof SluiceError) return null
    throw error
  }
}

describe('a mapping of CSV as it is', () => {
  it('gives the rows that the same mapping makes of parsed rows, with their places, counts and errors', async () => {
    let [compared, failed, left] = [0, 0, 0]
    await fc.assert(
      fc.asyncProperty(cases, async ({ sample, options }) => {
        const mapping = compiled(sample, options)
        // What passes as it is is checked by who takes it.
        fc.pre(mapping?.forms.includes('bytes') === false)
        if (mapping === null) return
        expect(mapping.forms).toContain('csv')
        const want = await outcomeIn('rows', sample, mapping)
        expect(await outcomeIn('csv', sample, mapping)).toEqual(want)
        compared += 1
        if ('code' in want) failed += 1
        if ('filtered' in want && Number(want.filtered) > 0) left += 1
      }),
      { numRuns: 1500 },
    )
    // Of each kind there is enough to say something.
    expect(Math.min(compared / 3, failed, left)).toBeGreaterThan(50)
  })

  it('shows the same values of some columns', async () => {
    await fc.assert(
      fc.asyncProperty(cases, fc.integer({ min: 0, max: 7 }), async ({ sample, options }, mask) => {
        const mapping = compiled(sample, options)
        fc.pre(mapping !== null)
        if (mapping === null) return
        const isWanted = (name: string): boolean => ((mask >> (name.charCodeAt(0) % 3)) & 1) === 1
        const valuesIn = async (form: 'csv' | 'rows'): Promise<object> => {
          const reader = createCsvReader(sample.read)
          const bytes = Buffer.from(sample.text)
          const list: object[] = []
          try {
            const head = await reader.head(once(bytes), place)
            for await (const batch of reader.read(once(bytes), head, { ...place, form, from: head.first }))
              for (const { name, values } of mapping.values(batch, isWanted))
                list.push({ name, values: values.map((value) => value ?? null) })
          } catch (error) {
            if (!(error instanceof SluiceError)) throw error
            const { url: _, ...where } = error.where
            return { code: error.code, where }
          }
          return list
        }
        expect(await valuesIn('csv')).toEqual(await valuesIn('rows'))
      }),
      { numRuns: 600 },
    )
  })
})
