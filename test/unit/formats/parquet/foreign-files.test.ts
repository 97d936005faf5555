import { beforeEach, describe, expect, it } from 'vitest'
import type { Column } from '../../../../src/core/schema.ts'
import { fileEnd, footerOf, MAGIC } from '../../../../src/formats/parquet/footer.ts'
import { pagesEnd, writerFaults } from '../../../../src/formats/parquet/old-writers.ts'
import {
  readThrift,
  readThriftAt,
  thriftStruct,
  TYPE,
  writeThrift,
} from '../../../../src/formats/parquet/raw-thrift.ts'
import type { ThriftStruct } from '../../../../src/formats/parquet/raw-thrift.ts'
import { stampText } from '../../../../src/formats/parquet/time-text.ts'
import { fileOf, groupsOf, number, readAll, readerOf } from './place.ts'

/** `interval (i) month + interval (i * 2) day + interval (i * 3) second`, i from 0 to 2, by DuckDB 1.4.4, without compression. */
const INTERVALS =
  'UEFSMRUAFVQVVCwVBhUAFQYVBgAAAgAAAAYBAAAAAAAAAAAAAAAAAQAAAAIAAAC4CwAAAgAAAAQAAABwFwAAFQIZLDUAGA1kdWNrZGJfc2NoZW1hFQIAFQ4VGBUCGAJpdiUqABYGGRwZHCYAHBUOGQ' +
  'UZGAJpdhUAFgYWdhZ2JggAABZ2FgYmCBZ2ACgoRHVja0RCIHZlcnNpb24gdjEuNC40IChidWlsZCA2ZGRhYzgwMmZmKQB3AAAAUEFSMQ=='

const COLUMNS: readonly Column[] = [
  { name: 'n', type: 'integer' },
  { name: 's', type: 'string' },
]
const ROWS = [
  [number('1'), 'aa'],
  [number('2'), 'aa'],
]

let file: Buffer
beforeEach(async () => {
  file = await fileOf(groupsOf(COLUMNS, [ROWS]), { codec: 'none', dictionary: true })
})

/** The file with another footer. */
function withFooter(change: (footer: ThriftStruct) => void): Buffer {
  const footer = readThrift(footerOf(file))
  change(footer)
  return Buffer.concat([file.subarray(0, file.length - 8 - footerOf(file).length), fileEnd(writeThrift(footer))])
}

function chunks(footer: ThriftStruct): readonly ThriftStruct[] {
  return footer.structs(4).flatMap((group) => group.structs(1).flatMap((chunk) => chunk.struct(3) ?? []))
}

