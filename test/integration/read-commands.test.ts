import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  copy,
  type CopyOptions,
  inspect,
  type InspectRequest,
  type InspectResult,
  jobs,
  plan,
  type PlanResult,
  verify,
  type VerifyResult,
} from '../../src/index.ts'
import { done, type LoadPlace, makeLoadPlace } from '../support/load-place.ts'
import { freshBucket, s3Do, sharedServices } from '../support/services.ts'

const COLUMNS = 'id int, name text, price numeric(10,2)'
const FILE = 'id,name,price\n1,Ada,1.50\n2,"",2\n3,,-0.25\n4,"x\ny",\n'
const TABLE = `INSERT INTO t VALUES (1, 'Ada', 1.5), (2, '', 2), (3, NULL, -0.25), (4, E'x\\ny', NULL)`
/** How many tables, indexes and types the database has, temporary ones included, and its schemas. */
const CATALOG = `SELECT (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_type), (SELECT string_agg(nspname, ',' ORDER BY 1)
  FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_')`

let place: LoadPlace
let bucket = ''
const s3 = () => sharedServices().versitygw
const put = (key: string, body: string | Uint8Array) => s3Do(s3(), { method: 'PUT', path: `/${bucket}/${key}`, body })
const table = () => `${place.db.url}?table=t`

beforeAll(async () => {
  place = await makeLoadPlace('postgres15', 'read_commands')
  bucket = await freshBucket(s3(), 'read')
})
afterAll(() => place.close())

function check(source: string, sink: string, o: { limit?: number; options?: CopyOptions } = {}): Promise<VerifyResult> {
  const { limit, options = {} } = o
  return verify(source, sink, { options, env: s3().env, stateDir: join(place.folder, 'state'), limit })
}

