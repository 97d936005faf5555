import fc from 'fast-check'
import { expect, it } from 'vitest'
import { divideRows } from '../../src/connectors/dynamodb/put/divide-rows.ts'
import { KeyDivision } from '../../src/connectors/dynamodb/put/key-division.ts'
import { canonicalNumber } from '../../src/connectors/dynamodb/item/number.ts'
import type { KeyAttribute } from '../../src/connectors/dynamodb/table-info.ts'
import type { CsvBatch } from '../../src/core/batch.ts'

const START = { byte: 0, row: 0, line: 0 }

function batchOf(text: string, rows: number, quoted: boolean): CsvBatch {
  const csv = { delimiter: ',', quote: '"', escape: '"' }
  const place = { start: START, end: START, mayEnd: true }
  return { form: 'csv', bytes: Buffer.from(text), rows, columns: [], csv, quoted, ...place }
}

const field = fc.string({ unit: fc.constantFrom('a', 'ü', '0', '1', '.', '\r', ' '), maxLength: 6 })
const keyAttributes: fc.Arbitrary<readonly KeyAttribute[]> = fc
  .array(fc.constantFrom('S' as const, 'N' as const, 'B' as const), { minLength: 1, maxLength: 2 })
  .map((types) => types.map((type, i) => ({ name: `k${i}`, type })))

it('rows without quotes are divided as the cursor would', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 20 }),
      fc.constantFrom('\n', '\r\n'),
      keyAttributes,
      fc.uniqueArray(fc.nat(3), { minLength: 2, maxLength: 2 }),
      (rows, lineEnd, attributes, columns) => {
        const text = rows.map((fields) => fields.join(',') + lineEnd).join('')
        const keys = columns.slice(0, attributes.length)
        const o = { division: new KeyDivision(attributes, 3), keys, threads: 3 }
        const plain = divideRows(batchOf(text, rows.length, false), o)
        expect(plain).toEqual(divideRows(batchOf(text, rows.length, true), o))
        expect(plain.reduce((sum, starts) => sum + starts.length, 0)).toBe(rows.length)
      },
    ),
    { numRuns: 500 },
  )
})

it('a number goes to the same thread however it is written', () => {
  const division = new KeyDivision([{ name: 'k', type: 'N' }], 64)
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
      fc.nat(5),
      fc.integer({ min: -30, max: 30 }),
      fc.constantFrom('e', 'E'),
      (whole, zeros, power, letter) => {
        const text = `${whole}${'0'.repeat(zeros)}${letter}${power}`
        const o = { division, keys: [0], threads: 64 }
        const thread = divideRows(batchOf(`${text}\n`, 1, false), o).findIndex((starts) => starts.length > 0)
        expect(thread).toBe(division.ofKey(canonicalNumber(text)))
      },
    ),
    { numRuns: 300 },
  )
})
