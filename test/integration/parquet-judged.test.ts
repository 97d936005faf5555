import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Value } from '../../src/core/batch.ts'
import type { Column } from '../../src/core/schema.ts'
import { judge } from '../support/python-judge.ts'
import { fileOf, groupsOf, number, readAll, readerOf } from '../unit/formats/parquet/place.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-parquet-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const json = (text: string): Value => ({ kind: 'json', text })

const COLUMNS: readonly Column[] = [
  { name: 'n', layout: { kind: 'int32' } },
  { name: 'big', layout: { kind: 'int64' } },
  { name: 's', layout: { kind: 'utf8' } },
  { name: 'stamp', layout: { kind: 'timestamp', utc: false } },
  { name: 'zoned', layout: { kind: 'timestamp', utc: true } },
  { name: 'dec', layout: { kind: 'decimal', precision: 20, scale: 4 } },
  { name: 'small', layout: { kind: 'decimal', precision: 5, scale: 2 } },
  { name: 'd', layout: { kind: 'date' } },
  { name: 't', layout: { kind: 'time' } },
  { name: 'f', layout: { kind: 'float64' } },
  { name: 'f4', layout: { kind: 'float32' } },
  { name: 'i2', layout: { kind: 'int16' } },
  { name: 'b', layout: { kind: 'bool' } },
  { name: 'u', layout: { kind: 'uuid' } },
  { name: 'j', layout: { kind: 'json' } },
  { name: 'bin', layout: { kind: 'binary' } },
  { name: 'l', layout: { kind: 'list', item: { kind: 'int32' } } },
  { name: 'nothing', layout: { kind: 'utf8' } },
]

/** Row i: negative and positive numbers, texts past ASCII, microseconds; every seventh row is null throughout save `n`. */
function rowOf(i: number): Value[] {
  const n = number(String(i - 300))
  if (i % 7 === 3) return [n, ...COLUMNS.slice(1).map(() => null)]
  const micros = String(i).padStart(6, '0')
  return [
    n,
    number(String(BigInt(i - 300) * 10n ** 15n)),
    `${i % 2 ? 'é' : '😀'}${String(i).padStart(4, '0')}`,
    `1969-12-31T23:59:59.${micros}`,
    `2020-01-01T00:00:00.${micros}Z`,
    number(`${i - 300}.${String(i % 10_000).padStart(4, '0')}`),
    number(`${i - 300}.25`),
    `19${String(70 + (i % 30))}-02-03`,
    `01:02:03.${micros}`,
    number(String((i - 300) / 8)),
    number(String((i - 300) / 4)),
    number(String(i - 300)),
    i % 2 === 0,
    `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`,
    json(`{"i":${i}}`),
    Buffer.from([i & 255, 0xff, 0x80]),
    i % 5 === 0 ? json('[]') : json(`[${i},null]`),
    null,
  ]
}

/** Six row groups of 100 rows, each with its own range of every column. */
async function writtenFile(): Promise<string> {
  const rows = Array.from({ length: 600 }, (_, i) => rowOf(i))
  const groups = Array.from({ length: 6 }, (_, g) => rows.slice(g * 100, g * 100 + 100))
  const path = join(folder, 'ours.parquet')
  writeFileSync(path, await fileOf(groupsOf(COLUMNS, groups), { metadata: { 'sluice.job': 'j1' } }))
  return path
}

