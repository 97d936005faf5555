import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CopyOptions } from '../../src/index.ts'
import { done, failed, type Loaded, type LoadPlace, makeLoadPlace } from '../support/load-place.ts'

describe.each(['postgres15', 'postgres18'] as const)('mapping into %s', (server) => {
  let place: LoadPlace
  beforeAll(async () => {
    place = await makeLoadPlace(server, 'load_mapping')
  })
  afterAll(() => place.close())

  const TEXT = 'id,name,note\n1,Ada,x\n2,,""\n3,"Grace ""H""",z\n'

  it.each<[string, CopyOptions, string, number, number]>([
    ['nothing', {}, '1|Ada|x\n2|~|\n3|Grace "H"|z', 3, 0],
    ['--select fewer', { select: ['id', 'note'] }, '1|~|x\n2|~|\n3|~|z', 3, 0],
    ['--select in another order', { select: ['note', 'id', 'name'] }, '1|Ada|x\n2|~|\n3|Grace "H"|z', 3, 0],
    ['--select in another case', { select: ['ID', 'Note'] }, '1|~|x\n2|~|\n3|~|z', 3, 0],
    ['--rename, crosswise', { rename: ['name=note', 'note=name'] }, '1|x|Ada\n2||~\n3|z|Grace "H"', 3, 0],
    ['--set in place of a column', { set: ['note=a=b'] }, '1|Ada|a=b\n2|~|a=b\n3|Grace "H"|a=b', 3, 0],
    ['--set to nothing', { set: ['note='] }, '1|Ada|\n2|~|\n3|Grace "H"|', 3, 0],
    ['--replace', { replace: ['name=/a/b/', 'name=|"(.)"|<$1>|'] }, '1|Adb|x\n2|~|\n3|Grbce <H>|z', 3, 0],
    ['--replace without case', { replace: ['name=/A/-/i'] }, '1|-d-|x\n2|~|\n3|Gr-ce "H"|z', 3, 0],
    ['--skip-if-empty, NULL', { skipIfEmpty: ['name'] }, '1|Ada|x\n3|Grace "H"|z', 2, 1],
    ['--skip-if-empty, the empty string', { skipIfEmpty: ['note'] }, '1|Ada|x\n3|Grace "H"|z', 2, 1],
    ['--skip-if-empty of a column that is not chosen', { skipIfEmpty: ['note'], select: ['id'] }, '1|~|~\n3|~|~', 2, 1],
    ['--columns and --header', { columns: ['id', 'note', 'name'], header: true }, '1|x|Ada\n2||~\n3|z|Grace "H"', 3, 0],
  ])('%s', async (_, options, rows, written, skipped) => {
    const loaded = await place.text(TEXT, 'id int, name text, note text', options)
    expect(loaded).toMatchObject({ result: done(written, skipped), rows })
  })

  it('--skip-if-empty that leaves nothing', async () => {
    const loaded = await place.text('id,v\n1,\n2,""\n', 'id int, v text', { skipIfEmpty: ['v'] })
    expect(loaded).toMatchObject({ result: done(0, 2), rows: '' })
  })

  it('rows behind those that are left out, and behind quotes, keep their places', async () => {
    const text = 'id,v,w\n1,,x\n2,"a\nb",x\n3,,x\n4,d,\n5x,e,x\n'
    const flags = { skipIfEmpty: ['v', 'w'], select: ['v', 'id'], replace: ['v=/a/A/'] }
    const bad = await place.text(text, 'id int, v text', flags)
    expect(bad).toMatchObject({ result: failed('SLUICE_VALUE'), rows: '' })
    expect(bad.result.error?.where).toMatch(/\.csv row 5 \(line 7, byte 32\), column id$/)
    const ragged = await place.text(text.replace('5x,e', '5,e,f'), 'id int, v text', flags)
    expect(ragged.result).toMatchObject(failed('SLUICE_CSV_FIELD_COUNT'))
    expect(ragged.result.error?.where).toMatch(/\.csv row 5 \(line 7, byte 32\), column id$/)
  })

  it('--set of a column that the file has not, which takes no NULL', async () => {
    const loaded = await place.text('id\n1\n', 'id int, origin text NOT NULL', { set: ['origin=it’s, "x"'] })
    expect(loaded).toMatchObject({ result: done(1), rows: '1|it’s, "x"' })
  })

  it.each<[string, CopyOptions]>([
    ['select', { select: ['id', 'nam'] }],
    ['rename', { rename: ['nam=x'] }],
    ['replace', { replace: ['nam=/a/b/'] }],
    ['skip-if-empty', { skipIfEmpty: ['nam'] }],
    ['type', { type: ['nam=integer'] }],
  ])('--%s of a column that the file has not is an error that names its columns', async (flag, options) => {
    const { result, rows } = await place.text(TEXT, 'id int, name text, note text', options)
    expect(result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    expect(result.error?.message).toContain(`--${flag} names column "nam"`)
    expect(result.error?.hint).toContain('id, name, note')
    expect(rows).toBe('')
  })

  it('--by-position: a header of other names; fewer columns than the table; twice the same name', async () => {
    const ddl = "id int, name text, made int GENERATED ALWAYS AS (id * 2) STORED, note text DEFAULT 'd'"
    const three = await place.text('x,x,\n1,a,b\n', ddl, { byPosition: true })
    expect(three).toMatchObject({ result: done(1), rows: '1|a|2|b' })
    const two = await place.text('x,y\n1,a\n', ddl, { byPosition: true })
    expect(two).toMatchObject({ result: done(1), rows: '1|a|2|d' })
    const four = await place.text('x,y,z,w\n1,a,b,c\n', ddl, { byPosition: true })
    expect(four.result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    expect(four.result.error?.message).toContain('4 columns')
  })

  it('--no-header: by position; with --columns by name, and then the first line is data', async () => {
    const plain = await place.text('1,a\n2,b\n', 'id int, name text', { header: false })
    expect(plain).toMatchObject({ result: done(2), rows: '1|a\n2|b' })
    const named = await place.text('a,1\nb,2\n', 'id int, name text', { header: false, columns: ['name', 'id'] })
    expect(named).toMatchObject({ result: done(2), rows: '1|a\n2|b' })
    const selected = await place.text('a,x,1\nb,y,2\n', 'id int, name text', {
      header: false,
      columns: ['name', 'other', 'id'],
      select: ['id', 'name'],
    })
    expect(selected).toMatchObject({ result: done(2), rows: '1|a\n2|b' })
  })

  it('a header taken for data by mistake is told of', async () => {
    const { result } = await place.text('1,a\n2,b\n', 'id int, name text')
    expect(result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    expect(result.error?.hint).toContain('--no-header')
  })

  it.each([
    ['id;v\n1;a\n', "--delimiter ';'"],
    ['id\tv\n1\ta\n', String.raw`--delimiter '\t'`],
    ['id|v\n1|a\n', "--delimiter '|'"],
    ['sep=;\nid;v\n1;a\n', "--skip-lines 1 --delimiter ';'"],
  ])('another delimiter is told of: %j', async (text, flags) => {
    const { result } = await place.text(text, 'id int, v text')
    expect(result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    expect(result.error?.hint).toContain(flags)
  })

  it('a time that no clock of --time-zone shows is named, and not moved', async () => {
    const options: CopyOptions = { timeZone: 'America/New_York' }
    const rows = 'id,v\n1,2024-03-10 01:59:59\n2,2024-03-10 02:30:00\n'
    const { result } = await place.text(rows, 'id int, v timestamptz', options)
    expect(result).toMatchObject(failed('SLUICE_VALUE'))
    expect(result.error?.where).toMatch(/row 2 \(line 3, byte 27\), column v$/)
    const fine = await place.text(rows.replace('02:30', '03:30'), 'id int, v timestamptz', options)
    expect(fine).toMatchObject({ result: done(2), rows: '1|2024-03-10 06:59:59+00\n2|2024-03-10 07:30:00+00' })
  })

  it('a name that PostgreSQL has cut is told of', async () => {
    const { result } = await place.text(`id,${'n'.repeat(70)}\n1,a\n`, `id int, ${'n'.repeat(63)} text`)
    expect(result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    expect(result.error?.hint).toBe(
      `PostgreSQL has cut the name at 63 bytes: --rename ${'n'.repeat(70)}=${'n'.repeat(63)}`,
    )
  })

  it('--type binary, base64 and hex; a value that is none is named', async () => {
    const ddl = 'id int, v bytea'
    const base64 = await place.text('id,v\n1,AAEC/w==\n2,\n3,""\n', ddl, { type: ['v=binary'] })
    expect(base64).toMatchObject({ result: done(3), rows: '1|\\x000102ff\n2|~\n3|\\x' })
    const hex = await place.text('id,v\n1,000102fF\n', ddl, { type: ['v=binary:hex'] })
    expect(hex).toMatchObject({ result: done(1), rows: '1|\\x000102ff' })
    const bad = await place.text('id,v\n1,AAEC\n2,A*==\n', ddl, { type: ['v=binary'] })
    expect(bad).toMatchObject({ result: failed('SLUICE_VALUE'), rows: '' })
    expect(bad.result.error?.where).toMatch(/\.csv row 2 \(line 3, byte 12\), column v$/)
  })

  it('JSON texts for bytea are told of, unless --type binary reads them', async () => {
    const lines = '{"id":1,"v":"AAE="}\n{"id":2,"v":"AAI="}\n{"id":3,"v":"\\\\xff"}\n{"id":4,"v":""}\n'
    const load = (text: string, options?: CopyOptions): Promise<Loaded> =>
      place.text(text, 'id int, v bytea', { sourceFormat: 'jsonl', ...options })
    const plain = await load(lines)
    expect(plain.result.warnings).toEqual([expect.stringContaining('--type v=binary')])
    expect(plain.rows).toContain('3|\\xff')
    expect((await load('{"id":1,"v":"AAE="}\n', { type: ['v=binary'] })).result.warnings).toEqual([])
    expect((await load('{"id":3,"v":"\\\\xff"}\n')).result.warnings).toEqual([])
  })

  it('--type binary into text is text of the bytes, as PostgreSQL writes them', async () => {
    const loaded = await place.text('id,v\n1,/w==\n', 'id int, v text', { type: ['v=binary'] })
    expect(loaded).toMatchObject({ result: done(1), rows: '1|\\xff' })
  })

  it('--type of PostgreSQL where the table is there changes nothing', async () => {
    const loaded = await place.text('id,v\n1,01\n', 'id int, v text', { type: ['v=integer', 'id=bigint'] })
    expect(loaded).toMatchObject({ result: done(1), rows: '1|01' })
  })

  it('columns of the file that the table lacks are named, with --select; the nearest with --rename', async () => {
    const lacks = await place.text('id,extra,more\n1,a,b\n', 'id int')
    expect(lacks).toMatchObject({ result: failed('SLUICE_COLUMN_MISSING'), rows: '' })
    expect(lacks.result.error?.message).toContain('"extra", "more"')
    expect(lacks.result.error?.hint).toContain('--select id')
    const near = await place.text('id,nmae\n1,a\n', 'id int, name text')
    expect(near.result.error?.hint).toContain('--rename nmae=name')
  })

  it('a generated column', async () => {
    const { result, rows } = await place.text('id,b\n1,2\n', 'id int, b int GENERATED ALWAYS AS (id + 1) STORED')
    expect(result).toMatchObject(failed('SLUICE_COLUMN_GENERATED'))
    expect(result.error?.hint).toContain('--select id')
    expect(rows).toBe('')
  })

  it('a column that takes no NULL and has no default, and is not in the file', async () => {
    const { result, rows } = await place.text('id\n1\n', 'id int, v text NOT NULL, d int NOT NULL DEFAULT 7')
    expect(result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    expect(result.error?.message).toContain('"v"')
    expect(result.error?.message).not.toContain('"d"')
    expect(rows).toBe('')
  })

  it('NULL for a column that takes none is named by row and column', async () => {
    const { result, rows } = await place.text('id,v\n1,a\n2,\n', 'id int, v text NOT NULL')
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_CONSTRAINT' } })
    expect(result.error?.where).toMatch(/ row 2 \(line 3, byte 9\), column v$/)
    expect(rows).toBe('')
  })

  it('defaults fill what the file has not', async () => {
    const ddl = "v text, id int GENERATED BY DEFAULT AS IDENTITY, s serial, d date DEFAULT '2020-02-02'"
    const loaded = await place.text('v\na\nb\n', ddl)
    expect(loaded).toMatchObject({ result: done(2), rows: 'a|1|1|2020-02-02\nb|2|2|2020-02-02' })
  })

  it('GENERATED ALWAYS AS IDENTITY takes the values of the file, or makes its own', async () => {
    const ddl = 'id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text'
    expect(await place.text('id,v\n7,a\n5,b\n', ddl)).toMatchObject({ result: done(2), rows: '5|b\n7|a' })
    expect(await place.text('v\na\nb\n', ddl)).toMatchObject({ result: done(2), rows: '1|a\n2|b' })
  })

  it('names that need quotes, in the table, its schema and its columns', async () => {
    await place.sql(
      'DROP SCHEMA IF EXISTS "My ""S" CASCADE; CREATE SCHEMA "My ""S"; CREATE TABLE "My ""S"."T.x" ("Id ""q""" int, "a,b" text, "select" int)',
    )
    const source = place.file('names.csv', '"Id ""q""","a,b",select\n1,"x,y",3\n')
    const schema = encodeURIComponent('My "S')
    const { result } = await place.run(source, { sink: `${place.db.url}?schema=${schema}&table=T.x` })
    expect(result).toMatchObject(done(1))
    expect(await place.sql('SELECT * FROM "My ""S"."T.x"')).toBe('1|x,y|3')
  })

  it('two columns of the file that go to one of the table', async () => {
    const { result } = await place.text('id,ID\n1,2\n', 'id int')
    expect(result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    const exact = await place.text('id,ID\n1,2\n', 'id int, "ID" int')
    expect(exact).toMatchObject({ result: done(1), rows: '1|2' })
  })
})