describe('verify of a file and a table', () => {
  let file = ''
  beforeAll(() => {
    file = place.file('base.csv', FILE)
  })

  /** The file against a table that holds its rows, changed by a statement. */
  async function changed(sql: string, o: { limit?: number; options?: CopyOptions } = {}): Promise<VerifyResult> {
    await place.table(COLUMNS)
    await place.sql(`${TABLE}; ${sql}`)
    return check(file, table(), o)
  }

  it('says that both hold the same, from a file and from S3', async () => {
    const local = await changed('')
    expect(local).toMatchObject({ same: true, differences: [], source: { rows: 4 }, sink: { rows: 4 } })
    expect(local.source.hash).toBe(local.sink.hash)
    await put('v/base.csv', FILE)
    const remote = await check(`s3://${bucket}/v/base.csv`, table())
    expect(remote).toMatchObject({ same: true, source: { hash: local.source.hash, rows: 4 } })
  })

  it('does not mind the order of rows', async () => {
    await place.table(COLUMNS)
    await place.sql(
      `${TABLE}; CREATE TABLE u AS SELECT * FROM t ORDER BY id DESC; DROP TABLE t; ALTER TABLE u RENAME TO t`,
    )
    expect(await check(file, table())).toMatchObject({ same: true, differences: [] })
  })

  it.each([
    ['one value differs', `UPDATE t SET price = 1.51 WHERE id = 1`, 4, ['missing (1,Ada,1.50)', 'extra (1,Ada,1.51)']],
    ['a row is missing', `DELETE FROM t WHERE id = 1`, 3, ['missing (1,Ada,1.50)']],
    ['a row is too many', `INSERT INTO t VALUES (5, 'new', 0)`, 5, ['extra (5,new,0.00)']],
    ['a row is there twice', `INSERT INTO t VALUES (1, 'Ada', 1.5)`, 5, ['extra (1,Ada,1.50)']],
    ['NULL became ""', `UPDATE t SET name = '' WHERE id = 3`, 4, ['missing (3,,-0.25)', 'extra (3,"",-0.25)']],
    ['"" became NULL', `UPDATE t SET name = NULL WHERE id = 2`, 4, ['missing (2,"",2.00)', 'extra (2,,2.00)']],
    [
      'two values are swapped',
      `UPDATE t SET id = 3 - id WHERE id < 3`,
      4,
      ['missing (1,Ada,1.50)', 'missing (2,"",2.00)', 'extra (1,"",2.00)', 'extra (2,Ada,1.50)'],
    ],
  ])('sees that %s', async (_, sql, rows, differences) => {
    const result = await changed(sql)
    expect(result).toMatchObject({ same: false, source: { rows: 4 }, sink: { rows } })
    expect(result.differences.map(({ kind, text }) => `${kind} ${text}`).toSorted()).toEqual(differences.toSorted())
    expect(result.source.hash).not.toBe(result.sink.hash)
  })

  it('shows no more differences than it is asked to, of both kinds', async () => {
    const both = await changed(`UPDATE t SET price = 9`, { limit: 2 })
    expect(both.same).toBe(false)
    expect(both.differences.map((one) => one.kind).toSorted()).toEqual(['extra', 'missing'])
    expect((await changed(`UPDATE t SET price = 9`)).differences).toHaveLength(8)
    expect(await changed(`UPDATE t SET price = 9`, { limit: 0 })).toMatchObject({ same: false, differences: [] })
    const gone = await changed('DELETE FROM t', { limit: 3 })
    expect(gone.differences.map((one) => one.kind)).toEqual(['missing', 'missing', 'missing'])
  })

  it('shows ten unless it is told otherwise', async () => {
    await place.table('id int')
    const many = place.file('many.csv', `id\n${Array.from({ length: 30 }, (_, i) => `${i}\n`).join('')}`)
    expect((await check(many, table())).differences).toHaveLength(10)
  })

  it('compares the columns that the file has: the table may have more', async () => {
    expect(await changed(`ALTER TABLE t ADD COLUMN more text DEFAULT 'x'`)).toMatchObject({ same: true })
    expect(await changed(`ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (id + 1) STORED`)).toMatchObject({
      same: true,
    })
    expect(
      await changed(
        `ALTER TABLE t ALTER COLUMN id SET NOT NULL; ALTER TABLE t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY`,
      ),
    ).toMatchObject({ same: true })
  })

  it('reads the file by --select, --rename and --type, as copy does', async () => {
    const mapped = place.file('mapped.csv', 'no,title,unused\n1,a,x\n2,b,y\n')
    const options: CopyOptions = { select: ['no', 'title'], rename: ['no=id', 'title=name'], type: ['no=integer'] }
    await place.table('id int, name text')
    await place.sql(`INSERT INTO t VALUES (2, 'b'), (1, 'a')`)
    expect(await check(mapped, table(), { options })).toMatchObject({ same: true, source: { rows: 2 } })
    await place.sql(`UPDATE t SET name = 'c' WHERE id = 2`)
    expect((await check(mapped, table(), { options })).differences).toEqual([
      { kind: 'missing', text: '(2,b)' },
      { kind: 'extra', text: '(2,c)' },
    ])
  })

  it('compares by the types of the table, not by the text of the file', async () => {
    const typed = place.file('typed.csv', 'f,at,j,b\n1e2,2020-01-01T02:00:00+02,"{""a"":  1}",TRUE\n')
    await place.table('f float8, at timestamptz, j jsonb, b boolean')
    await place.sql(`INSERT INTO t VALUES (100, '2020-01-01 00:00:00Z', '{"a":1}', 'yes')`)
    expect(await check(typed, table())).toMatchObject({ same: true })
  })

  it('compares JSON Lines with a table, and several objects with one table', async () => {
    const lines = place.file('lines.jsonl', '{"id":1,"name":"Ada","price":1.50}\n{"id":3,"name":null,"price":-0.25}\n')
    await place.table(COLUMNS)
    await place.sql(`${TABLE}; DELETE FROM t WHERE id IN (2, 4)`)
    expect(await check(lines, table())).toMatchObject({ same: true, source: { rows: 2 } })
    await put('many/1.csv', 'id,name,price\n3,,-0.25\n')
    await put('many/2.csv', 'price,id,name\n1.5,1,Ada\n')
    expect(await check(`s3://${bucket}/many/`, table())).toMatchObject({ same: true, source: { rows: 2 } })
  })

  it('finds an empty table and an empty file the same', async () => {
    await place.table('id int')
    expect(await check(place.file('empty.csv', 'id\n'), table())).toMatchObject({ same: true, source: { rows: 0 } })
  })

  it('proves what copy did, and that a row of 60,000 changed since', async () => {
    const rows = Array.from({ length: 60_000 }, (_, i) => `${i},name ${i},${i % 7 === 0 ? '' : i / 100}\n`).join('')
    await place.table(COLUMNS)
    const big = place.file('big.csv', `id,name,price\n${rows}`)
    expect((await place.run(big, { query: 'SELECT count(*) FROM t' })).rows).toBe('60000')
    expect(await check(big, table())).toMatchObject({ same: true, source: { rows: 60_000 } })
    await place.sql(`UPDATE t SET name = upper(name) WHERE id = 54321`)
    expect((await check(big, table())).differences).toEqual([
      { kind: 'missing', text: '(54321,"name 54321",543.21)' },
      { kind: 'extra', text: '(54321,"NAME 54321",543.21)' },
    ])
  })

  it('leaves nothing in the database, nor in the state folder: same, different, failed', async () => {
    await changed('')
    const before = await place.sql(CATALOG)
    const jobsBefore = await jobs(join(place.folder, 'state'))
    await check(file, table())
    await check(place.file('other.csv', 'id\n77\n'), table())
    await expect(check(place.file('bad.csv', 'id\n1\nx\n'), table())).rejects.toMatchObject({ code: 'SLUICE_VALUE' })
    expect(await place.sql(CATALOG)).toBe(before)
    expect(await place.sql('SELECT count(*) FROM t')).toBe('4')
    expect(await jobs(join(place.folder, 'state'))).toEqual(jobsBefore)
  })

  it('names the place of a row that no such table can hold', async () => {
    await place.table('id int, price numeric(10,2)')
    const bad = place.file('bad2.csv', 'id,price\n1,1\n2,1.255\n')
    await expect(check(bad, table())).rejects.toMatchObject({
      code: 'SLUICE_VALUE',
      where: { url: bad, row: 2, line: 3, byte: 13, column: 'price' },
    })
  })

  it.each([
    ['of the only row', 'id,price\nx,1\n', { row: 1, line: 2, byte: 9, column: 'id' }],
    [
      'far inside',
      `id,price\n${'1,1\n'.repeat(50_000)}x,1\n${'1,1\n'.repeat(50_000)}`,
      { row: 50_001, line: 50_002, byte: 200_009 },
    ],
  ])('names the place of a value that the server refuses, %s', async (_, text, where) => {
    await place.table('id int, price numeric')
    const bad = place.file('bad3.csv', text)
    await expect(check(bad, table())).rejects.toMatchObject({ code: 'SLUICE_VALUE', where: { url: bad, ...where } })
  })

  it('names the object and the row in it, of several', async () => {
    await put('bad/1.csv', 'id\n1\n2\n')
    await put('bad/2.csv', 'id\n1\nx\n')
    await put('bad/3.csv', 'id\n1\n2\n')
    await place.table('id int')
    await expect(check(`s3://${bucket}/bad/`, table())).rejects.toMatchObject({
      code: 'SLUICE_VALUE',
      where: { url: `s3://${bucket}/bad/2.csv`, row: 2, line: 3, byte: 5, column: 'id' },
    })
  })

  it('names what is missing', async () => {
    await place.table('id int')
    const url = place.db.url
    await expect(check(join(place.folder, 'no.csv'), table())).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
      where: { url: join(place.folder, 'no.csv') },
    })
    await expect(check(`s3://${bucket}/no.csv`, table())).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
      where: { url: `s3://${bucket}/no.csv` },
    })
    await expect(check(file, `${url}?table=nowhere`)).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
      message: expect.stringContaining('nowhere') as string,
      where: { url: expect.stringContaining('table=nowhere') as string },
    })
    await expect(check(file, table())).rejects.toMatchObject({
      code: 'SLUICE_COLUMN_MISSING',
      message: expect.stringContaining('name') as string,
      where: { url: expect.stringContaining('table=t') as string },
    })
    await expect(check(file, url)).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
    await expect(check(file, table(), { options: { select: ['id', 'nome'] } })).rejects.toMatchObject({
      code: 'SLUICE_COLUMN_MISSING',
      message: expect.stringContaining('nome') as string,
      where: { url: file },
    })
  })
})

