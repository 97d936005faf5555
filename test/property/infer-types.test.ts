import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TypeInferrer } from '../../src/engine/infer-types.ts'

const cell = fc.oneof(
  fc.integer().map(String),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.tuple(fc.integer(), fc.nat(9999)).map(([whole, fraction]) => `${whole}.${fraction}`),
  fc.constantFrom(
    'true',
    'false',
    '',
    '-0',
    '01',
    '1.50',
    '2020-01-01',
    '2020-13-01',
    '2020-01-01 00:00:00.50',
    '2020-01-01T00:00:00Z',
  ),
  fc
    .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  fc.string({ maxLength: 4 }),
)
const column = fc.oneof(
  fc.array(cell, { maxLength: 6 }),
  fc.array(fc.integer().map(String)),
  fc.array(fc.double({ noNaN: true }).map(String)),
)

function infer(values: readonly string[]) {
  const inferrer = new TypeInferrer(['a'])
  for (const value of values) inferrer.addText(0, value)
  return inferrer.result()[0]
}

/** Writes a value as its type does where there is only one way; text that the type can't give back makes a difference. */
function writtenBack(value: string, type: string | undefined): string {
  if (type === 'integer') return String(BigInt(value))
  if (type === 'boolean') return String(value === 'true')
  if (type === 'number') return plain(value)
  if (type === 'date') return new Date(`${value}T00:00:00Z`).toISOString().slice(0, 10)
  return value
}

function plain(value: string): string {
  const [whole = '', fraction = ''] = value.split('.')
  const trimmed = fraction.replace(/0+$/, '')
  const integer = String(BigInt(whole === '-0' ? '0' : whole))
  return `${whole.startsWith('-') && integer === '0' && trimmed !== '' ? '-0' : integer}${trimmed === '' ? '' : `.${trimmed}`}`
}

describe('inference', () => {
  it('gives each value back as it was', () => {
    fc.assert(
      fc.property(column, (values) => {
        const inferred = infer(values)
        for (const value of values) expect(writtenBack(value, inferred?.type)).toBe(value)
      }),
    )
  })

  it('does not depend on the order of rows', () => {
    fc.assert(
      fc.property(
        column.chain((values) =>
          fc.tuple(fc.constant(values), fc.shuffledSubarray(values, { minLength: values.length })),
        ),
        ([values, shuffled]) => {
          expect(infer(shuffled)).toEqual(infer(values))
        },
      ),
    )
  })

  it('never narrows as rows come', () => {
    fc.assert(
      fc.property(column, cell, (values, next) => {
        if (values.length > 0 && infer(values)?.type === 'string') expect(infer([...values, next])?.type).toBe('string')
      }),
    )
  })

  it('says how wide integers are', () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }), { minLength: 1 }), (values) => {
        const fits = (bits: number) => values.every((value) => BigInt.asIntN(bits, value) === value)
        expect(infer(values.map(String))?.integerBits).toBe(fits(32) ? 32 : fits(64) ? 64 : 'more')
      }),
    )
  })
})
