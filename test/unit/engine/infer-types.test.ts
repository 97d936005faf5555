import { describe, expect, it } from 'vitest'
import type { Value } from '../../../src/core/batch.ts'
import { TypeInferrer } from '../../../src/engine/infer-types.ts'

function infer(values: readonly Value[], typed = false): string {
  const inferrer = new TypeInferrer(['a'], { typed })
  inferrer.add(values.map((value) => [value]))
  const [column] = inferrer.result()
  return column?.integerBits === undefined ? (column?.type ?? '') : `${column.type} ${column.integerBits}`
}

describe('TypeInferrer', () => {
  it.each([
    [['1', '-5', '0'], 'integer 32'], [['2147483647', '-2147483648'], 'integer 32'], [['2147483648'], 'integer 64'], [['-2147483649'], 'integer 64'],
    [['9223372036854775807', '-9223372036854775808'], 'integer 64'], [['9223372036854775808'], 'integer more'], [['1', '2.5', '-0.25'], 'number'],
    [['true', 'false'], 'boolean'], [['2020-02-29'], 'date'], [['2020-01-01 10:00:00', '2020-01-01 10:00:00.5'], 'timestamp'],
    [['2020-01-01T10:00:00.000Z', '2020-01-01T10:00:00.120Z'], 'timestamptz'], [['2020-01-01 10:00:00+00'], 'timestamptz'],
  ])('%j is %s', (values, type) => {
    expect(infer(values)).toBe(type)
  }) // prettier-ignore

  it.each([
    [['01569']], [['+44']], [['1.10']], [['NaN']], [['-0']], [['1e5']], [['.5']], [['5.']], [['1', '']], [[' 1']], [['TRUE']], [['t', 'f']], [['true', '1']], [['2020-02-30']], [['2021-02-29']], [['0000-01-01']],
    [['2020-1-1']], [['2020-01-01', '2020-01-01 10:00:00']], [['2020-01-01 24:00:00']], [['2020-01-01 10:00:60']], [['2020-01-01 10:00:00+02']], [['2020-01-01 10:00:00.1234567']],
    [['2020-01-01T10:00:00', '2020-01-01 10:00:00']], [['2020-01-01 10:00:00.50', '2020-01-01 10:00:00.5']], [['1', 'x']], [[null, undefined]], [[]],
  ])('%j stays text', (values) => {
    expect(infer(values)).toBe('string')
  }) // prettier-ignore

  it('takes the types that JSON has, and looks for dates only in its strings', () => {
    expect(infer([{ kind: 'number', text: '1' }], true)).toBe('integer 32')
    expect(
      infer(
        [
          { kind: 'number', text: '1.10' },
          { kind: 'number', text: '1e5' },
        ],
        true,
      ),
    ).toBe('number')
    expect(infer([true, null], true)).toBe('boolean')
    expect(infer(['1', '2'], true)).toBe('string')
    expect(infer(['2020-01-01'], true)).toBe('date')
    expect(
      infer(
        [
          { kind: 'json', text: '{}' },
          { kind: 'json', text: '[1]' },
        ],
        true,
      ),
    ).toBe('json')
    expect(infer([{ kind: 'json', text: '{}' }, 'x'], true)).toBe('string')
    expect(infer([new Uint8Array(1)], true)).toBe('binary')
  })

  it.each([
    [['1'.repeat(38), `0.${'0'.repeat(60)}1`, `-${'9'.repeat(38)}`, '1.5'], undefined],
    [['1'.repeat(39)], true],
    [['1', `0.${'1'.repeat(39)}`], true],
    [['1'.repeat(39), 'x'], undefined],
  ])('%j has numbers of more than 38 digits: %j', (values, many) => {
    const inferrer = new TypeInferrer(['a'])
    inferrer.add(values.map((value) => [value]))
    expect(inferrer.result()[0]?.manyDigits).toBe(many)
  })

  it('says which columns had no value, and counts rows', () => {
    const inferrer = new TypeInferrer(['a', 'b'])
    inferrer.add([['1', '2'], [null, '3'], ['4']])
    inferrer.addText(1, 'x')
    expect(inferrer.rows).toBe(3)
    expect(inferrer.result()).toEqual([
      { name: 'a', type: 'integer', integerBits: 32, nullable: true },
      { name: 'b', type: 'string', nullable: true },
    ])
  })
})
