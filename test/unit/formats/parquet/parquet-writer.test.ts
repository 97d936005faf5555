import { describe, expect, it } from 'vitest'
import type { Value } from '../../../../src/core/batch.ts'
import type { Column } from '../../../../src/core/schema.ts'
import { openParquetEncoder } from '../../../../src/formats/parquet/parquet-encoder.ts'
import { fileOf, groupsOf, number, readAll, readerOf } from './place.ts'

const json = (text: string): Value => ({ kind: 'json', text })

/** A column of each layout with two values, as the reader gives them back. */
const EVERY: readonly [Column, Value, Value][] = [
  [{ name: 'bool', layout: { kind: 'bool' } }, true, false],
  [{ name: 'int16', layout: { kind: 'int16' } }, number('-32768'), number('32767')],
  [{ name: 'int32', layout: { kind: 'int32' } }, number('-2147483648'), number('2147483647')],
  [{ name: 'int64', layout: { kind: 'int64' } }, number('-9223372036854775808'), number('9223372036854775807')],
  [{ name: 'float32', layout: { kind: 'float32' } }, number('0.1'), 'NaN'],
  [{ name: 'float64', layout: { kind: 'float64' } }, number('1.7976931348623157e+308'), '-Infinity'],
  [{ name: 'utf8', layout: { kind: 'utf8' } }, 'žluťoučký 🐎', ''],
  [{ name: 'json', layout: { kind: 'json' } }, json('{"a":[1.10]}'), json('null')],
  [{ name: 'binary', layout: { kind: 'binary' } }, Uint8Array.of(0, 255), new Uint8Array(0)],
  [
    { name: 'uuid', layout: { kind: 'uuid' } },
    '123e4567-e89b-12d3-a456-426614174000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
  ],
  [{ name: 'date', layout: { kind: 'date' } }, '0001-01-01', '9999-12-31'],
  [{ name: 'time', layout: { kind: 'time' } }, '00:00:00', '23:59:59.999999'],
  [
    { name: 'stamp', layout: { kind: 'timestamp', utc: false } },
    '1969-12-31T23:59:59.999999',
    '2020-01-02T03:04:05.1234',
  ],
  [{ name: 'zoned', layout: { kind: 'timestamp', utc: true } }, '0044-03-15T00:00:00Z', '2020-01-02T03:04:05.123456Z'],
  [{ name: 'dec9', layout: { kind: 'decimal', precision: 9, scale: 2 } }, number('-1234567.89'), number('0.01')],
  [
    { name: 'dec38', layout: { kind: 'decimal', precision: 38, scale: 10 } },
    number('-9999999999999999999999999999.9999999999'),
    number('0.0000000001'),
  ],
  [{ name: 'list', layout: { kind: 'list', item: { kind: 'int64' } } }, json('[1,null,-3]'), json('[]')],
  [{ name: 'texts', layout: { kind: 'list', item: { kind: 'utf8' } } }, json('["a,\\"b",""]'), json('[null]')],
]

describe('a file that was written', () => {
  const columns = EVERY.map(([column]) => column)
  const first = EVERY.map(([, one]) => one)
  const second = EVERY.map(([, , two]) => two)
  const nulls = EVERY.map(() => null)

  it('gives every value of every layout back, from several row groups', async () => {
    const groups = [[first, nulls, second], [nulls], [second, first]]
    const file = await fileOf(groupsOf(columns, groups))
    expect(await readAll(file)).toEqual(groups.flat())
  })

  it.each(['zstd', 'gzip', 'lz4', 'brotli', 'none'] as const)('is the same by codec %s', async (codec) => {
    const file = await fileOf(groupsOf(columns, [[first, second]]), { codec, dictionary: false })
    expect(await readAll(file)).toEqual([first, second])
  })

  it('names its types, its maker and its metadata', async () => {
    const file = await fileOf(groupsOf(columns, [[first]]), { metadata: { 'sluice.job': 'é', empty: '' } })
    const reader = await readerOf(file)
    expect(reader.columns.map(({ name, layout }) => ({ name, layout }))).toEqual(
      columns.map(({ name, layout }) => ({ name, layout })),
    )
    expect(reader.metadata).toEqual({ 'sluice.job': 'é', empty: '' })
    expect(reader.createdBy).toBe('sluice version 0.1.0')
  })

  it('may have no row and no row group', async () => {
    for (const groups of [[], [[]]]) {
      const reader = await readerOf(await fileOf(groupsOf(columns, groups)))
      expect(reader.rows).toBe(0)
      expect(reader.columns).toHaveLength(columns.length)
    }
  })

  it('may have 1,600 columns', async () => {
    const many = Array.from({ length: 1600 }, (_, i): Column => ({ name: `c${i}`, type: i % 2 ? 'integer' : 'string' }))
    const row = many.map((_, i) => (i % 3 === 0 ? null : i % 2 ? number(String(i)) : `v${i}`))
    expect(await readAll(await fileOf(groupsOf(many, [[row]])))).toEqual([row])
  })

  it('may hold a value of 20 MB, without its bytes in the footer', async () => {
    const long = 'xyz'.repeat(20_000_000 / 3)
    const made = groupsOf([{ name: 'a', type: 'string' }], [[[long]], [['b']]])
    const file = await fileOf(made)
    expect(await readAll(file)).toEqual([[long], ['b']])
    expect(file.readUInt32LE(file.length - 8)).toBeLessThan(20_000)
  })
})

describe('the encoder', () => {
  const refused: readonly [string, readonly Column[]][] = [
    ['SLUICE_USAGE', []],
    ['SLUICE_PARQUET', [{ name: 'a', layout: { kind: 'decimal', precision: 39, scale: 0 } }]],
    ['SLUICE_PARQUET', ['a', 'a'].map((name): Column => ({ name, layout: { kind: 'int32' } }))],
    ['SLUICE_INTERNAL', [{ name: 'a' }]],
  ]
  it.each(refused)('refuses columns that make no file (%s)', (code, columns) => {
    expect(() => openParquetEncoder({ columns, codec: 'snappy', workers: 1 })).toThrow(
      expect.objectContaining({ code }),
    )
  })

  it('rejects what is being encoded when it is closed, and everything afterwards', async () => {
    const columns: Column[] = [{ name: 'a', type: 'string' }]
    const { batches, columns: laidOut } = groupsOf(columns, [[['x']], [['y']], [['z']]])
    const encoder = openParquetEncoder({ columns: laidOut, codec: 'snappy', workers: 1 })
    const pending = batches.map((batch) => encoder.encode(batch))
    const all = Promise.allSettled(pending)
    await encoder.close()
    const settled = await all
    expect(settled.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
    const [late] = groupsOf(columns, [[['x']]]).batches
    if (late !== undefined) await expect(encoder.encode(late)).rejects.toMatchObject({ code: 'SLUICE_PARQUET' })
  })
})
