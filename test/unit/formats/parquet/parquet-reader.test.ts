import { beforeAll, describe, expect, it } from 'vitest'
import type { Column } from '../../../../src/core/schema.ts'
import { fileOf, groupsOf, number, readAll, readerOf } from './place.ts'

const COLUMNS: readonly Column[] = [
  { name: 'n', type: 'integer' },
  { name: 's', type: 'string' },
]

/** Rows (1, aa), (2, bb), (3, cc) by pyarrow 26: no compression, no dictionary, pages of version 2 with checksums (`write_page_checksum`). */
const CHECKSUMMED =
  'UEFSMRUGFRwVHBWQvND9B0wVBhUAFQYVABUEFQASHAAAAAYBAQAAAAIAAAADAAAAFQYVKBUoFb60wuAFTBUGFQAVBhUAFQQVABIcAAAABgECAAAAYWECAAAAYmICAAAAY2MVBBk8NQAYBnNjaGVtYRUE' +
  'ABUCJQIYAmlkABUMJQIYAXMlAEwcAAAAFgYZHBksJgAcFQIZJQYAGRgCaWQVABYGFlgWWCYISRwVABUAFQIAPCkGGSYABgAAACYAHBUMGSUGABkYAXMVABYGFmQWZCZgSRwVABUAFQIAPBYMGQYZJgAG' +
  'AAAAFrwBFgYmCBa8AQAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjYuMC4xGSwcAAAcAAAAuwAAAFBBUjE='

let file: Buffer
beforeAll(async () => {
  file = await fileOf(
    groupsOf(
      COLUMNS,
      [0, 1, 2].map((g) => [[number(String(g)), `text ${g}`]]),
    ),
  )
})

describe('a reader', () => {
  it('reads no more than footer and group', async () => {
    const { openParquetReader } = await import('../../../../src/formats/parquet/parquet-reader.ts')
    const ranges: number[] = []
    const big = await fileOf(
      groupsOf(
        COLUMNS,
        [0, 1, 2].map((g) => [[number(String(g)), String(g).repeat(100_000)]]),
      ),
      {
        codec: 'none',
      },
    )
    const reader = await openParquetReader(({ start, end }) => {
      ranges.push(end - start)
      return Promise.resolve(big.subarray(start, end))
    }, big.byteLength)
    expect(reader.groups.map(({ rows, firstRow }) => [rows, firstRow])).toEqual([
      [1, 0],
      [1, 1],
      [1, 2],
    ])
    for await (const { rows } of reader.rowsOf(1, AbortSignal.timeout(20_000)))
      expect(rows).toEqual([[number('1'), '1'.repeat(100_000)]])
    expect(ranges.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(big.byteLength)
  })

  it('ends with its signal, and its thread is not used again in mid-group', async () => {
    const many = Array.from({ length: 5000 }, (_, i) => [number(String(i)), 'x'])
    const reader = await readerOf(await fileOf(groupsOf(COLUMNS, [many])))
    const controller = new AbortController()
    const read = async (): Promise<void> => {
      for await (const batch of reader.rowsOf(0, controller.signal)) if (batch.rows.length > 0) controller.abort()
    }
    await expect(read()).rejects.toThrow(/abort/i)
    let rows = 0
    for await (const batch of reader.rowsOf(0, AbortSignal.timeout(20_000))) rows += batch.rows.length
    expect(rows).toBe(5000)
  })
})

describe('a list of JSON', () => {
  it("says which of its documents are JSON's null", async () => {
    const columns: readonly Column[] = [{ name: 'l', layout: { kind: 'list', item: { kind: 'json' } } }]
    const made = groupsOf(columns, [
      [[null], [{ kind: 'json', text: '[{"a":1},2,null]' }], [{ kind: 'json', text: '[]' }]],
    ])
    // No text of a list says that an element is JSON's null: it is made one.
    const [items] = made.batches.map(({ vectors }) => vectors[0]?.items)
    items?.offsets?.set([0, 4, 8, 8])
    // Not Buffer.from: a thread cannot be given what lies in Node's pool.
    const values = new TextEncoder().encode('nullnull')
    const batches = made.batches.map((batch) => ({
      ...batch,
      vectors: batch.vectors.map((vector) => ({ ...vector, items: items ? { ...items, values } : null })),
    }))
    expect(await readAll(await fileOf({ ...made, batches }))).toEqual([
      [null],
      [{ kind: 'json', text: '[null,null,null]', documents: [0, 1] }],
      [{ kind: 'json', text: '[]' }],
    ])
  })
})

describe('a broken file', () => {
  const mended = (at: number, bytes: readonly number[]): Buffer => {
    const copy = Buffer.from(file)
    copy.set(bytes, at < 0 ? copy.length + at : at)
    return copy
  }

  it.each([
    ['of 0 bytes', (): Buffer => Buffer.alloc(0), /0 bytes/],
    ['that is no Parquet', (): Buffer => Buffer.from('a,b\n1,2\n3,4\n5,6\n'), /begin with "PAR1"/],
    ['that is cut', (): Buffer => file.subarray(0, file.length - 20), /end with "PAR1"/],
    ['that is encrypted', (): Buffer => mended(-4, [...Buffer.from('PARE')]), /encrypted/],
    ['with a footer longer than itself', (): Buffer => mended(-8, [255, 255, 255, 127]), /footer/],
    ['with a footer of no length', (): Buffer => mended(-8, [0, 0, 0, 0]), /footer makes no sense/],
    [
      'with rubbish as its footer',
      (): Buffer =>
        mended(
          -60,
          Array.from({ length: 50 }, () => 255),
        ),
      /cannot be read/,
    ],
  ])('%s is told', async (_, broken, message) => {
    await expect(readAll(broken())).rejects.toMatchObject({
      code: 'SLUICE_PARQUET',
      message: expect.stringMatching(message) as unknown,
    })
  })

  it('whose pages are rubbish is told, and the next file is read all the same', async () => {
    const reader = await readerOf(file)
    const [group] = reader.groups
    const broken = Buffer.from(file)
    broken.fill(0xee, group?.start, group?.end)
    await expect(readAll(broken)).rejects.toMatchObject({
      code: 'SLUICE_PARQUET',
      message: expect.not.stringMatching(/External|Error:|Parquet (argument )?error/) as unknown,
    })
    expect(await readAll(file)).toHaveLength(3)
  })

  it('with checksums of its pages is read, and one that does not fit is told with column and byte', async () => {
    const pages = Buffer.from(CHECKSUMMED, 'base64')
    const rows = [1, 2, 3].map((id) => [number(String(id)), 'abc'.charAt(id - 1).repeat(2)])
    expect(await readAll(pages)).toEqual(rows)
    for (const [text, column, byte] of [
      ['\x02\0\0\0\x03', 'id', 4],
      ['bb', 's', 48],
    ] as const) {
      const damaged = Buffer.from(pages)
      const at = damaged.indexOf(text)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      await expect(readAll(damaged)).rejects.toMatchObject({
        code: 'SLUICE_PARQUET',
        message: expect.stringContaining('a page is not what its checksum says') as unknown,
        where: { column, byte },
      })
    }
  })

  it('never crashes, whatever byte of its footer is another', async () => {
    const length = file.readUInt32LE(file.length - 8)
    const start = file.length - 8 - length
    for (let at = start; at < start + length; at += 1) {
      const copy = Buffer.from(file)
      copy[at] = (copy[at] ?? 0) ^ 0x41
      try {
        await readerOf(copy)
      } catch (error) {
        expect(error, `byte ${at}`).toMatchObject({ code: 'SLUICE_PARQUET' })
      }
    }
  })
})
