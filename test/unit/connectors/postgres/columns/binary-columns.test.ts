import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ColumnsBuilder,
  planColumns,
  specialsWarning,
  type ColumnsPlan,
  type SourceColumn,
} from '../../../../../src/connectors/postgres/columns/binary-columns.ts'
import { ColumnBlocks } from '../../../../../src/connectors/postgres/columns/column-blocks.ts'
import type { ColumnType } from '../../../../../src/core/batch.ts'
import { SluiceError } from '../../../../../src/core/errors.ts'
import { vectorValues } from '../../../../support/vector-values.ts'

type Field = Buffer | null
const HEADER = Buffer.from([...Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), 0, 0, 0, 0, 0, 0, 0, 0])
const TRAILER = Buffer.from([0xff, 0xff])

const int16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value & 0xffff)
  return bytes
}
const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
const int64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes
}
const float = (size: 4 | 8, value: number): Buffer => {
  const bytes = Buffer.alloc(size)
  if (size === 4) bytes.writeFloatBE(value)
  else bytes.writeDoubleBE(value)
  return bytes
}
const field = (value: Field): Buffer => (value === null ? int32(-1) : Buffer.concat([int32(value.length), value]))
const tuple = (fields: readonly Field[]): Buffer => Buffer.concat([int16(fields.length), ...fields.map(field)])
const list = (items: readonly Field[], lower = 1): Buffer =>
  items.length === 0
    ? Buffer.concat([int32(0), int32(0), int32(23)])
    : Buffer.concat([int32(1), int32(0), int32(23), int32(items.length), int32(lower), ...items.map(field)])

/** As numeric_send writes units of 10^-scale: groups of four digits around the point, none of them zero at the ends. */
function numeric(units: bigint, scale: number): Buffer {
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, '0')
  const [before, behind] = [digits.slice(0, digits.length - scale), digits.slice(digits.length - scale)]
  const whole = before.padStart(Math.ceil(before.length / 4) * 4, '0')
  const text = whole + behind.padEnd(Math.ceil(behind.length / 4) * 4, '0')
  let groups = (text.match(/\d{4}/g) ?? []).map(Number)
  let weight = whole.length / 4 - 1
  while (groups.length > 0 && groups[0] === 0) {
    groups = groups.slice(1)
    weight -= 1
  }
  while (groups.at(-1) === 0) groups = groups.slice(0, -1)
  const head = [groups.length, groups.length === 0 ? 0 : weight, units < 0n ? 0x4000 : 0, scale]
  return Buffer.concat([...head, ...groups].map(int16))
}

const column = (name: string, baseTypeOid: number, o: Partial<SourceColumn> = {}): SourceColumn => ({
  name,
  type: 'a type',
  baseTypeOid,
  baseTypmod: -1,
  element: null,
  nullable: true,
  ...o,
})
const arrayOf = (typeOid: number, typmod = -1): Partial<SourceColumn> => ({
  element: { typeOid, typmod, type: 'a type', kind: 'b' },
})
const typmod = (precision: number, scale: number): number => ((precision << 16) | (scale & 0x7ff)) + 4
const planOf = (columns: readonly SourceColumn[], onSpecial?: 'error' | 'null' | 'text'): ColumnsPlan =>
  planColumns(columns, { onSpecial, warn: () => undefined })
const layoutPlan = (layout: ColumnType, onSpecial: 'error' | 'null' = 'error'): ColumnsPlan => ({
  select: ['"v"'],
  columns: [{ name: 'v', layout }],
  onSpecial,
})

/** What both ways of appending make of rows: one by one, and as many at once as there are. They must give the same, or fail with the same error. */
function build(plan: ColumnsPlan, rows: readonly (readonly Field[])[], most = 1_000): unknown[][] {
  const slow = outcomeOf(() => buildSlowly(plan, rows, most))
  const fast = outcomeOf(() => buildAtOnce(plan, rows, most))
  if (slow.error === null) expect(fast.columns).toEqual(slow.columns)
  else {
    const seen = ({ error }: Outcome): unknown => [error?.code, error?.message, error?.where]
    expect(seen(fast)).toEqual(seen(slow))
    throw slow.error
  }
  return slow.columns
}

interface Outcome {
  readonly columns: unknown[][]
  readonly error: SluiceError | null
}

