import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ColumnsBuilder } from '../../../../../src/connectors/postgres/columns/binary-columns.ts'
import type { ColumnsPlan } from '../../../../../src/connectors/postgres/columns/binary-columns.ts'
import { ColumnBlocks } from '../../../../../src/connectors/postgres/columns/column-blocks.ts'
import type { ColumnType } from '../../../../../src/core/batch.ts'
import { vectorValues } from '../../../../support/vector-values.ts'

type Field = Buffer | null

const HEADER = Buffer.from([...Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), 0, 0, 0, 0, 0, 0, 0, 0])

function number(bytes: 2 | 4, value: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  buffer.writeIntBE(value, 0, bytes)
  return buffer
}

function message(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from('d'), number(4, payload.length + 4), payload])
}

function row(fields: readonly Field[]): Buffer {
  const parts = fields.map((field) =>
    field === null ? number(4, -1) : Buffer.concat([number(4, field.length), field]),
  )
  return Buffer.concat([number(2, fields.length), ...parts])
}

const planOf = (layouts: readonly ColumnType[]): ColumnsPlan => ({
  select: [],
  columns: layouts.map((layout, i) => ({ name: `c${i}`, layout })),
  onSpecial: 'null',
})

/** What came of rows: values by column, rows by batch, values that became NULL. */
interface Outcome {
  readonly values: unknown[][]
  readonly batches: number[]
  readonly specials: [string, number][]
}

/** All rows in chunks of a size. */
function atOnce(plan: ColumnsPlan, rows: readonly (readonly Field[])[], o: { chunk: number; bytes: number }): Outcome {
  const builder = new ColumnsBuilder(plan, { rows: 1500, bytes: o.bytes })
  const blocks = new ColumnBlocks(builder, { skip: 0, limit: Number.POSITIVE_INFINITY })
  const payloads = [...rows.map(row), number(2, -1)]
  payloads[0] = Buffer.concat([HEADER, payloads[0] ?? HEADER])
  const stream = Buffer.concat(payloads.map(message))
  const out: Outcome = { values: plan.columns.map(() => []), batches: [], specials: [] }
  let left = Buffer.alloc(0)
  for (let at = 0; at < stream.length; at += o.chunk) {
    const chunk = Buffer.concat([left, stream.subarray(at, at + o.chunk)])
    left = chunk.subarray(blocks.take(chunk, 0))
  }
  blocks.finish()
  for (let block = blocks.shift(); block !== undefined; block = blocks.shift()) add(out, block)
  return out
}

function add(out: Outcome, made: Pick<ReturnType<ColumnsBuilder['take']>, 'vectors' | 'rows' | 'specials'>): void {
  for (const [i, vector] of made.vectors.entries()) out.values[i]?.push(...vectorValues(vector))
  out.batches.push(made.rows)
  out.specials.push(...made.specials)
}

/** The same rows one after the other. */
function oneByOne(plan: ColumnsPlan, rows: readonly (readonly Field[])[], bytes: number): Outcome {
  const builder = new ColumnsBuilder(plan, { rows: 1500, bytes })
  const out: Outcome = { values: plan.columns.map(() => []), batches: [], specials: [] }
  builder.append(HEADER, 0, HEADER.length)
  for (const fields of rows) {
    const payload = row(fields)
    builder.append(payload, 0, payload.length)
    if (builder.full) add(out, builder.take())
  }
  if (builder.rows > 0) add(out, builder.take())
  return out
}

const bytesOf = (length: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => Buffer.from(bytes))
/** Mostly within a type's bounds, else anything. */
const near = (bytes: 4 | 8, most: bigint): fc.Arbitrary<Buffer> =>
  fc.bigInt(-(1n << BigInt(8 * bytes - 1)), (1n << BigInt(8 * bytes - 1)) - 1n).map((any) => {
    const buffer = Buffer.alloc(8)
    buffer.writeBigInt64BE(any % 5n === 0n ? any : any % most)
    return buffer.subarray(8 - bytes)
  })
