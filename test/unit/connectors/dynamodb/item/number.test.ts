import { describe, expect, it } from 'vitest'
import { canonicalNumber, checkNumber } from '../../../../../src/connectors/dynamodb/item/number.ts'

describe('canonicalNumber', () => {
  it.each([
    ['0', '-0.00', '0e10'],
    ['1', '1.0', '01', '+1', '10e-1', '0.1E1'],
    ['-120', '-1.2e2', '-0120.000'],
    ['.5', '0.5', '5e-1'],
  ])('is one for all ways to write %s', (first, ...others) => {
    for (const other of others) expect(canonicalNumber(other)).toBe(canonicalNumber(first))
  })

  it('tells numbers apart', () => {
    const all = ['0', '1', '-1', '10', '0.1', '11', '1.1', '100'].map(canonicalNumber)
    expect(new Set(all).size).toBe(all.length)
  })
})

describe('checkNumber', () => {
  it.each(['1e125', '9.9e125', '1e-130', '1'.repeat(38), `${'1'.repeat(38)}000`, '-5.', '.5', `0.${'0'.repeat(60)}1`])(
    'takes %s as it is',
    (text) => expect(checkNumber(text)).toBe(text),
  )

  it.each([
    '',
    '-',
    '.',
    '1e126',
    '1e-131',
    '1'.repeat(39),
    `1.${'0'.repeat(40)}1`,
    'NaN',
    '1,5',
    '0x1',
    ' 1',
    '1e',
    '1.2.3',
  ])('refuses "%s"', (text) =>
    expect(() => checkNumber(text)).toThrow(expect.objectContaining({ code: 'SLUICE_VALUE' }) as Error),
  )
})