function outcomeOf(run: () => unknown[][]): Outcome {
  try {
    return { columns: run(), error: null }
  } catch (error) {
    if (error instanceof SluiceError) return { columns: [], error }
    throw error
  }
}

/** Messages side by side, in chunks that cut them anywhere. */
function buildAtOnce(plan: ColumnsPlan, rows: readonly (readonly Field[])[], most: number): unknown[][] {
  const blocks = new ColumnBlocks(new ColumnsBuilder(plan, { rows: most, bytes: 1 << 20 }), {
    skip: 0,
    limit: Number.POSITIVE_INFINITY,
  })
  const payloads = rows.map(tuple)
  payloads[0] = Buffer.concat([HEADER, payloads[0] ?? TRAILER])
  if (rows.length > 0) payloads.push(TRAILER)
  const stream = Buffer.concat(
    payloads.map((payload) => Buffer.concat([Buffer.from('d'), int32(payload.length + 4), payload])),
  )
  let left = Buffer.alloc(0)
  for (let at = 0; at < stream.length; at += 777) {
    const chunk = Buffer.concat([left, stream.subarray(at, at + 777)])
    left = chunk.subarray(blocks.take(chunk, 0))
  }
  blocks.finish()
  expect(left).toHaveLength(0)
  const columns: unknown[][] = plan.columns.map(() => [])
  for (let block = blocks.shift(); block !== undefined; block = blocks.shift())
    for (const [i, vector] of block.vectors.entries()) columns[i]?.push(...vectorValues(vector))
  return columns
}

/** Rows through batches of at most so many; each message in a chunk with bytes around it. */
function buildSlowly(plan: ColumnsPlan, rows: readonly (readonly Field[])[], most: number): unknown[][] {
  const builder = new ColumnsBuilder(plan, { rows: most, bytes: 1 << 20 })
  const columns: unknown[][] = plan.columns.map(() => [])
  const take = (): void => {
    for (const [i, vector] of builder.take().vectors.entries()) columns[i]?.push(...vectorValues(vector))
  }
  const messages = [...rows.map(tuple), TRAILER]
  messages[0] = Buffer.concat([HEADER, messages[0] ?? TRAILER])
  for (const message of messages) {
    const chunk = Buffer.concat([Buffer.from('abc'), message, Buffer.from('z')])
    builder.append(chunk, 3, 3 + message.length)
    if (builder.full) take()
  }
  expect(builder.ended).toBe(true)
  take()
  return columns
}

const buildOne = (layout: ColumnType, values: readonly Field[], onSpecial: 'error' | 'null' = 'error'): unknown[] =>
  build(
    layoutPlan(layout, onSpecial),
    values.map((value) => [value]),
    7,
  )[0] ?? []

