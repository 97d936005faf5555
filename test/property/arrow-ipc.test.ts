import { tableFromIPC } from 'apache-arrow'
import type { Data } from 'apache-arrow'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ColumnType, ColumnVector } from '../../src/core/batch.ts'
import { toArrowStream } from '../../src/formats/parquet/arrow-ipc.ts'

/** Each kind, what apache-arrow calls it, and the bytes of a value; 0: offsets. */
const KINDS: readonly [ColumnType, string, number][] = [
  [{ kind: 'bool' }, 'Bool', 1 / 8],
  [{ kind: 'int16' }, 'Int16', 2],
  [{ kind: 'int32' }, 'Int32', 4],
  [{ kind: 'int64' }, 'Int64', 8],
  [{ kind: 'float32' }, 'Float32', 4],
  [{ kind: 'float64' }, 'Float64', 8],
  [{ kind: 'utf8' }, 'Utf8', 0],
  [{ kind: 'json' }, 'Utf8', 0],
  [{ kind: 'binary' }, 'Binary', 0],
  [{ kind: 'uuid' }, 'FixedSizeBinary[16]', 16],
  [{ kind: 'date' }, 'Date32<DAY>', 4],
  [{ kind: 'time' }, 'Time64<MICROSECOND>', 8],
  [{ kind: 'timestamp', utc: false }, 'Timestamp<MICROSECOND>', 8],
  [{ kind: 'timestamp', utc: true }, 'Timestamp<MICROSECOND, UTC>', 8],
  [{ kind: 'decimal', precision: 38, scale: 10 }, 'Decimal[38e+10]', 16],
]

interface Made {
  readonly vector: ColumnVector
  readonly shown: string
}

/** A column of a kind: random bytes are values of it, whatever they mean. */
function column(
  kind: readonly [ColumnType, string, number],
  rows: readonly { bytes: Uint8Array; missing: boolean }[],
): Made {
  const [type, shown, width] = kind
  const length = rows.length
  const lengths = rows.map(({ bytes, missing }) => (missing ? 0 : bytes.length))
  const offsets = width === 0 ? Int32Array.from([0, ...lengths]) : null
  if (offsets !== null) for (let i = 1; i <= length; i += 1) offsets[i] = (offsets[i] ?? 0) + (offsets[i - 1] ?? 0)
  const all = Buffer.concat(rows.map(({ bytes }, i) => bytes.subarray(0, lengths[i])))
  const values =
    width === 0
      ? Uint8Array.from(all)
      : Uint8Array.from({ length: Math.ceil(length * width) }, (_, i) => (i * 37 + all.length) & 255)
  const nulls = rows.filter(({ missing }) => missing).length
  const vector = { type, length, nulls, validity: nulls === 0 ? null : bits(rows), offsets, values, items: null }
  return { vector, shown }
}

function bits(rows: readonly { missing: boolean }[]): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(rows.length / 8))
  for (const [i, { missing }] of rows.entries()) if (!missing) bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (1 << (i & 7))
  return bytes
}

/** Lists of `made`'s values, two each. */
function listOf({ vector, shown }: Made): Made {
  const length = Math.ceil(vector.length / 2)
  const offsets = Int32Array.from({ length: length + 1 }, (_, i) => Math.min(2 * i, vector.length))
  return {
    vector: {
      type: { kind: 'list', item: vector.type },
      length,
      nulls: 0,
      validity: null,
      offsets,
      values: new Uint8Array(0),
      items: vector,
    },
    shown: `List<${shown}>`,
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** Arrow's name of a type, which its declared type does not say that it has. */
function typeName({ type }: Data): string {
  return (type as { toString(): string }).toString()
}

function expectSame(data: Data, { vector, shown }: Made): void {
  expect(typeName(data)).toBe(shown)
  expect([data.length, data.nullCount]).toEqual([vector.length, vector.nulls])
  if (vector.validity !== null) expect(startOf(data.nullBitmap, vector.validity)).toEqual(bytesOf(vector.validity))
  if (vector.offsets !== null)
    expect([...data.valueOffsets.subarray(0, vector.length + 1)]).toEqual([...vector.offsets])
  const [child] = data.children
  if (vector.items !== null && child !== undefined)
    return expectSame(child, { vector: vector.items, shown: shown.slice(5, -1) })
  expect(vector.items).toBeNull()
  expect(startOf(data.values, vector.values)).toEqual(bytesOf(vector.values))
}

/** As many bytes of a buffer, which may be padded, as the vector's own has. */
function startOf(buffer: ArrayBufferView, own: Uint8Array): Buffer {
  return bytesOf(buffer).subarray(0, own.length)
}

const row = fc.record({ bytes: fc.uint8Array({ maxLength: 9 }), missing: fc.boolean() })
const columns = fc.array(
  fc.record({
    kind: fc.constantFrom(...KINDS),
    name: fc.string({ unit: 'grapheme', maxLength: 12 }),
    list: fc.nat({ max: 2 }),
  }),
  { minLength: 1, maxLength: 6 },
)

describe('an Arrow stream', () => {
  it('is read by apache-arrow as the vectors that it was made of', () => {
    fc.assert(
      fc.property(columns, fc.array(row, { maxLength: 200 }), fc.boolean(), (specs, rows, full) => {
        const values = full ? rows.map(({ bytes }) => ({ bytes, missing: false })) : rows
        const lists = Math.min(...specs.map(({ list }) => list))
        const made = specs.map(({ kind }) => {
          let one = column(kind, values)
          for (let i = 0; i < lists; i += 1) one = listOf(one)
          return one
        })
        const names = specs.map(({ name }, i) => `${i}${name}`)
        const length = made[0]?.vector.length ?? 0
        const table = tableFromIPC(
          toArrowStream(
            names,
            made.map(({ vector }) => vector),
            length,
          ),
        )
        expect(table.schema.fields.map(({ name, nullable }) => [name, nullable])).toEqual(
          names.map((name) => [name, true]),
        )
        expect(table.numRows).toBe(length)
        const [batch] = table.batches
        for (const [i, one] of made.entries()) {
          const data = batch?.data.children[i]
          if (data === undefined) expect(length).toBe(0)
          else expectSame(data, one)
        }
      }),
      { numRuns: 200 },
    )
  })

  it.each(KINDS)('says the type %o', (type, shown, width) => {
    const made = listOf(column([type, shown, width], []))
    const table = tableFromIPC(toArrowStream(['a'], [made.vector], 0))
    expect(table.schema.fields.map((field) => field.type.toString())).toEqual([made.shown])
  })
})