describe('what other writers make', () => {
  it('keeps the months of intervals', async () => {
    const rows = await readAll(Buffer.from(INTERVALS, 'base64'))
    expect(rows).toEqual([['PT0S'], ['P1M2DT3S'], ['P2M4DT6S']])
  })

  it('has years before Christ, of UTC too, as PostgreSQL reads them', () => {
    expect(stampText(-100_000_000_000n, 0, true)).toBe('1200-02-15T14:13:20Z BC')
    expect(stampText(-100_000_000_000_500n, 1)).toBe('1200-02-15T14:13:19.5 BC')
    expect(stampText(0n, 2, true)).toBe('1970-01-01T00:00:00Z')
  })

  it('has rows without columns', async () => {
    const footer = thriftStruct(
      [1, TYPE.i32, 2],
      [2, TYPE.list, { of: TYPE.struct, items: [thriftStruct([4, TYPE.binary, Buffer.from('schema')])] }],
      [3, TYPE.i64, 5000n],
      [
        4,
        TYPE.list,
        {
          of: TYPE.struct,
          items: [
            thriftStruct([1, TYPE.list, { of: TYPE.struct, items: [] }], [2, TYPE.i64, 0n], [3, TYPE.i64, 5000n]),
          ],
        },
      ],
    )
    const rows = await readAll(Buffer.concat([MAGIC, fileEnd(writeThrift(footer))]))
    expect(rows).toHaveLength(5000)
    expect(rows[0]).toEqual([])
  })

  it('may say 0 where there is no dictionary', async () => {
    const plain = await fileOf(groupsOf(COLUMNS, [ROWS]), { codec: 'none', dictionary: false })
    const footer = readThrift(footerOf(plain))
    for (const chunk of chunks(footer)) chunk.set(11, TYPE.i64, 0n)
    const body = plain.subarray(0, plain.length - 8 - footerOf(plain).length)
    expect(await readAll(Buffer.concat([body, fileEnd(writeThrift(footer))]))).toEqual(ROWS)
  })

  it('may not say how many rows the file has, but not another number', async () => {
    expect(await readAll(withFooter((footer) => footer.set(3, TYPE.i64, 0n)))).toEqual(ROWS)
    await expect(readAll(withFooter((footer) => footer.set(3, TYPE.i64, 3n)))).rejects.toMatchObject({
      code: 'SLUICE_PARQUET',
    })
  })

  it('may not say the repetition of required columns', async () => {
    const made = groupsOf(COLUMNS, [ROWS])
    file = await fileOf({ ...made, columns: made.columns.map((column) => ({ ...column, nullable: false })) })
    const silent = withFooter((footer) => {
      for (const element of footer.structs(2)) if (element.integer(3) === 0) element.delete(3)
    })
    expect(await readAll(silent)).toEqual(ROWS)
  })

  it('may have groups of no fields, which are passed over', async () => {
    const group = (name: string, children: number): ThriftStruct =>
      thriftStruct([3, TYPE.i32, 1], [4, TYPE.binary, Buffer.from(name)], [5, TYPE.i32, children])
    const odd = withFooter((footer) => {
      const [root, ...columns] = footer.structs(2)
      root?.set(5, TYPE.i32, 3)
      const [first, ...others] = columns
      const items = [root, first, group('outer', 1), group('inner', 0), ...others].filter((one) => one !== undefined)
      footer.set(2, TYPE.list, { of: TYPE.struct, items })
    })
    expect((await readerOf(odd)).columns.map(({ name }) => name)).toEqual(['n', 's'])
    expect(await readAll(odd)).toEqual(ROWS)
  })
})

describe('what old writers said wrongly', () => {
  it('is known by their name and version', () => {
    expect(writerFaults('parquet-mr')).toMatchObject({ shortChunks: true })
    expect(writerFaults('parquet-mr version 1.2.8 (build x)')).toMatchObject({ shortChunks: true })
    expect(writerFaults('parquet-mr version 1.13.1 (build x)')).toMatchObject({ shortChunks: false })
    expect(writerFaults('parquet-cpp version 1.5.1-SNAPSHOT')).toMatchObject({ unsaidCompression: true })
    for (const other of [null, 'parquet-cpp-arrow version 1.0.0', 'DuckDB', 'parquet-mr-like version 1.0.0'])
      expect(writerFaults(other), String(other)).toEqual({ shortChunks: false, unsaidCompression: false })
  })

  it('is a length too short by the header of a dictionary', async () => {
    const old = withFooter((footer) => {
      footer.set(6, TYPE.binary, Buffer.from('parquet-mr'))
      for (const chunk of chunks(footer)) {
        const place = chunk.integer(11) ?? 0
        const { end } = readThriftAt(file, place)
        chunk.set(7, TYPE.i64, BigInt((chunk.integer(7) ?? 0) - (end - place)))
      }
    })
    expect(await readAll(old)).toEqual(ROWS)
  })

  it('is that pages are not compressed: they are marked as they are', () => {
    const header = (compressed: boolean): Uint8Array =>
      writeThrift(
        thriftStruct(
          [1, TYPE.i32, 3],
          [2, TYPE.i32, 4],
          [3, TYPE.i32, 4],
          [8, TYPE.struct, thriftStruct([1, TYPE.i32, 2], [7, TYPE.true, compressed])],
        ),
      )
    const page = Buffer.concat([header(false), Buffer.alloc(4)])
    const body = Buffer.concat([page, page])
    expect(pagesEnd(body, { start: 0, values: 4, compress: true })).toBe(body.length)
    const marked = Buffer.concat([header(true), Buffer.alloc(4)])
    expect(body).toEqual(Buffer.concat([marked, marked]))
    expect(() => pagesEnd(body, { start: 0, values: 5, compress: true })).toThrow(RangeError)
  })
})
