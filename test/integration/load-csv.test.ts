import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { freshDatabase, type PostgresAddress, psql, sharedServices } from '../support/services.ts'

let folder = ''
let files = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-load-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe.each(['postgres15', 'postgres18'] as const)('CSV into %s', (server) => {
  let db: PostgresAddress & { drop(): Promise<void> }
  beforeAll(async () => {
    db = await freshDatabase(sharedServices()[server], 'load_csv')
  })
  afterAll(() => db.drop())

  async function load(
    text: string,
    ddl: string,
    options: CopyOptions = {},
  ): Promise<{ result: JobResult; rows: string }> {
    const source = join(folder, `${(files += 1)}.csv`)
    writeFileSync(source, text)
    await psql(db, `DROP TABLE IF EXISTS t; CREATE TABLE t (${ddl})`)
    const result = await copy({ source, sink: `${db.url}?table=t`, options, env: {}, stateDir: join(folder, 'state') })
    return { result, rows: await psql(db, 'SELECT * FROM t ORDER BY 1') }
  }

  it('matches columns by header name, whatever their order and case', async () => {
    const { result, rows } = await load('NAME,id\nAda,1\n"Grace",2\n', 'id int, name text')
    expect(result).toMatchObject({ status: 'done', rowsRead: 2, rowsWritten: 2, rowsSkipped: 0 })
    expect(rows).toBe('1|Ada\n2|Grace')
  })

  it('takes mixed line ends, blank lines, a line of \\. and embedded line ends', async () => {
    const { result, rows } = await load('id,name\r\n1,a\n\n2,"b\nc"\r\n3,\\.\n', 'id int, name text')
    expect(result).toMatchObject({ status: 'done', rowsRead: 3, rowsWritten: 3 })
    expect(rows).toBe('1|a\n2|b\nc\n3|\\.')
  })

  it('loads text as it stands, whatever kinds of blocks an extent has: plain, with a quote, with backslashes', async () => {
    const plain = (from: number): string =>
      Array.from({ length: 20_000 }, (_, i) => `${from + i},plain ${from + i}\n`).join('')
    const text = `id,name\n${plain(1)}20001,"a,\n\\N"\n${plain(20_002)}40002,C:\\new\\.\n40003,\\N\n${plain(40_004)}60004,""\n60005,\n`
    const { result } = await load(text, 'id int, name text')
    expect(result).toMatchObject({ status: 'done', rowsRead: 60_005, rowsWritten: 60_005 })
    expect(
      await psql(db, "SELECT id, quote_nullable(name) FROM t WHERE name IS DISTINCT FROM 'plain ' || id ORDER BY id"),
    ).toBe("20001|E'a,\n\\\\N'\n40002|E'C:\\\\new\\\\.'\n40003|E'\\\\N'\n60004|''\n60005|NULL")
  })

  it.each([
    ['numeric(10,2)', '1.255'],
    ['timestamp(3)', '2020-01-01 10:00:00.1234'],
    ['timestamp', '2020-01-01 10:00:00+02'],
    ['varchar(3)', 'abc '],
    ['int', 'x7'],
  ])('refuses for %s the value %s, with row and column, and leaves the table as it was', async (type, value) => {
    const { result, rows } = await load(`id,v\n1,\n2,${value}\n`, `id int, v ${type}`)
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_VALUE' } })
    expect(result.error?.where).toMatch(/ row 2 \(line 3, byte 8\), column v$/)
    expect(rows).toBe('')
  })

  it('names the row of a duplicate key', async () => {
    const { result, rows } = await load('id\n1\n2\n1\n', 'id int PRIMARY KEY')
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_DUPLICATE_KEY' } })
    expect(result.error?.where).toMatch(/ row 3 \(line 4, byte 7\)$/)
    expect(rows).toBe('')
  })

  it('names a key that comes twice, in the first and the last row of 40 MB: two lanes', async () => {
    const rest = 'x'.repeat(200)
    const middle = Array.from({ length: 200_000 }, (_, i) => `${i + 1},${rest}\n`).join('')
    const { result, rows } = await load(`id,v\n${middle}1,last\n`, 'id int PRIMARY KEY, v text', { concurrency: 2 })
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_DUPLICATE_KEY' } })
    expect(result.error?.where).toMatch(/ row \d+ \(line \d+, byte \d+\)/)
    expect(rows).toBe('')
  })

  it('says what a table lacks, and what a generated column makes by itself', async () => {
    const lacks = await load('id,b\n1,2\n', 'id int')
    expect(lacks.result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_COLUMN_MISSING' } })
    const generated = await load('id,b\n1,2\n', 'id int, b int GENERATED ALWAYS AS (id + 1) STORED')
    expect(generated.result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_COLUMN_GENERATED' } })
  })

  it('counts rows that a trigger drops as a failure, and commits nothing', async () => {
    await psql(
      db,
      `CREATE OR REPLACE FUNCTION drop_odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN NEW.id % 2 = 0 THEN NEW END; END $$`,
    )
    const made =
      'id int); CREATE TRIGGER d BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION drop_odd(); CREATE TEMP TABLE unused (id int'
    const { result, rows } = await load('id\n1\n2\n', made)
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_COUNTS' } })
    expect(rows).toBe('')
  })
})