describe('verify of files', () => {
  it('compares bytes where both are of one format, here and on S3', async () => {
    const here = place.file('bytes.csv', FILE)
    await put('f/bytes.csv', FILE)
    const same = await check(here, `s3://${bucket}/f/bytes.csv`)
    const size = Buffer.byteLength(FILE)
    expect(same).toMatchObject({
      same: true,
      differences: [],
      source: { rows: null, bytes: size },
      sink: { bytes: size },
    })
    expect(same.source.hash).toBe(createHash('sha256').update(FILE).digest('hex'))
    await put('f/other.csv', FILE.replace('Ada', 'Adb'))
    const other = await check(here, `s3://${bucket}/f/other.csv`)
    expect(other).toMatchObject({ same: false, sink: { bytes: size } })
    const at = Buffer.from(FILE).indexOf('Ada') + 2
    expect(other.differences).toEqual([
      { kind: 'different', text: `from byte ${at} on; ${size} bytes and ${size} bytes` },
    ])
    await expect(check(here, `s3://${bucket}/f/none.csv`)).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND' })
  })

  it('names the files of two folders that differ, no more than it is asked to', async () => {
    for (const key of ['a/1.csv', 'a/2.csv', 'a/3.csv', 'b/1.csv', 'b/2.csv', 'b/4.csv'])
      await put(`two/${key}`, key === 'b/2.csv' ? 'id\n9\n' : 'id\n1\n')
    const [a, b] = [`s3://${bucket}/two/a/`, `s3://${bucket}/two/b/`]
    const { same, differences } = await check(a, b)
    expect(same).toBe(false)
    expect(differences).toEqual([
      { kind: 'different', text: expect.stringContaining('2.csv') as string },
      { kind: 'missing', text: expect.stringContaining('3.csv') as string },
      { kind: 'extra', text: expect.stringContaining('4.csv') as string },
    ])
    expect(await check(a, a)).toMatchObject({ same: true, differences: [] })
    const limited = await check(a, b, { limit: 1 })
    expect(limited).toMatchObject({ same: false })
    expect(limited.differences).toHaveLength(1)
  })
})