function failure(run: () => unknown): SluiceError {
  try {
    run()
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** Microseconds and days from 1970 to 2000. */
const EPOCH = 946_684_800_000_000n
const DAYS = 10_957n
const EDGES = { first: -62_135_596_800_000_000n, last: 253_402_300_799_999_999n }

describe('a random value of each type comes back', () => {
  interface Case {
    readonly layout: ColumnType
    readonly values: fc.Arbitrary<{ readonly wire: Buffer; readonly value: unknown }>
  }
  const bigints = (min: bigint, max: bigint): fc.Arbitrary<bigint> =>
    fc.oneof(fc.bigInt({ min, max }), fc.constantFrom(min, max, 0n, -1n > min ? -1n : min, 1n))
  const texts = fc
    .oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.string({ unit: 'grapheme', minLength: 20, maxLength: 90 }))
    .map((value) => ({ wire: Buffer.from(value), value }))
  const decimals = (precision: number, scale: number): Case => ({
    layout: { kind: 'decimal', precision, scale },
    values: fc
      .integer({ min: 0, max: precision })
      .chain((digits) => bigints(-(10n ** BigInt(digits)) + 1n, 10n ** BigInt(digits) - 1n))
      .map((value) => ({ wire: numeric(value, scale), value })),
  })
  const cases: readonly Case[] = [
    { layout: { kind: 'bool' }, values: fc.boolean().map((value) => ({ wire: Buffer.from([value ? 1 : 0]), value })) },
    {
      layout: { kind: 'int16' },
      values: bigints(-32768n, 32767n).map((value) => ({ wire: int16(Number(value)), value })),
    },
    {
      layout: { kind: 'int32' },
      values: bigints(-(2n ** 31n), 2n ** 31n - 1n).map((value) => ({ wire: int32(Number(value)), value })),
    },
    {
      layout: { kind: 'int64' },
      values: bigints(-(2n ** 63n), 2n ** 63n - 1n).map((value) => ({ wire: int64(value), value })),
    },
    { layout: { kind: 'float32' }, values: fc.float().map((value) => ({ wire: float(4, value), value })) },
    { layout: { kind: 'float64' }, values: fc.double().map((value) => ({ wire: float(8, value), value })) },
    { layout: { kind: 'utf8' }, values: texts },
    { layout: { kind: 'json' }, values: texts },
    {
      layout: { kind: 'binary' },
      values: fc.uint8Array({ maxLength: 60 }).map((bytes) => ({
        wire: Buffer.from(bytes),
        value: Buffer.from(bytes).toString('hex'),
      })),
    },
    {
      layout: { kind: 'uuid' },
      values: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => ({
        wire: Buffer.from(bytes),
        value: Buffer.from(bytes).toString('hex'),
      })),
    },
    {
      layout: { kind: 'date' },
      values: bigints(-719_162n, 2_932_896n).map((value) => ({ wire: int32(Number(value - DAYS)), value })),
    },
    { layout: { kind: 'time' }, values: bigints(0n, 86_399_999_999n).map((value) => ({ wire: int64(value), value })) },
    {
      layout: { kind: 'timestamp', utc: false },
      values: bigints(EDGES.first, EDGES.last).map((value) => ({ wire: int64(value - EPOCH), value })),
    },
    ...[[1, 0], [4, 4], [9, 2], [15, 0], [16, 3], [18, 6], [19, 0], [29, 9], [38, 0], [38, 10], [38, 38]].map(
      ([precision = 0, scale = 0]) => decimals(precision, scale),
    ),
  ] // prettier-ignore

  it.each(cases.map((one) => [JSON.stringify(one.layout), one] as const))('%s', (_, { layout, values }) => {
    fc.assert(
      fc.property(fc.array(fc.option(values), { maxLength: 40 }), (all) => {
        const wire = all.map((one) => one?.wire ?? null)
        const expected = all.map((one) => one?.value ?? null)
        expect(buildOne(layout, wire)).toEqual(expected)
        const pairs = [...all.keys()].map((i) => (i % 5 === 3 ? null : wire.slice(i, i + (i % 4))))
        const lists = pairs.map((items) => (items === null ? null : list(items)))
        const values2 = pairs.map((items, i) => (items === null ? null : expected.slice(i, i + items.length)))
        expect(buildOne({ kind: 'list', item: layout }, lists)).toEqual(values2)
      }),
      { numRuns: 60 },
    )
  })
})

describe('numerics', () => {
  it('take trailing zeros that were not stripped, and refuse digits behind the scale', () => {
    // 12.3400 in groups 12, 3400 and a zero group that numeric_send never sends.
    const long = Buffer.concat([3, 0, 0, 8, 12, 3400, 0].map(int16))
    expect(buildOne({ kind: 'decimal', precision: 6, scale: 2 }, [long])).toEqual([1234n])
    expect(buildOne({ kind: 'decimal', precision: 6, scale: 1 }, [long, null], 'null')).toEqual([null, null])
  })

  it.each([
    [numeric(1_000n, 2), 3, 2, '10.00'],
    [numeric(-(10n ** 38n), 0), 38, 0, `-1${'0'.repeat(38)}`],
    [numeric(10n ** 20n, 0), 18, 0, `1${'0'.repeat(20)}`],
    [numeric(5n, 7), 10, 6, '0.0000005'],
    [Buffer.concat([1, 30_000, 0, 0, 1].map(int16)), 38, 0, `1${'0'.repeat(59)}…`],
    [Buffer.concat([0, 0, 0xc000, 0].map(int16)), 5, 2, 'NaN'],
    [Buffer.concat([0, 0, 0xd000, 0].map(int16)), 5, 2, 'Infinity'],
    [Buffer.concat([0, 0, 0xf000, 0].map(int16)), 5, 2, '-Infinity'],
  ])('that do not fit are named: %#', (wire, precision, scale, text) => {
    const error = failure(() => buildOne({ kind: 'decimal', precision, scale }, [null, wire]))
    expect(error).toMatchObject({ code: 'SLUICE_VALUE', where: { row: 2, column: 'v' } })
    expect(error.message).toBe(`${text} is no decimal(${precision},${scale})`)
  })
})