describe('files of ours', () => {
  let path = ''
  beforeAll(async () => {
    path = await writtenFile()
  })

  it('have the schema, the metadata and the row groups that pyarrow expects', async () => {
    const told = await judge(
      `
f = pq.ParquetFile(sys.argv[1])
out({'types': [str(f.schema_arrow.field(i).type) for i in range(len(f.schema_arrow))], 'groups': f.metadata.num_row_groups, 'rows': f.metadata.num_rows,
 'metadata': {k.decode(): v.decode() for k, v in (f.metadata.metadata or {}).items()}, 'by': f.metadata.created_by,
 'logical': {c.name: str(c.logical_type) for c in [f.schema.column(i) for i in range(18)]}, 'paths': [f.schema.column(16).path]})`,
      path,
    )
    expect(told).toMatchObject({
      groups: 6,
      rows: 600,
      metadata: { 'sluice.job': 'j1' },
      by: 'sluice version 0.1.0',
      paths: ['l.list.element'],
      logical: { u: 'UUID', j: 'JSON', s: 'String', d: 'Date', dec: 'Decimal(precision=20, scale=4)' },
    })
    expect(told).toHaveProperty('types.3', 'timestamp[us]')
    expect(told).toHaveProperty('types.4', 'timestamp[us, tz=UTC]')
    expect(told).toHaveProperty('types.11', 'int16')
  })

  it('have the types that DuckDB expects', async () => {
    const told = await judge(
      `out({r[0]: r[1] for r in duckdb.sql(f"describe select * from '{sys.argv[1]}'").fetchall()})`,
      path,
    )
    expect(told).toEqual({
      ...{ n: 'INTEGER', big: 'BIGINT', s: 'VARCHAR', stamp: 'TIMESTAMP', zoned: 'TIMESTAMP WITH TIME ZONE' },
      ...{
        dec: 'DECIMAL(20,4)',
        small: 'DECIMAL(5,2)',
        d: 'DATE',
        t: 'TIME',
        f: 'DOUBLE',
        f4: 'FLOAT',
        i2: 'SMALLINT',
      },
      ...{ b: 'BOOLEAN', u: 'UUID', j: 'JSON', bin: 'BLOB', l: 'INTEGER[]', nothing: 'VARCHAR' },
    })
  })

  it('have the same values for DuckDB, pyarrow and ourselves', async () => {
    const program = `
rows = duckdb.sql(f"select n, big, s, stamp::varchar, dec::varchar, small::varchar, d::varchar, t::varchar, f, f4, i2, b, u::varchar, j, hex(bin), l from '{sys.argv[1]}'").fetchall()
table = pq.read_table(sys.argv[1]).to_pylist()
same = all(r[0] == p['n'] and r[1] == p['big'] and r[2] == p['s'] and (r[4] is None) == (p['dec'] is None) and (r[4] is None or decimal.Decimal(r[4]) == p['dec']) and r[8] == p['f'] and r[15] == p['l'] and (r[3] is None or datetime.datetime.fromisoformat(r[3].ljust(26, '0') if '.' in r[3] else r[3]) == p['stamp']) for r, p in zip(rows, table))
out({'rows': rows, 'same': same and len(rows) == len(table)})`
    const { rows, same } = (await judge(program, path)) as { rows: unknown[][]; same: boolean }
    expect(same).toBe(true)
    expect(rows[1]).toEqual([
      ...[-299, -299_000_000_000_000_000, 'é0001', '1969-12-31 23:59:59.000001', '-299.0001', '-299.25', '1971-02-03'],
      ...['01:02:03.000001', -37.375, -74.75, -299, false, '00000000-0000-0000-0000-000000000001', '{"i":1}', '01FF80'],
      [1, null],
    ])
    const own = await readAll(await readFile(path))
    expect(own).toEqual(Array.from({ length: 600 }, (_, i) => rowOf(i).map((value) => plain(value))).map(trimmed))
  })

  it('are filtered right by their statistics', async () => {
    // Each predicate meets rows in one or some of the groups: a wrong minimum or maximum hides them.
    const predicates = Array.from({ length: 12 }, (_, k) => k * 50 + 1)
      .filter((i) => i % 7 !== 3)
      .flatMap((i) => {
        const [n, , s, stamp, zoned, dec, small] = rowOf(i).map((value) => textOf(value))
        return [
          `n = ${n}`,
          `big = ${BigInt(i - 300) * 10n ** 15n}`,
          `s = '${s}'`,
          `stamp = timestamp '${stamp?.replace('T', ' ')}'`,
          `zoned = timestamptz '${zoned?.replace('T', ' ').replace('Z', '+00')}'`,
          `dec = ${dec}`,
          `small = ${small}`,
          `f = ${(i - 300) / 8}`,
          `t = time '01:02:03.${String(i).padStart(6, '0')}'`,
          `u = '00000000-0000-0000-0000-${String(i).padStart(12, '0')}'`,
        ].map((where) => ({ where, i }))
      })
    const program = `
wheres = json.load(open(sys.argv[2]))
got = [duckdb.sql(f"select n from '{sys.argv[1]}' where {w}").fetchall() for w in wheres]
tables = []
for key in ('n', 'big', 's', 'stamp', 'zoned', 'dec', 'small', 'f', 't'):
    whole = pq.read_table(sys.argv[1])
    for value in [v for v in whole.column(key).unique().to_pylist() if v is not None][::37]:
        tables.append(pq.read_table(sys.argv[1], filters=[(key, '==', value)]).num_rows == pc.sum(pc.equal(whole.column(key), pa.scalar(value, whole.schema.field(key).type))).as_py())
nulls = pq.read_table(sys.argv[1], filters=pc.field('s').is_null()).num_rows
out({'got': [[r[0] for r in rows] for rows in got], 'tables': tables, 'nulls': nulls, 'duck': duckdb.sql(f"select count(*) from '{sys.argv[1]}' where s is null").fetchone()[0],
  'stats': [pq.ParquetFile(sys.argv[1]).metadata.row_group(0).column(i).is_stats_set for i in range(10)]})`
    const list = join(folder, 'wheres.json')
    writeFileSync(list, JSON.stringify(predicates.map(({ where }) => where)))
    const told = (await judge(program, path, list)) as Record<string, unknown[]> & { nulls: number; duck: number }
    expect(told['got']).toEqual(predicates.map(({ i }) => [i - 300]))
    expect(told['tables']?.length).toBeGreaterThan(50)
    expect(new Set(told['tables'])).toEqual(new Set([true]))
    expect(told['stats']).toEqual(Array.from({ length: 10 }, () => true))
    expect([told.nulls, told.duck]).toEqual([86, 86])
  })

  it('may be empty, of one row, of 1,600 columns, of a value of 20 MB', async () => {
    const many = Array.from({ length: 1600 }, (_, i): Column => ({ name: `c${i}`, type: 'string' }))
    const one: Column[] = [{ name: 'a', type: 'string' }]
    const files = {
      empty: await fileOf(groupsOf(COLUMNS, [])),
      one: await fileOf(groupsOf(one, [[['x']]])),
      wide: await fileOf(groupsOf(many, [[many.map(({ name }) => name)]])),
      long: await fileOf(groupsOf(one, [[['xy'.repeat(10_000_000)]], [['b']]])),
    }
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, `edge-${name}.parquet`), bytes)
    const program = `
def look(name):
    path = f'{sys.argv[1]}/edge-{name}.parquet'
    t = pq.read_table(path)
    return [t.num_rows, t.num_columns, duckdb.sql(f"select count(*) from '{path}'").fetchone()[0]]
out([look('empty'), look('one'), look('wide'), look('long'), duckdb.sql(f"select length(a) from '{sys.argv[1]}/edge-long.parquet' where a >= 'x'").fetchall()])`
    expect(await judge(program, folder)).toEqual([[0, 18, 0], [1, 1, 1], [1, 1600, 1], [2, 1, 2], [[20_000_000]]])
  })
})