const text = fc.oneof(
  { weight: 20, arbitrary: fc.uint8Array({ maxLength: 40, max: 127 }) },
  { weight: 1, arbitrary: fc.nat({ max: 90_000 }).map((length) => new Uint8Array(length).fill(97)) },
)
const KINDS: readonly { layout: ColumnType; field: fc.Arbitrary<Buffer> }[] = [
  { layout: { kind: 'bool' }, field: fc.constantFrom(Buffer.of(0), Buffer.of(1)) },
  { layout: { kind: 'int16' }, field: bytesOf(2) },
  { layout: { kind: 'int32' }, field: bytesOf(4) },
  { layout: { kind: 'int64' }, field: bytesOf(8) },
  { layout: { kind: 'uuid' }, field: bytesOf(16) },
  { layout: { kind: 'utf8' }, field: text.map((bytes) => Buffer.from(bytes)) },
  { layout: { kind: 'binary' }, field: text.map((bytes) => Buffer.from(bytes)) },
  { layout: { kind: 'date' }, field: near(4, 3_000_000n) },
  { layout: { kind: 'time' }, field: near(8, 86_400_000_001n).map(positive) },
  { layout: { kind: 'timestamp', utc: true }, field: near(8, 252_455_616_000_000_001n) },
  {
    layout: { kind: 'decimal', precision: 9, scale: 0 },
    field: fc.nat({ max: 9999 }).map((n) => Buffer.concat([1, 0, 0, 0, n].map((word) => number(2, word)))),
  },
  {
    layout: { kind: 'list', item: { kind: 'int32' } },
    field: fc.array(bytesOf(4), { minLength: 1, maxLength: 3 }).map((items) => {
      const head = [1, 0, 23, items.length, 1].map((word) => number(4, word))
      return Buffer.concat([...head, ...items.flatMap((item) => [number(4, 4), item])])
    }),
  },
]

/** A time is never below midnight. */
function positive(time: Buffer): Buffer {
  return Buffer.concat([Buffer.of((time[0] ?? 0) & 0x7f), time.subarray(1)])
}

const case_ = fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 8 }).chain((kinds) =>
  fc.record({
    plan: fc.constant(planOf(kinds.map(({ layout }) => layout))),
    rows: fc.array(fc.tuple(...kinds.map(({ field }) => fc.option(field, { freq: 6 }))), { maxLength: 60 }),
    times: fc.constantFrom(1, 1, 40),
    chunk: fc.constantFrom(97, 5000, 65_536, 200_000),
    bytes: fc.constantFrom(10_000, 1 << 25),
  }),
)

describe('rows that are taken at once', () => {
  it('become what they become one by one, however the stream is cut', () => {
    fc.assert(
      fc.property(case_, ({ plan, rows, times, chunk, bytes }) => {
        const all = Array.from({ length: times }, () => rows).flat()
        expect(atOnce(plan, all, { chunk, bytes })).toEqual(oneByOne(plan, all, bytes))
      }),
      { numRuns: 40 },
    )
  }, 30_000)

  it.each([1664, 1665])('may have %i columns', (count) => {
    const plan = planOf(Array.from({ length: count }, (_, i) => KINDS[i % 6]?.layout ?? { kind: 'utf8' }))
    const fields = plan.columns.map(({ layout }, i): Field => {
      if (i % 7 === 0) return null
      const bytes = { bool: 1, int16: 2, int32: 4, int64: 8, uuid: 16 }[layout.kind as string] ?? i % 600
      return Buffer.alloc(bytes, 1)
    })
    const rows = Array.from({ length: 5 }, () => fields)
    expect(atOnce(plan, rows, { chunk: 65_536, bytes: 1 << 25 })).toEqual(oneByOne(plan, rows, 1 << 25))
  })
})