describe('special values', () => {
  const timestamp: ColumnType = { kind: 'timestamp', utc: true }
  it.each<readonly [ColumnType, Buffer, string]>([
    [{ kind: 'date' }, int32(0x7fffffff), 'infinity is no date of the years 1 to 9999'],
    [{ kind: 'date' }, int32(-0x80000000), '-infinity is no date of the years 1 to 9999'],
    [{ kind: 'date' }, int32(-730_120), '0001-12-31 BC is no date of the years 1 to 9999'],
    [{ kind: 'date' }, int32(2_921_940), '10000-01-01 is no date of the years 1 to 9999'],
    [timestamp, int64(2n ** 63n - 1n), 'infinity is no timestamp of the years 1 to 9999'],
    [timestamp, int64(-(2n ** 63n)), '-infinity is no timestamp of the years 1 to 9999'],
    [timestamp, int64(EDGES.first - EPOCH - 1n), '0001-12-31 23:59:59.999999 BC is no timestamp of the years 1 to 9999'],
    [timestamp, int64(EDGES.last - EPOCH + 1n), '10000-01-01 00:00:00 is no timestamp of the years 1 to 9999'],
    [{ kind: 'time' }, int64(86_400_000_000n), '24:00:00 is no time before midnight'],
    [{ kind: 'list', item: { kind: 'date' } }, list([int32(0), int32(0x7fffffff)]), 'infinity is no date of the years 1 to 9999'],
    [{ kind: 'list', item: { kind: 'int32' } }, Buffer.concat([2, 0, 23, 1, 1, 1, 1].map(int32)), 'an array of 2 dimensions is no list'],
    [{ kind: 'list', item: { kind: 'int32' } }, list([int32(5), null], 0), 'an array whose first index is 0 is no list'],
  ])('%j %#: an error with its place, or NULL, counted', (layout, wire, message) => {
    const error = failure(() => buildOne(layout, [null, null, wire]))
    expect(error).toMatchObject({ code: 'SLUICE_VALUE', message, where: { row: 3, column: 'v' } })
    expect(error.hint).toContain('--on-special')

    const builder = new ColumnsBuilder(layoutPlan(layout, 'null'), { rows: 10, bytes: 1000 })
    builder.append(HEADER, 0, HEADER.length)
    for (const value of [wire, null, wire]) {
      const row = tuple([value])
      builder.append(row, 0, row.length)
    }
    const { vectors, rows, specials } = builder.take()
    const isItem = layout.kind === 'list' && layout.item.kind === 'date'
    const expected = isItem ? [-1n, null, -1n].map((one) => (one === null ? null : [DAYS, null])) : [null, null, null]
    expect(rows).toBe(3)
    expect(vectors.map(vectorValues)).toEqual([expected])
    expect([...specials]).toEqual([['v', 2]])
    expect(builder.take().specials.size).toBe(0)
  }) // prettier-ignore

  it('are told by column, the first ten of them', () => {
    expect(specialsWarning(new Map([['day', 1]]))).toBe('1 special value became NULL (--on-special null): day (1)')
    const many = new Map(Array.from({ length: 12 }, (_, i) => [`c${i}`, 2]))
    expect(specialsWarning(many)).toMatch(/^24 special values became NULL .*: c0 \(2\), .*, c9 \(2\) and 2 more$/)
  })

  it('rows count on from where the source says', () => {
    const builder = new ColumnsBuilder(layoutPlan({ kind: 'date' }), { rows: 10, bytes: 1000 })
    builder.nextRow = 501
    const [good, bad] = [tuple([int32(0)]), tuple([int32(0x7fffffff)])]
    builder.append(Buffer.concat([HEADER, good]), 0, HEADER.length + good.length)
    builder.take()
    expect(failure(() => builder.append(bad, 0, bad.length)).where).toEqual({ row: 502, column: 'v' })
  })
})

