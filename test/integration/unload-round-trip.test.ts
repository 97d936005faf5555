import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult, verify } from '../../src/index.ts'
import { makeLoadPlace, type LoadPlace } from '../support/load-place.ts'
import { freshBucket, sharedServices } from '../support/services.ts'

/** Every type of cli.md's map, some values at its edges, and NULL everywhere. */
const TABLE = `CREATE TABLE every (
  id bigint, si smallint, i int, r real, d double precision, b boolean, t text, v varchar(20), c char(5), day date, at time, stamp timestamp,
  zoned timestamptz, n numeric(20,4), loose numeric, u uuid, raw bytea, j json, jb jsonb, ints int[], texts text[], nums numeric(8,2)[], span interval,
  net inet, "Mixed, ""case""" text)`
const ROWS = `INSERT INTO every VALUES
  (1, -32768, -2147483648, 1.5, -2.25e-300, true, 'plain', 'v', 'c', '2024-02-29', '23:59:59.999999', '2024-02-29 12:34:56.123456',
   '2024-02-29 12:34:56.123456+02', 1234567890123456.7891, 3.141592653589793238462643383279, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00ff10',
   '{"a": [1, "x"]}', '{"b": null}', '{1,NULL,-3}', '{"a,b","say \\"hi\\"",NULL,""}', '{1.10,-2.00}', '1 year 2 mons 3 days 04:05:06', '10.0.0.1/8', 'q'),
  (9223372036854775807, 32767, 2147483647, 0.1, 1.7976931348623157e308, false, E'line\\nend, "quoted" and ü 東京 \\\\.', '', '', '0001-01-01', '00:00',
   '1970-01-01 00:00:00', '9999-12-31 23:59:59.999999+00', -0.0001, 1.10, '00000000-0000-0000-0000-000000000000', '', '[]', '"text"', '{}', '{}', '{}',
   '0', '::1', E'tab\\there'),
  (${Array.from({ length: 25 }, () => 'NULL').join(', ')})`

let place: LoadPlace
let bucket: string
let env: Record<string, string>
let url: string

beforeAll(async () => {
  place = await makeLoadPlace('postgres18', 'round_trip')
  const store = sharedServices().versitygw
  bucket = await freshBucket(store, 'round')
  env = { ...store.env }
  await place.sql(`${TABLE}; ${ROWS}; CREATE TABLE back (LIKE every)`)
  url = `${place.db.url}?table=every`
})
afterAll(() => place.close())

const move = (source: string, sink: string, options: CopyOptions = {}): Promise<JobResult> =>
  copy({ source, sink, options, env, stateDir: join(place.folder, 'state'), newJob: true })

/** Rows that one of the tables has and the other lacks. */
const differing = (): Promise<string> => {
  const columns = 'id, t, to_jsonb(x)::text'
  const side = (a: string, b: string): string =>
    `(SELECT ${columns} FROM ${a} x EXCEPT ALL SELECT ${columns} FROM ${b} x)`
  return place.sql(`${side('every', 'back')} UNION ALL ${side('back', 'every')}`)
}

describe.each(['csv', 'csv.gz', 'csv.zst', 'tsv', 'jsonl', 'jsonl.gz', 'parquet'])(
  'a table of every type by %s',
  (ending) => {
    it('comes back as it was, and verify says so', async () => {
      const object = `s3://${bucket}/every.${ending}`
      const out = await move(url, object)
      expect({ error: out.error, status: out.status }).toEqual({ error: undefined, status: 'done' })
      expect([out.rowsRead, out.rowsWritten, out.outputs.length, out.outputs[0]?.rows]).toEqual([3, 3, 1, 3])
      await place.sql('TRUNCATE back')
      const binary = ending.startsWith('jsonl') ? { type: ['raw=binary'] } : {}
      const into = await move(object, `${place.db.url}?table=back`, binary)
      expect({ error: into.error, status: into.status }).toEqual({ error: undefined, status: 'done' })
      expect(await differing()).toBe('')
      const compared = await verify(url, object, { options: {}, env, stateDir: join(place.folder, 'state') })
      expect(compared).toMatchObject({ same: true, source: { rows: 3 }, sink: { rows: 3 }, differences: [] })
      await place.sql(`UPDATE every SET i = 5 WHERE id = 1`)
      const changed = await verify(url, object, { options: {}, env, stateDir: join(place.folder, 'state') })
      expect(changed.same).toBe(false)
      expect(changed.differences.map(({ kind }) => kind).sort()).toEqual(['extra', 'missing'])
      await place.sql(`UPDATE every SET i = -2147483648 WHERE id = 1`)
    })
  },
)