describe('plan', () => {
  const state = () => join(place.folder, 'plan-state')
  const planned = (source: string, sink: string, options: CopyOptions = {}): Promise<PlanResult> =>
    plan({ source, sink, options, env: s3().env, stateDir: state() })

  it('says what a load would run, and runs none of it', async () => {
    await place.table(COLUMNS)
    const file = place.file('plan.csv', FILE)
    const before = await place.sql(CATALOG)
    const made = await planned(file, table(), { beforeSql: ['DELETE FROM t'], afterSql: ['ANALYZE t'] })
    expect(made).toMatchObject({
      source: file,
      route: 'file → PostgreSQL',
      partitions: [{ url: file, bytes: Buffer.byteLength(FILE) }],
      partBytes: null,
      parts: null,
      columns: [
        { source: 'id', sink: 'id' },
        { source: 'name', sink: 'name' },
        { source: 'price', sink: 'price' },
      ],
      warnings: [],
    })
    expect(made.sql[0]).toBe('DELETE FROM t')
    expect(made.sql.slice(1, 3)).toEqual(['BEGIN', 'SET LOCAL lock_timeout = 10000'])
    expect(made.sql[3]).toMatch(/^COPY "public"."t" \("id", "name", "price"\) FROM STDIN WITH \(FORMAT csv, /)
    expect(made.sql.slice(4)).toEqual(['SET CONSTRAINTS ALL IMMEDIATE', 'COMMIT', 'ANALYZE t'])
    expect(made.lanes).toBeGreaterThan(1)
    expect(await planned(file, table(), { concurrency: 1 })).toMatchObject({ lanes: 1 })
    expect(await place.sql(CATALOG)).toBe(before)
    expect(await place.sql('SELECT count(*) FROM t')).toBe('0')
    expect(await jobs(state())).toEqual([])
  })

  it("tells each extent's transaction with its row of the ledger", async () => {
    await place.table('id int')
    const { sql } = await planned(place.file('ledger.csv', 'id\n1\n'), table(), {
      commit: 'partition',
      afterSql: ['ANALYZE t'],
    })
    const kinds = [
      'BEGIN',
      'SELECT',
      'CREATE',
      'CREATE',
      'CREATE',
      'COMMIT',
      'INSERT',
      'BEGIN',
      'SET',
      'INSERT',
      'COPY',
      'COMMIT',
    ]
    expect(sql.map((statement) => statement.split(' ')[0])).toEqual([...kinds, 'UPDATE', 'ANALYZE'])
  })

  it('tells TRUNCATE, and the one lane that it takes', async () => {
    await place.table('id int')
    await place.sql('INSERT INTO t VALUES (7)')
    const made = await planned(place.file('trunc.csv', 'id\n1\n'), table(), { mode: 'truncate' })
    expect(made).toMatchObject({ lanes: 1 })
    expect(made.sql.slice(0, 3)).toEqual(['BEGIN', 'SET LOCAL lock_timeout = 10000', 'TRUNCATE "public"."t"'])
    expect(await place.sql('SELECT id FROM t')).toBe('7')
  })

  it('gives the CREATE TABLE of inferred types, which PostgreSQL takes, and creates nothing', async () => {
    const text =
      'id,big,code,price,day,ok,at,note\n1,3000000000,007,1.25,2020-02-29,true,2020-01-01T00:00:00Z,\n2,,x,-3.5,,false,,y\n'
    await put('create/a.csv', text)
    const sink = `${place.db.url}?table=made`
    const options: CopyOptions = { create: true, type: ['note=varchar(5)'], rename: ['ok=fine'] }
    const made = await planned(`s3://${bucket}/create/a.csv`, sink, options)
    expect(made.sql[0]).toBe(
      `CREATE TABLE "public"."made" (\n  ${[
        '"id" integer',
        '"big" bigint',
        '"code" text',
        '"price" numeric',
        '"day" date',
        '"fine" boolean',
        '"at" timestamp with time zone',
        '"note" varchar(5)',
      ].join(',\n  ')}\n)`,
    )
    expect(made.columns).toContainEqual({ source: 'ok', sink: 'fine', type: 'boolean' })
    expect(await place.sql("SELECT to_regclass('made')")).toBe('')
    await place.sql(`${made.sql[0]}; DROP TABLE made`)
    // What was planned is what is done.
    const result = await copy({
      source: `s3://${bucket}/create/a.csv`,
      sink,
      options,
      env: s3().env,
      stateDir: join(place.folder, 'state'),
    })
    expect(result).toMatchObject({ status: 'done', rowsWritten: 2 })
    const types = `SELECT string_agg(format_type(atttypid, atttypmod), ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0`
    expect(await place.sql(types)).toBe(
      'integer,bigint,text,numeric,date,boolean,timestamp with time zone,character varying(5)',
    )
    await place.sql('DROP TABLE made')
  })

  it('counts the parts of files to S3, and puts nothing there', async () => {
    const empty = await freshBucket(s3(), 'plan')
    const MiB = 1024 * 1024
    const big = place.file('big.bin', new Uint8Array(12 * MiB + 1))
    expect(await planned(big, `s3://${empty}/big.bin`, { partSize: 5 * MiB })).toMatchObject({
      route: 'bytes',
      partBytes: 5 * MiB,
      parts: 3,
      partitions: [{ url: big, bytes: 12 * MiB + 1 }],
      sql: [],
      columns: [],
    })
    await put('parts/1.csv', 'id\n1\n')
    await put('parts/2.csv', 'id\n2\n')
    const two = await planned(`s3://${bucket}/parts/`, `s3://${empty}/to/`, { parallelism: 3 })
    expect(two).toMatchObject({ parts: 2, lanes: 3 })
    expect(two.partitions.map(({ url, bytes }) => [url, bytes])).toEqual([
      [`s3://${bucket}/parts/1.csv`, 5],
      [`s3://${bucket}/parts/2.csv`, 5],
    ])
    const rows = await planned(big.replace('big.bin', 'plan.csv'), `s3://${empty}/rows.jsonl`)
    expect(rows).toMatchObject({ route: 'rows → file', routeReason: 'csv becomes jsonl', parts: null, sql: [] })
    const listed = await s3Do(s3(), { method: 'GET', path: `/${empty}`, query: { 'list-type': '2' } })
    expect(listed.body.toString()).not.toContain('<Key>')
    const uploads = await s3Do(s3(), { method: 'GET', path: `/${empty}`, query: { uploads: '' } })
    expect(uploads.body.toString()).not.toContain('<UploadId>')
  })

  it('writes no file and makes no folder here', async () => {
    const file = place.file('here.csv', FILE)
    for (const sink of ['there.csv', 'there.jsonl', 'out/']) await planned(file, `${place.folder}/${sink}`)
    expect(readdirSync(place.folder).filter((name) => /^(there|out)/.test(name))).toEqual([])
    expect(await jobs(state())).toEqual([])
  })

  it('finds what a copy would find before any row is read', async () => {
    const file = place.file('fail.csv', FILE)
    await place.table('id int')
    const lacks = (text: string): unknown => expect.stringContaining(text)
    const cases: [() => Promise<unknown>, object][] = [
      [
        () => planned(join(place.folder, 'no.csv'), table()),
        { code: 'SLUICE_NOT_FOUND', where: { url: lacks('no.csv') } },
      ],
      [() => planned(`s3://${bucket}/no/`, table()), { code: 'SLUICE_NOTHING_MATCHES', where: { url: lacks('/no/') } }],
      [
        () => planned('s3://no-such-bucket-of-ours/a.csv', table()),
        { code: 'SLUICE_NOT_FOUND', where: { url: lacks('no-such') } },
      ],
      [
        () => planned(file, `${place.db.url}?table=nowhere`),
        { code: 'SLUICE_NOT_FOUND', where: { url: lacks('table=nowhere') } },
      ],
      [
        () => planned(file, table()),
        { code: 'SLUICE_COLUMN_MISSING', message: lacks('name'), where: { url: lacks('table=t') } },
      ],
      [
        () => planned(file, table(), { select: ['nome'] }),
        { code: 'SLUICE_COLUMN_MISSING', message: lacks('nome'), where: { url: file } },
      ],
      [
        () => planned(file, `s3://${bucket}/v/base.csv`),
        { code: 'SLUICE_EXISTS', where: { url: lacks('v/base.csv') } },
      ],
    ]
    for (const [made, error] of cases) await expect(made()).rejects.toMatchObject(error)
  })

  it('has no password in what it returns', async () => {
    await place.table('id int')
    const { password } = new URL(place.db.url)
    expect(password.length).toBeGreaterThan(3)
    const made = await planned(place.file('secret.csv', 'id\n1\n'), table())
    expect(JSON.stringify(made)).not.toContain(`:${password}@`)
  })
})

describe('inspect', () => {
  const inspected = (url: string, o: Partial<InspectRequest> = {}): Promise<InspectResult> =>
    inspect(url, { options: {}, env: s3().env, ...o })

  it('tells columns, types, sample and counts of a file and of an object', async () => {
    const file = place.file('look.csv', FILE)
    await put('look.csv', FILE)
    for (const url of [file, `s3://${bucket}/look.csv`])
      expect(await inspected(url)).toEqual({
        url,
        format: 'csv',
        compression: 'none',
        bytes: Buffer.byteLength(FILE),
        partitions: [{ url, bytes: Buffer.byteLength(FILE) }],
        columns: [
          { name: 'id', type: 'integer' },
          { name: 'name', type: 'string' },
          { name: 'price', type: 'string' },
        ],
        sample: [
          ['1', 'Ada', '1.50'],
          ['2', '', '2'],
          ['3', null, '-0.25'],
          ['4', 'x\ny', null],
        ],
        counts: { rows: 4, exact: true },
        warnings: [],
      })
  })

  it('samples as many rows as it is asked to, and with `full` counts and profiles all', async () => {
    const text = `id,v\n${Array.from({ length: 20_000 }, (_, i) => `${i},${i === 17_000 ? '123.25' : i % 2 ? '' : '1.5'}\n`).join('')}`
    const url = place.file('full.csv.gz', gzipSync(text))
    const short = await inspected(url, { rows: 3 })
    expect(short).toMatchObject({ compression: 'gzip', counts: { rows: null, exact: false }, sample: { length: 3 } })
    expect(short.profile).toBeUndefined()
    const full = await inspected(url, { full: true })
    expect(full).toMatchObject({ counts: { rows: 20_000, exact: true }, sample: { length: 10 } })
    expect(full.profile).toEqual([
      { name: 'id', type: 'integer', nulls: 0, min: '0', max: '19999', longest: 5, precision: 5, scale: 0 },
      { name: 'v', type: 'number', nulls: 10_000, min: '1.5', max: '123.25', longest: 6, precision: 5, scale: 2 },
    ])
  })

  it('tells the objects of a prefix, and all their rows', async () => {
    await put('pre/1.csv', 'id\n1\n')
    await put('pre/2.csv', 'id\n2\n3\n')
    const found = await inspected(`s3://${bucket}/pre/`, { full: true })
    expect(found).toMatchObject({ format: 'csv', bytes: 12, counts: { rows: 3, exact: true }, sample: { 2: ['3'] } })
    expect(found.partitions.map((one) => one.url)).toEqual([`s3://${bucket}/pre/1.csv`, `s3://${bucket}/pre/2.csv`])
  })

  it('gives a CREATE TABLE that PostgreSQL takes and the file then loads into', async () => {
    const text =
      'id,Mixed Name,select,at,day,ok,j\n1,"a""b",x,2020-01-01T00:00:00Z,2020-01-01,true,"[1]"\n3000000000,,y,,,false,\n'
    await place.table('id int')
    const url = place.file('2024 Sales-Data.csv', text)
    const { ddl } = await inspected(url, { full: true, ddl: 'postgres' })
    expect(ddl).toMatch(/^CREATE TABLE "public"\."2024_sales_data" \(/)
    expect(ddl).toContain('"id" bigint')
    expect(ddl).toContain('"Mixed Name" text')
    await place.sql(ddl ?? '')
    const { result, rows } = await place.run(url, {
      sink: `${place.db.url}?schema=public&table=2024_sales_data`,
      query: `SELECT id, "Mixed Name", "select", at AT TIME ZONE 'UTC' || '+00', day, ok FROM "2024_sales_data" ORDER BY 1`,
    })
    expect(result).toMatchObject(done(2))
    expect(rows).toBe('1|a"b|x|2020-01-01 00:00:00+00|2020-01-01|t\n3000000000|~|y|~|~|f')
  })

  it('makes a CREATE TABLE of all rows: the last of them decides too', async () => {
    const url = place.file('late.csv', `id,v\n${'1,2\n'.repeat(200_000)}x,3000000000\n`)
    const { ddl, counts } = await inspected(url, { ddl: 'postgres' })
    expect(ddl).toBe('CREATE TABLE "public"."late" (\n  "id" text,\n  "v" bigint\n)')
    expect(counts).toEqual({ rows: 200_001, exact: true })
    await place.sql(ddl ?? '')
    const { result } = await place.run(url, { sink: `${place.db.url}?table=late`, query: 'SELECT 1' })
    expect(result).toMatchObject(done(200_001))
  })

  it('gives a sample of more rows than it tells types by, if it is asked to', async () => {
    const url = place.file('wide.csv', `id\n${'1\n'.repeat(500_000)}`)
    expect((await inspected(url, { rows: 400_000 })).sample).toHaveLength(400_000)
  })

  it('describes a table, and its CREATE TABLE makes one of the same columns', async () => {
    await place.sql(`CREATE SCHEMA other; CREATE TABLE other."Mixed" ("Id" bigint PRIMARY KEY, name varchar(7) NOT NULL, price numeric(10,2), at timestamp(3), tags text[], u text UNIQUE);
      INSERT INTO other."Mixed" SELECT i, i::text FROM generate_series(1, 500) i; ANALYZE other."Mixed"`)
    const found = await inspected(`${place.db.url}?table=other."Mixed"`, { ddl: 'postgres' })
    expect(found).toMatchObject({
      format: 'PostgreSQL',
      columns: [
        { name: 'Id', type: 'integer', nativeType: 'bigint', nullable: false },
        { name: 'name', type: 'string', nativeType: 'character varying(7)', nullable: false },
        { name: 'price', type: 'number', nativeType: 'numeric(10,2)', nullable: true },
        { name: 'at', type: 'timestamp', nullable: true },
        { name: 'tags', nativeType: 'text[]' },
        { name: 'u', nativeType: 'text' },
      ],
      counts: { rows: 500, exact: false },
      table: { schema: 'other', name: 'Mixed', primaryKey: ['Id'] },
    })
    expect(found.bytes).toBeGreaterThan(0)
    expect(found.ddl).toMatch(/^CREATE TABLE "other"\."Mixed" \(/)
    const columns = `SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || attnotnull, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'other."Mixed"'::regclass AND attnum > 0`
    const before = await place.sql(columns)
    await place.sql('DROP TABLE other."Mixed"')
    await place.sql(found.ddl ?? '')
    expect(await place.sql(columns)).toBe(before)
  })

  it('names what is missing', async () => {
    const url = join(place.folder, 'no.csv')
    await expect(inspected(url)).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND', where: { url } })
    const object = `s3://${bucket}/no.csv`
    await expect(inspected(object)).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND', where: { url: object } })
    await expect(inspected(`${place.db.url}?table=nowhere`)).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
      where: { url: expect.stringContaining('table=nowhere') as string },
    })
    await expect(inspected(place.db.url)).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
    await expect(inspected(place.file('ragged.csv', 'a,b\n1,2\n3\n'), { full: true })).rejects.toMatchObject({
      code: 'SLUICE_CSV_FIELD_COUNT',
      where: { url: join(place.folder, 'ragged.csv'), row: 2, line: 3, byte: 8 },
    })
  })
})