describe('batches', () => {
  it('are full at their rows or their bytes, own their memory, and say how much of it there is', () => {
    const plan = planOf([column('id', 23), column('name', 1043)])
    const builder = new ColumnsBuilder(plan, { rows: 3, bytes: 2000 })
    const chunk = Buffer.concat([HEADER, tuple([int32(1), Buffer.from('Ada')])])
    builder.append(chunk, 0, chunk.length)
    const row = tuple([int32(2), null])
    builder.append(row, 0, row.length)
    expect(builder.full).toBe(false)
    builder.append(row, 0, row.length)
    expect(builder.full).toBe(true)
    const { vectors, rows, bufferBytes } = builder.take()
    chunk.fill(0)
    expect([rows, vectors.map(vectorValues)]).toEqual([
      3,
      [
        [1n, 2n, 2n],
        ['Ada', null, null],
      ],
    ])
    // 12 of integers, 16 of offsets, 3 of text, one of validity.
    expect(bufferBytes).toBe(32)
    const buffers = vectors.flatMap((one) => [one.validity, one.offsets, one.values]).filter((one) => one !== null)
    expect(new Set(buffers.map((one) => one.buffer)).size).toBe(buffers.length)
    expect(buffers.map((one) => one.byteOffset)).toEqual(buffers.map(() => 0))

    const wide = tuple([int32(3), Buffer.alloc(2001, 'x')])
    builder.append(wide, 0, wide.length)
    expect([builder.rows, builder.full]).toEqual([1, true])
    expect(builder.take().vectors.map(vectorValues)).toEqual([[3n], ['x'.repeat(2001)]])
    expect(builder.take()).toMatchObject({ rows: 0, vectors: [{ length: 0 }, { length: 0 }] })
  })

  it('count NULLs of wide columns by the room they take', () => {
    const builder = new ColumnsBuilder(layoutPlan({ kind: 'uuid' }), { rows: 1000, bytes: 160 })
    builder.append(HEADER, 0, HEADER.length)
    const row = tuple([null])
    for (let i = 0; i < 10; i += 1) builder.append(row, 0, row.length)
    expect(builder.full).toBe(true)
  })

  it('an empty table has a header and a trailer in one message; a table without columns has rows', () => {
    expect(build(planOf([column('id', 23)]), [])).toEqual([[]])
    const builder = new ColumnsBuilder(planOf([]), { rows: 10, bytes: 1000 })
    const first = Buffer.concat([HEADER, tuple([])])
    builder.append(first, 0, first.length)
    expect(builder.take()).toEqual({ vectors: [], rows: 1, bufferBytes: 0, specials: new Map() })
  })

  it.each<readonly [string, Buffer]>([
    ['no header', tuple([int32(1)])],
    ['a flag that nobody knows', Buffer.concat([HEADER.subarray(0, 11), int32(1 << 16), int32(0), tuple([int32(1)])])],
    ['another count of fields', Buffer.concat([HEADER, tuple([int32(1), int32(1)])])],
    ['another size', Buffer.concat([HEADER, tuple([int64(1n)])])],
    ['a field that is cut', Buffer.concat([HEADER, tuple([int32(1)]).subarray(0, 8)])],
    ['a length that is cut', Buffer.concat([HEADER, tuple([int32(1)]).subarray(0, 4)])],
    ['bytes behind the row', Buffer.concat([HEADER, tuple([int32(1)]), Buffer.from([0])])],
  ])('%s is no row', (_, message) => {
    const builder = new ColumnsBuilder(planOf([column('id', 23)]), { rows: 10, bytes: 1000 })
    expect(failure(() => builder.append(message, 0, message.length)).code).toBe('SLUICE_PROTOCOL')
  })

  it('an extension of the header is passed over', () => {
    const builder = new ColumnsBuilder(planOf([column('id', 23)]), { rows: 10, bytes: 1000 })
    const message = Buffer.concat([HEADER.subarray(0, 15), int32(2), Buffer.from('xy'), tuple([int32(7)])])
    builder.append(message, 0, message.length)
    expect(builder.take().vectors.map(vectorValues)).toEqual([[7n]])
  })

  it.each([
    ['short', list([int32(1), int32(2)]).subarray(0, 26)],
    ['long', Buffer.concat([list([int32(1)]), Buffer.from([0])])],
    ['of more items than bytes', Buffer.concat([1, 0, 23, 0x7fffffff, 1].map(int32))],
  ])('an array that is %s is none', (_, wire) => {
    const error = failure(() => buildOne({ kind: 'list', item: { kind: 'int32' } }, [wire]))
    expect(error).toMatchObject({ code: 'SLUICE_PROTOCOL', where: { row: 1, column: 'v' } })
  })
})