/** As the reader gives a value back that was given as text. */
function plain(value: Value): Value {
  return value instanceof Uint8Array ? Uint8Array.from(value) : value
}

/** Fractions come back without zeros at their ends. */
function trimmed(row: readonly Value[]): Value[] {
  return row.map((value) =>
    typeof value === 'string' && /:\d{2}\.\d{6}Z?$/.test(value) ? value.replace(/\.?0+(Z?)$/, '$1') : value,
  )
}

function textOf(value: Value): string {
  return typeof value === 'string'
    ? value
    : typeof value === 'object' && value !== null && 'text' in value
      ? value.text
      : ''
}

const ALL_TYPES = `
D = decimal.Decimal
t = pa.table({
 'b': pa.array([True, None, False]), 'i8': pa.array([-1, None, 127], pa.int8()), 'u64': pa.array([2**64 - 1, None, 0], pa.uint64()),
 'i64': pa.array([-2**63, None, 2**63 - 1], pa.int64()), 'f': pa.array([0.1, None, float('nan')], pa.float32()),
 'd': pa.array([1e300, None, float('-inf')], pa.float64()), 'h': pa.array([1.5, None, 2], pa.float16()), 's': pa.array(['é', None, '']),
 'ls': pa.array(['é', None, ''], pa.large_string()), 'bin': pa.array([b'\\x00\\xff', None, b'']), 'fx': pa.array([b'abc', None, b'abd'], pa.binary(3)),
 'dec': pa.array([D('-12.30'), None, D('0.01')], pa.decimal128(5, 2)),
 'dec38': pa.array([D('-1234567890123456789012345678.1234567890'), None, D('0')], pa.decimal128(38, 10)),
 'dec60': pa.array([D('-' + '9' * 50 + '.5'), None, D('0')], pa.decimal256(60, 1)),
 'date': pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]), 't': pa.array([1, None, 86399999999], pa.time64('us')),
 'tms': pa.array([1, None, 3], pa.time32('ms')), 'ts': pa.array([-1, None, 1577934245123456], pa.timestamp('us')),
 'tz': pa.array([-1, None, 1577934245123456], pa.timestamp('us', 'Europe/Vienna')), 'ns': pa.array([-1, None, 1577934245123456789], pa.timestamp('ns')),
 'dict': pa.array(['x', None, 'y']).dictionary_encode(), 'l': pa.array([[1, None], None, []], pa.list_(pa.int64())),
 'st': pa.array([{'a': 1, 'b': 'q"'}, None, {'a': None, 'b': None}]), 'm': pa.array([[('k', 1)], None, []], pa.map_(pa.string(), pa.int32())),
 'nul': pa.nulls(3), 'll': pa.array([[['a'], []], None, [None]], pa.list_(pa.list_(pa.string()))),
 'uu': pa.array([uuid.UUID(int=5).bytes, None, uuid.UUID(int=2**128 - 1).bytes], pa.uuid()),
})
`
const NINES = '9'.repeat(50)
const EXPECTED: Readonly<Record<string, [Value, Value]>> = {
  b: [true, false],
  i8: [number('-1'), number('127')],
  u64: [number('18446744073709551615'), number('0')],
  i64: [number('-9223372036854775808'), number('9223372036854775807')],
  f: [number('0.1'), 'NaN'],
  d: [number('1e+300'), '-Infinity'],
  h: [number('1.5'), number('2')],
  s: ['é', ''],
  ls: ['é', ''],
  bin: [Uint8Array.of(0, 255), new Uint8Array(0)],
  fx: [Uint8Array.of(97, 98, 99), Uint8Array.of(97, 98, 100)],
  dec: [number('-12.30'), number('0.01')],
  dec38: [number('-1234567890123456789012345678.1234567890'), number('0.0000000000')],
  dec60: [number(`-${NINES}.5`), number('0.0')],
  date: ['0001-01-01', '9999-12-31'],
  t: ['00:00:00.000001', '23:59:59.999999'],
  tms: ['00:00:00.001', '00:00:00.003'],
  ts: ['1969-12-31T23:59:59.999999', '2020-01-02T03:04:05.123456'],
  tz: ['1969-12-31T23:59:59.999999Z', '2020-01-02T03:04:05.123456Z'],
  ns: ['1969-12-31T23:59:59.999999999', '2020-01-02T03:04:05.123456789'],
  dict: ['x', 'y'],
  l: [json('[1,null]'), json('[]')],
  st: [json('{"a":1,"b":"q\\""}'), json('{"a":null,"b":null}')],
  m: [json('{"k":1}'), json('{}')],
  nul: [null, null],
  ll: [json('[["a"],[]]'), json('[null]')],
  uu: ['00000000-0000-0000-0000-000000000005', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
}

describe('files of pyarrow and DuckDB', () => {
  it('are read exactly, whatever their codec, page version and encodings', async () => {
    const program = `${ALL_TYPES}
for codec in ('snappy', 'gzip', 'zstd', 'lz4', 'brotli', 'none'):
    for version in ('1.0', '2.0'):
        pq.write_table(t, f'{sys.argv[1]}/{codec}-{version}.parquet', compression=codec, data_page_version=version, use_dictionary=version == '1.0')
d = t.select(['i64', 's', 'l', 'ts'])
pq.write_table(d, f'{sys.argv[1]}/delta.parquet', use_dictionary=False, column_encoding={'i64': 'DELTA_BINARY_PACKED', 's': 'DELTA_BYTE_ARRAY', 'ts': 'DELTA_BINARY_PACKED'}, data_page_version='2.0')
pq.write_table(t.select(['d', 'f']), f'{sys.argv[1]}/split.parquet', use_dictionary=False, column_encoding={'d': 'BYTE_STREAM_SPLIT', 'f': 'BYTE_STREAM_SPLIT'})
pq.write_table(t.select(['ts', 'i64']), f'{sys.argv[1]}/int96.parquet', use_deprecated_int96_timestamps=True)
out(None)`
    await judge(program, folder)
    const names = ['snappy', 'gzip', 'zstd', 'lz4', 'brotli', 'none'].flatMap((codec) => [
      `${codec}-1.0`,
      `${codec}-2.0`,
    ])
    for (const name of [...names, 'delta', 'split', 'int96']) {
      const file = await readFile(join(folder, `${name}.parquet`))
      const { columns } = await readerOf(file)
      const expected = columns.map((column) => EXPECTED[column.name] ?? [undefined, undefined])
      const rows = [expected.map(([first]) => first), expected.map(() => null), expected.map(([, last]) => last)]
      expect(await readAll(file), name).toEqual(rows)
    }
  })

  it('may have row groups without rows', async () => {
    const path = join(folder, 'empty.parquet')
    const groups = await judge(
      `pq.write_table(pa.table({'id': pa.array([], pa.int64()), 's': pa.array([], pa.string())}), sys.argv[1])
meta = pq.ParquetFile(sys.argv[1]).metadata
out([meta.row_group(i).num_rows for i in range(meta.num_row_groups)])`,
      path,
    )
    expect(groups).toEqual([0])
    expect(await readAll(await readFile(path))).toEqual([])
  })

  it('have INT96 timestamps of every year', async () => {
    const path = join(folder, 'far.parquet')
    await judge(
      `pq.write_table(pa.table({'ts': pa.array([-62135596800000000, 253402300799999999, None, -1], pa.timestamp('us'))}), sys.argv[1], use_deprecated_int96_timestamps=True, store_schema=False)
out(None)`,
      path,
    )
    const stamps = ['0001-01-01T00:00:00', '9999-12-31T23:59:59.999999', null, '1969-12-31T23:59:59.999999']
    expect(await readAll(await readFile(path))).toEqual(stamps.map((stamp) => [stamp]))
  })

  it('of DuckDB, in several row groups, are read exactly', async () => {
    const path = join(folder, 'duck.parquet')
    await judge(
      `duckdb.sql(f"""copy (select i::hugeint::decimal(38,2) as dec, i as n, 'v' || i as s, [i, null] as l, {{'a': i}} as st, date '2000-01-01' + i::int as d,
 timestamptz '2020-01-01 00:00:00+00' + to_microseconds(i) as z, ('00000000-0000-0000-0000-' || lpad(i::varchar, 12, '0'))::uuid as u, i % 2 = 0 as b from range(5000) r(i)) to '{sys.argv[1]}' (format parquet, row_group_size 2048)""")
out(None)`,
      path,
    )
    const file = await readFile(path)
    expect((await readerOf(file)).groups.length).toBeGreaterThan(1)
    const rows = await readAll(file)
    expect(rows).toHaveLength(5000)
    expect(rows[4999]).toEqual([
      number('4999.00'),
      number('4999'),
      'v4999',
      json('[4999,null]'),
      json('{"a":4999}'),
      '2013-09-08',
      '2020-01-01T00:00:00.004999Z',
      '00000000-0000-0000-0000-000000004999',
      false,
    ])
  })
})
