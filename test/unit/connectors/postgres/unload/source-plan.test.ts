import { describe, expect, it } from 'vitest'
import { onlyStatement } from '../../../../../src/connectors/postgres/unload/query.ts'
import {
  type Leaf,
  planTable,
  rangeSql,
  type TableRange,
} from '../../../../../src/connectors/postgres/unload/source-plan.ts'

const MIB = 1024 * 1024
const BLOCKS_OF_A_GIB = (1024 * MIB) / 8192
const leaf = (name: string, blocks: number | null, counted: Partial<Leaf> = {}): Leaf => ({
  schema: 'public',
  name,
  blocks,
  countedRows: (blocks ?? 0) * 100,
  countedBlocks: blocks ?? 0,
  ...counted,
})
const plan = (leaves: readonly Leaf[], o: { version?: number; direct?: boolean } = {}) =>
  planTable(
    { schema: 'public', name: 'people' },
    { leaves, direct: true, blockBytes: 8192, version: 150_000, url: 'postgres://h/d', ...o },
  )
const ranges = (partitions: ReturnType<typeof plan>) =>
  partitions.map((partition) => partition.state as unknown as TableRange)

describe('planTable', () => {
  it('leaves small tables whole, one partition each', () => {
    const partitions = plan([leaf('a', 0), leaf('B c', 4095)])
    expect(partitions.map((partition) => partition.id)).toEqual(['public.a/0001', 'public."B c"/0001'])
    expect(ranges(partitions)).toMatchObject([
      { name: 'a', start: null, end: null },
      { name: 'B c', start: null, end: null },
    ])
    expect(partitions.map((partition) => partition.rows)).toEqual([0, 409_500])
  })

  it.each([
    [0.25, 8],
    [1, 16],
    [8, 16],
    [64, 64],
  ])('cuts a table of %d GiB in %i ranges that join up, the last without an end', (gib, count) => {
    const blocks = gib * BLOCKS_OF_A_GIB
    const partitions = plan([leaf('people', blocks)])
    const all = ranges(partitions)
    expect(all).toHaveLength(count)
    expect(all[0]?.start).toBe(0)
    expect(all.at(-1)?.end).toBeNull()
    for (const [i, range] of all.entries()) if (i > 0) expect(range.start).toBe(all[i - 1]?.end)
    expect(partitions.reduce((sum, one) => sum + (one.bytes ?? 0), 0)).toBe(blocks * 8192)
    expect(partitions.reduce((sum, one) => sum + (one.rows ?? 0), 0)).toBe(blocks * 100)
  })

  it('cuts no ranges where the server reads the whole table for each, nor where there are no blocks', () => {
    expect(plan([leaf('people', BLOCKS_OF_A_GIB)], { version: 130_010 })).toHaveLength(1)
    const [view] = plan([leaf('seen', null, { countedRows: -1 })])
    expect(view).toMatchObject({ bytes: null, rows: null })
  })

  it('reads through the table above where its leaves may not be read', () => {
    const partitions = plan([leaf('a', 100), leaf('b', 200)], { direct: false })
    expect(partitions).toMatchObject([{ id: 'public.people/0001', bytes: 300 * 8192, rows: 30_000 }])
    expect(ranges(partitions)).toMatchObject([{ name: 'people', only: false, start: null, end: null }])
  })

  it.each<[string, Partial<Leaf>, number | null]>([
    ['never counted', { countedRows: -1, countedBlocks: 0 }, null],
    ['never counted, before PostgreSQL 14', { countedRows: 0, countedBlocks: 0 }, null],
    ['grown since', { countedRows: 50, countedBlocks: 10 }, 500],
  ])('guesses rows: %s', (_, counted, rows) => {
    expect(plan([leaf('people', 100, counted)])[0]?.rows).toBe(rows)
  })
})

describe('rangeSql', () => {
  it('bounds a range, of this table only', () => {
    const range = { schema: 's', name: 'q"t', only: true, start: 5, end: 10 }
    const where = `WHERE ctid >= '(5,0)'::tid AND ctid < '(10,0)'::tid`
    expect(rangeSql(range, ['"a"', '"b"'])).toBe(`SELECT "a", "b" FROM ONLY "s"."q""t" ${where}`)
    expect(rangeSql({ ...range, only: false, start: null, end: null }, ['1'])).toBe('SELECT 1 FROM "s"."q""t"')
  })
})

describe('onlyStatement', () => {
  it.each([
    ['SELECT 1', 'SELECT 1'],
    ['SELECT 1;', 'SELECT 1'],
    ['\uFEFFSELECT 1 ; ; -- end ;\n/* ; */', 'SELECT 1 '],
    ["SELECT ';', E'\\';', \";\", $$;$$, $a$ $$;$a$ -- ;", "SELECT ';', E'\\';', \";\", $$;$$, $a$ $$;$a$ -- ;"],
    ["SELECT '''', U&';' /* /* ; */ ; */ ;", "SELECT '''', U&';' /* /* ; */ ; */ "],
    ['SELECT a$b;', 'SELECT a$b'],
    [';\nSELECT 1', ' \nSELECT 1'],
    ['SELECT $1; ', 'SELECT $1'],
    ["SELECT 'standard\\';", "SELECT 'standard\\'"],
  ])('%j', (text, expected) => {
    expect(onlyStatement(text)).toBe(expected)
  })

  it.each(['SELECT 1; SELECT 2', "SELECT 'standard\\'; SELECT 2", 'SELECT $1$; DROP TABLE t', ';SELECT 1;x'])(
    'more than one: %j',
    (text) => {
      expect(() => onlyStatement(text)).toThrow(
        expect.objectContaining({ code: 'SLUICE_USAGE', message: expect.stringContaining('more than one') as string }),
      )
    },
  )

  it.each(['', ' ; -- nothing\n', '/* open'])('none: %j', (text) => {
    expect(() => onlyStatement(text)).toThrow(
      expect.objectContaining({ code: 'SLUICE_USAGE', message: expect.stringContaining('empty') as string }),
    )
  })
})