describe('the plan', () => {
  const decimal = (precision: number, scale: number): ColumnType => ({ kind: 'decimal', precision, scale })
  it.each<readonly [string, SourceColumn, string, ColumnType]>([
    ['quotes names', column('a "b"', 23), '"a ""b"""', { kind: 'int32' }],
    ['bpchar keeps its blanks', column('v', 1042), '"v"', { kind: 'utf8' }],
    ['jsonb is read as text', column('v', 3802), '"v"::text', { kind: 'json' }],
    ['interval is its text', column('v', 1186), '"v"::text', { kind: 'utf8' }],
    ['timetz is its text', column('v', 1266), '"v"::text', { kind: 'utf8' }],
    ['a type of its own is its text', column('v', 90_000), '"v"::text', { kind: 'utf8' }],
    ['inet is its text without /32', column('v', 869), 'pg_catalog.textin(pg_catalog.inet_out("v"))', { kind: 'utf8' }],
    ['numeric(10,2)', column('v', 1700, { baseTypmod: typmod(10, 2) }), '"v"', decimal(10, 2)],
    ['numeric(38,38)', column('v', 1700, { baseTypmod: typmod(38, 38) }), '"v"', decimal(38, 38)],
    ['numeric(2,-3)', column('v', 1700, { baseTypmod: typmod(2, -3) }), '"v"', decimal(5, 0)],
    ['numeric(3,5)', column('v', 1700, { baseTypmod: typmod(3, 5) }), '"v"', decimal(5, 5)],
    ['numeric(39,2)', column('v', 1700, { baseTypmod: typmod(39, 2) }), '"v"::text', { kind: 'utf8' }],
    ['numeric', column('v', 1700), '"v"::text', { kind: 'utf8' }],
    ['int4[]', column('v', 1007, arrayOf(23)), '"v"', { kind: 'list', item: { kind: 'int32' } }],
    ['jsonb[]', column('v', 3807, arrayOf(3802)), '"v"::text[]', { kind: 'list', item: { kind: 'json' } }],
    ['inet[]', column('v', 1041, arrayOf(869)), '"v"::text::text[]', { kind: 'list', item: { kind: 'utf8' } }],
    ['numeric(4,1)[]', column('v', 1231, arrayOf(1700, typmod(4, 1))), '"v"', { kind: 'list', item: decimal(4, 1) }],
  ])('%s', (_, one, select, layout) => {
    const plan = planOf([one])
    expect([plan.select[0], plan.columns[0]?.layout]).toEqual([select, layout])
  }) // prettier-ignore

  it('warns once of numerics that become text, and --numeric makes decimals of them', () => {
    const columns = [column('a', 1700), column('b', 1231, arrayOf(1700)), column('c', 1700, { baseTypmod: typmod(5, 1) })]
    const warnings: string[] = []
    planColumns(columns, { warn: (message) => warnings.push(message) })
    expect(warnings).toEqual([expect.stringMatching(/^numeric columns a, b have .*--numeric/)])
    const plan = planColumns(columns, { numeric: 'decimal(20,4)', warn: (message) => warnings.push(message) })
    expect(warnings).toHaveLength(1)
    expect(plan.columns.map((one) => one.layout)).toEqual([decimal(20, 4), { kind: 'list', item: decimal(20, 4) }, decimal(5, 1)])
    expect(failure(() => planColumns([], { numeric: 'decimal(39)', warn: () => undefined })).code).toBe('SLUICE_USAGE')
  }) // prettier-ignore

  it('takes what may be special as text, or says that it may be NULL', () => {
    const columns = [
      column('day', 1082, { nullable: false }),
      column('n', 23, { nullable: false }),
      column('list', 1007, { ...arrayOf(23), nullable: false }),
    ]
    const text = planOf(columns, 'text')
    expect(text.select).toEqual(['"day"::text', '"n"', '"list"::text'])
    expect(text.columns.map((one) => one.layout.kind)).toEqual(['utf8', 'int32', 'utf8'])
    expect(planOf(columns, 'null').columns.map((one) => one.nullable)).toEqual([true, false, true])
    expect(planOf(columns).columns.map((one) => one.nullable)).toEqual([false, false, false])
  })
})