describe('a query', () => {
  it.each(['csv', 'jsonl', 'parquet'])('is unloaded and verified as %s', async (ending) => {
    const file = join(place.folder, `query.${ending}`)
    const options = { query: 'SELECT id, i AS "number", t FROM every WHERE id IS NOT NULL ORDER BY id; -- all of it' }
    const out = await move(place.db.url, file, options)
    expect({ error: out.error, rows: out.rowsWritten }).toEqual({ error: undefined, rows: 2 })
    const compared = await verify(place.db.url, file, { options, env, stateDir: join(place.folder, 'state') })
    expect(compared).toMatchObject({ same: true, source: { rows: 2 } })
    rmSync(file)
  })
})

describe('a query that', () => {
  const run = (query: string, ending: string): Promise<JobResult> =>
    move(place.db.url, join(place.folder, `asked.${ending}`), { query, ifExists: 'overwrite' })

  it('gives two columns of one name is CSV with both, and an error for all else', async () => {
    const query = 'SELECT 1 AS a, 2 AS a'
    expect((await run(query, 'csv')).error).toBeUndefined()
    expect(readFileSync(join(place.folder, 'asked.csv'), 'utf8')).toBe('a,a\n1,2\n')
    for (const ending of ['jsonl', 'parquet'])
      expect(await run(query, ending)).toMatchObject({
        rowsRead: 0,
        error: { code: 'SLUICE_USAGE', hint: expect.stringContaining('AS') as string },
      })
  })

  it.each([
    ['writes by a function', "SELECT nextval('counter')", 'SLUICE_USAGE', 'read-only'],
    ['divides by zero', 'SELECT 1 / (id - 1) AS x FROM every', 'SLUICE_SQL', 'mend the query'],
    ['names no column', 'SELECT nothing FROM every', 'SLUICE_COLUMN_MISSING', 'in the query'],
    ['locks rows', 'SELECT id FROM every FOR UPDATE', 'SLUICE_USAGE', 'SELECT'],
    ['shows a setting', 'SHOW work_mem', 'SLUICE_USAGE', 'SELECT'],
    ['writes in a WITH', 'WITH x AS (DELETE FROM every RETURNING id) SELECT * FROM x', 'SLUICE_USAGE', 'SELECT'],
  ])('%s is told so', async (_, query, code, hint) => {
    await place.sql('CREATE SEQUENCE IF NOT EXISTS counter')
    const { error } = await run(query, 'csv')
    expect(error).toMatchObject({ code, hint: expect.stringContaining(hint) as string })
    expect(await place.sql('SELECT count(*) FROM every')).toBe('3')
  })

  it.each([
    'VALUES (1), (2)',
    'TABLE few',
    '(SELECT 1 UNION ALL SELECT 2)',
    'WITH x AS (SELECT 1) SELECT * FROM x UNION ALL SELECT 2',
  ])('only reads is read: %s', async (query) => {
    await place.sql('CREATE TABLE IF NOT EXISTS few AS SELECT generate_series(1, 2) AS i')
    expect(await run(query, 'csv')).toMatchObject({ status: 'done', rowsRead: 2 })
  })
})

describe('chosen and renamed columns', () => {
  it.each(['csv', 'jsonl', 'parquet'])('are unloaded and verified as %s', async (ending) => {
    const file = join(place.folder, `chosen.${ending}`)
    const options: CopyOptions = { select: ['t', 'id'], rename: ['t=words'] }
    const out = await move(url, file, options)
    expect({ error: out.error, rows: out.rowsWritten }).toEqual({ error: undefined, rows: 3 })
    const compared = await verify(url, file, { options, env, stateDir: join(place.folder, 'state') })
    expect(compared).toMatchObject({ same: true, source: { rows: 3 } })
    rmSync(file)
  })
})

