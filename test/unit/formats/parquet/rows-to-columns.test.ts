import { describe, expect, it } from 'vitest'
import type { Value } from '../../../../src/core/batch.ts'
import type { Column } from '../../../../src/core/schema.ts'
import { ColumnsBuilder } from '../../../../src/formats/parquet/rows-to-columns.ts'
import { number, rowsOf } from './place.ts'

function build(
  column: Column,
  values: readonly Value[],
  o: { typed?: boolean; onSpecial?: 'null' | 'text' } = {},
): ColumnsBuilder {
  const builder = new ColumnsBuilder({ columns: [column], ...o })
  builder.add(
    rowsOf(
      [column.name],
      values.map((value) => [value]),
    ),
  )
  return builder
}

const is = (type: Column['type'], nativeType?: string): Column => ({ name: 'c', type, nativeType })

describe('a value that its column cannot hold exactly', () => {
  const misfits: readonly [Column, Value][] = [
    [is('integer'), 'x'],
    [is('integer'), ''],
    [is('integer'), '1.5'],
    [is('integer'), '9223372036854775808'],
    [is('number'), '0.1000000000000000055'],
    [is('number'), number('12345678901234567890')],
    [is('number'), '1e999'],
    [is('number', 'numeric(5,2)'), '1.234'],
    [is('number', 'numeric(5,2)'), '1000'],
    [is('number', 'numeric(5,2)'), 'NaN'],
    [is('boolean'), 'yes'],
    [is('date'), '2021-02-29'],
    [is('date'), '0044-03-15 BC'],
    [is('time'), '24:00:00'],
    [is('time'), '25:00:00'],
    [is('timestamp'), '2020-01-01T00:00:00Z'],
    [is('timestamp'), '2020-01-01 00:00:00.1234567'],
    [is('timestamp'), 'infinity'],
    [is('json'), '{"a":'],
    [is('binary'), 'text'],
    [{ name: 'c', layout: { kind: 'uuid' } }, '123'],
    [{ name: 'c', layout: { kind: 'int16' } }, '32768'],
    [
      { name: 'c', layout: { kind: 'list', item: { kind: 'int32' } } },
      { kind: 'json', text: '[1,"a"]' },
    ],
    [{ name: 'c', layout: { kind: 'list', item: { kind: 'int32' } } }, '{1,2}'],
  ]
  it.each(misfits)('%j: %j is an error with row and column', (column, value) => {
    let thrown: unknown = null
    try {
      build(column, [null, value])
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: 'SLUICE_VALUE', where: { row: 2, column: 'c' } })
  })

  it('becomes null where specials shall', () => {
    const batch = build(is('timestamptz'), ['-infinity', '2020-01-01 01:00:00+01', '2020-01-01'], {
      onSpecial: 'null',
    }).take()
    const [vector] = batch.vectors
    expect(vector?.nulls).toBe(1)
    const { buffer, byteOffset } = vector?.values ?? new Uint8Array(24)
    const micros = [...new BigInt64Array(buffer, byteOffset, 3)]
    expect(micros).toEqual([0n, 1_577_836_800_000_000n, 1_577_836_800_000_000n])
  })
})

describe('columns that may have special values, where those shall be text', () => {
  it.each([
    [is('timestamptz'), ['-infinity', '2020-01-01 01:00:00+01']],
    [is('date'), ['0044-03-15 BC', '2020-01-01']],
    [is('time'), ['24:00:00', '12:00:00.5']],
    [is('number', 'numeric(5,2)'), ['NaN', '1.10']],
  ])('%j are text as a whole, others as ever', (column, values) => {
    const builder = build(column, values, { onSpecial: 'text' })
    expect(builder.columns).toEqual([{ ...column, layout: { kind: 'utf8' } }])
    expect(Buffer.from(builder.take().vectors[0]?.values ?? []).toString()).toBe(values.join(''))
    expect(build(is('integer'), ['1'], { onSpecial: 'text' }).columns[0]?.layout).toEqual({ kind: 'int64' })
  })

  it('are nullable where those shall be null', () => {
    const column = { ...is('date'), nullable: false }
    expect(build(column, ['infinity'], { onSpecial: 'null' }).columns[0]?.nullable).toBe(true)
    expect(build({ ...is('integer'), nullable: false }, ['1'], { onSpecial: 'null' }).columns[0]?.nullable).toBe(false)
  })
})

describe('columns', () => {
  it('are found by name, and missing ones are null', () => {
    const builder = new ColumnsBuilder({ columns: [{ name: 'a', type: 'integer' }, { name: 'b' }] })
    builder.add(rowsOf(['b', 'a'], [['x', '1']]))
    builder.add(rowsOf(['b'], [['y']]))
    expect(builder.rows).toBe(2)
    const { vectors, rows, columns } = builder.take()
    expect([rows, columns]).toEqual([2, ['a', 'b']])
    expect(vectors.map(({ nulls, length }) => [nulls, length])).toEqual([
      [1, 2],
      [0, 2],
    ])
    expect(builder.rows).toBe(0)
  })

  it('of JSON take JSON, and texts as JSON strings where values are typed', () => {
    const text = (values: readonly Value[], typed: boolean): string =>
      Buffer.from(build(is('json'), values, { typed }).take().vectors[0]?.values ?? []).toString()
    expect(text(['[1]', true, number('1.10')], false)).toBe('[1]true1.10')
    expect(text(['[1]', { kind: 'typed-json', text: '{"SS":["a"]}' }], true)).toBe('"[1]"["a"]')
  })
})
