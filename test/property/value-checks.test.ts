import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TableColumn } from '../../src/connectors/postgres/table/table.ts'
import { createValueChecker, type ValueChecker } from '../../src/connectors/postgres/values/value-checks.ts'

function column(baseTypeOid: number, baseTypmod: number, baseType: string): TableColumn {
  return {
    name: baseType,
    type: baseType,
    typeOid: baseTypeOid,
    typmod: baseTypmod,
    baseTypeOid,
    baseTypmod,
    baseType,
    kind: 'b',
    element: null,
    attributes: null,
    nullable: true,
    hasDefault: false,
    generated: false,
    identity: null,
    collation: null,
  }
}

const numeric = (precision: number, scale: number): TableColumn =>
  column(1700, ((precision << 16) | scale) + 4, `numeric(${precision},${scale})`)
const COLUMNS: readonly (TableColumn | null)[] = [
  column(23, -1, 'integer'),
  numeric(10, 2),
  column(1043, 5 + 4, 'character varying(5)'),
  null,
  column(1114, -1, 'timestamp without time zone'),
  column(1184, 3, 'timestamp(3) with time zone'),
  column(1082, -1, 'date'),
  column(1266, 0, 'time(0) with time zone'),
  column(19, -1, 'name'),
]

const shapes = [
  { delimiter: ',', quote: '"', escape: '"' },
  { delimiter: ';', quote: "'", escape: '\\' },
  { delimiter: '\t', quote: '"', escape: '"' },
] as const

const value = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      '1',
      '1.25',
      '-3.5',
      '2020-01-01 10:11:12',
      '2020-01-01',
      '10:11:12',
      'abc',
      '2020-01-01T10:11:12.123Z',
      '10:11:12+02:00',
      '',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '1.255',
      '1.250',
      '1e-3',
      'abc      ',
      '2020-01-01 10:11:12Z',
      '2020-01-01 10:11:12.1234',
      '2020-01-01 00:00:00',
      '23:59:60',
      'now',
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...'0123456789-:. ,;"\'\\+eTZé\n\tx'), maxLength: 30 }) },
)
const row = fc.array(value, { minLength: COLUMNS.length, maxLength: COLUMNS.length })

function write(
  rows: readonly (readonly string[])[],
  o: { shape: (typeof shapes)[number]; quoteAll: boolean; crlf: boolean },
): Buffer {
  const { delimiter, quote, escape } = o.shape
  const field = (text: string): string => {
    const needs = o.quoteAll || text === '' || [delimiter, quote, '\n', '\r'].some((special) => text.includes(special))
    if (!needs) return text
    const escaped =
      escape === quote
        ? text.replaceAll(quote, quote + quote)
        : text.replaceAll(escape, escape + escape).replaceAll(quote, escape + quote)
    return quote + escaped + quote
  }
  return Buffer.from(rows.map((one) => one.map(field).join(delimiter) + (o.crlf ? '\r\n' : '\n')).join(''))
}

function byRows(checker: ValueChecker, rows: readonly (readonly string[])[]) {
  for (const [index, one] of rows.entries()) {
    const bad = checker.checkRow(one, index)
    if (bad !== null) return bad
  }
  return null
}

describe('the checks of values', () => {
  it('judge CSV, however it is written, as they judge the same values parsed', () => {
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 12 }),
        fc.constantFrom(...shapes),
        fc.boolean(),
        fc.boolean(),
        (rows, shape, quoteAll, crlf) => {
          const checker = createValueChecker(COLUMNS, { shape, timeZone: 'UTC' })
          if (checker === null) throw new Error('no checker')
          const bytes = write(rows, { shape, quoteAll, crlf })
          const quoted = bytes.includes(shape.quote)
          const inCsv = checker.checkCsv({ bytes, quoted, csv: shape })
          expect(inCsv).toEqual(byRows(checker, rows))
        },
      ),
      { numRuns: 600 },
    )
  })

  it('find one bad value among thousands of good ones, wherever it is', () => {
    const shape = shapes[0]
    const good = [
      '7',
      '12.34',
      'abc',
      'free text',
      '2024-02-29 10:11:12',
      '2024-02-29T10:11:12.123+01',
      '2024-02-29',
      '10:11:12Z',
      'n',
    ]
    const bads: readonly [number, string][] = [[1, '1.001'], [2, 'abc     '], [4, '2024-02-29 10:11:12Z'], [5, '2024-02-29 10:11:12.1234'], [6, '2024-02-29 01:00:00'], [7, '10:11:12.5'], [8, 'x'.repeat(64)]] // prettier-ignore
    fc.assert(
      fc.property(fc.nat(1999), fc.constantFrom(...bads), fc.boolean(), (recordIndex, [columnIndex, text], crlf) => {
        const rows = Array.from({ length: 2000 }, () => good)
        rows[recordIndex] = good.with(columnIndex, text)
        const checker = createValueChecker(COLUMNS, { shape, timeZone: 'UTC' })
        expect(
          checker?.checkCsv({ bytes: write(rows, { shape, quoteAll: false, crlf }), quoted: false, csv: shape }),
        ).toMatchObject({ recordIndex, columnIndex })
      }),
      { numRuns: 40 },
    )
  })

  it('come through any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, quoted) => {
        const checker = createValueChecker(COLUMNS, { shape: shapes[0], timeZone: 'UTC' })
        const bad = checker?.checkCsv({ bytes, quoted, csv: shapes[0] }) ?? null
        expect(bad === null || bad.columnIndex < COLUMNS.length).toBe(true)
      }),
    )
  })

  it('are none where no column needs one', () => {
    expect(
      createValueChecker(
        [column(23, -1, 'integer'), column(25, -1, 'text'), column(701, -1, 'double precision'), null],
        { shape: shapes[0], timeZone: 'UTC' },
      ),
    ).toBeNull()
  })
})