describe('arrays and json that formats differ about', () => {
  const there = (format: string): string => join(place.folder, `odd.${format}`)
  const back = (): Promise<string> => place.sql('SELECT * FROM odd_back ORDER BY id')

  beforeAll(async () => {
    await place.sql(`CREATE TYPE pair AS (a int, b text);
      CREATE TABLE odd (id int, a int[], t text[], p pair[], ja jsonb[], j json, bx box[]);
      CREATE TABLE odd_back (LIKE odd);
      INSERT INTO odd VALUES (1, '{1,NULL}', '{}', ARRAY[ROW(1, 'a b'), NULL]::pair[], ARRAY['"x"', '[1,[2]]', '{"a":"]"}', '5', NULL]::jsonb[], '"null"',
        '{(1,1),(0,0);(2,2),(1,1)}'), (2, NULL, '{NULL,"NULL",""}', '{}', '{}', NULL, NULL)`)
  })

  it.each(['csv', 'jsonl', 'parquet'])('come back from %s as they were', async (format) => {
    await place.sql('TRUNCATE odd_back')
    const out = await move(`${place.db.url}?table=odd`, there(format))
    const into = await move(there(format), `${place.db.url}?table=odd_back`)
    expect([out.error, into.error]).toEqual([undefined, undefined])
    expect(await back()).toBe(await place.sql('SELECT * FROM odd ORDER BY id'))
  })

  it.each([
    ['a', "'[0:1]={1,2}'"],
    ['ja', "'{{1},{2}}'"],
    ['ja', "'{null}'"],
    ['j', "'null'"],
  ])('that JSON Lines merges are refused with row and column: %s = %s', async (column, value) => {
    const exact = value.replace('{null}', '{"null"}')
    const query = `SELECT 1 AS id, NULL::${column === 'a' ? 'int[]' : column === 'j' ? 'json' : 'jsonb[]'} AS ${column} UNION ALL SELECT 2, ${exact} ORDER BY id`
    const out = await move(place.db.url, there('refused.jsonl'), { query })
    expect(out).toMatchObject({ status: 'failed', error: { code: 'SLUICE_VALUE' } })
    expect(out.error?.where).toContain(`row 2, column ${column}`)
    expect(out.error?.hint).toContain('--on-special null')
    const asNull = await move(place.db.url, there('null.jsonl'), { query, onSpecial: 'null', ifExists: 'overwrite' })
    expect(asNull.warnings).toContain(`1 special value became NULL (--on-special null): ${column} (1)`)
    const csv = await move(place.db.url, there('null.csv'), { query, ifExists: 'overwrite' })
    expect(csv.error).toBeUndefined()
    await place.sql('TRUNCATE odd_back')
    await move(there('null.csv'), `${place.db.url}?table=odd_back`)
    expect(await place.sql(`SELECT ${column} FROM odd_back WHERE id = 2`)).toBe(exact.slice(1, -1))
    // Arrays as PostgreSQL writes them are read back so.
    if (column === 'j') return
    await move(place.db.url, there('text.jsonl'), { query, onSpecial: 'text', ifExists: 'overwrite' })
    await place.sql('TRUNCATE odd_back')
    const again = await move(there('text.jsonl'), `${place.db.url}?table=odd_back`)
    expect(again.error).toBeUndefined()
    expect(await place.sql(`SELECT ${column} FROM odd_back WHERE id = 2`)).toBe(exact.slice(1, -1))
  })
})

describe('a table without columns', () => {
  it('goes through JSON Lines with its rows; CSV and Parquet say that they hold none', async () => {
    await place.sql(
      'CREATE TABLE bare (); INSERT INTO bare DEFAULT VALUES; INSERT INTO bare DEFAULT VALUES; CREATE TABLE bare_back ()',
    )
    const lines = join(place.folder, 'bare.jsonl')
    expect((await move(`${place.db.url}?table=bare`, lines)).error).toBeUndefined()
    expect(await move(lines, `${place.db.url}?table=bare_back`)).toMatchObject({ status: 'done', rowsWritten: 2 })
    expect(await place.sql('SELECT count(*) FROM bare_back')).toBe('2')
    expect((await move(lines, `${place.db.url}?table=every`)).error?.code).toBe('SLUICE_COLUMN_MISSING')
    for (const ending of ['csv', 'parquet'])
      expect((await move(`${place.db.url}?table=bare`, join(place.folder, `bare.${ending}`))).error?.code).toBe(
        'SLUICE_USAGE',
      )
  })
})

describe('U+0000 in JSON', () => {
  it('is a character like any other, which PostgreSQL refuses with row and column', async () => {
    const source = join(place.folder, 'nul.jsonl')
    writeFileSync(source, '{"id":1,"t":"x"}\n{"id":2,"t":"a\\u0000b"}\n')
    const out = join(place.folder, 'nul-out.jsonl')
    expect((await move(source, out, { select: ['id', 't'] })).error).toBeUndefined()
    expect(readFileSync(out, 'utf8')).toBe(readFileSync(source, 'utf8'))
    const { error } = await move(source, `${place.db.url}?table=back`)
    expect(error).toMatchObject({ code: 'SLUICE_NUL', where: expect.stringMatching(/row 2 .*column t/) as string })
    expect((await move(source, `${place.db.url}?table=back`, { onNul: 'strip' })).error).toBeUndefined()
  })
})
