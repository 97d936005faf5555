import { createWriteStream } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CopyOptions } from '../../src/index.ts'
import { done, failed, type LoadPlace, makeLoadPlace } from '../support/load-place.ts'

const MIB = 1024 * 1024
const DDL = 'id int, v text, w text'

/** name, text, options, rows (`|`, NULL `~`) */
type Case = [string, string, CopyOptions, string]

/** So that one wrong row in the sum of counts is seen: how many lines psql printed, where no value holds a line end. */
const count = (rows: string): number => (rows === '' ? 0 : rows.split('\n').length)

describe.each(['postgres15', 'postgres18'] as const)('CSV flags into %s', (server) => {
  let place: LoadPlace
  beforeAll(async () => {
    place = await makeLoadPlace(server, 'load_csv_flags')
  })
  afterAll(() => place.close())

  it.each<Case>([
    ['CRLF', 'id,v,w\r\n1,a,b\r\n2,,""\r\n', {}, '1|a|b\n2|~|'],
    ['no line end at the end', 'id,v,w\n1,a,b\n2,c,d', {}, '1|a|b\n2|c|d'],
    ['CRLF, no line end at the end', 'id,v,w\r\n1,a,b\r\n2,c,d', {}, '1|a|b\n2|c|d'],
    ['mixed line ends', 'id,v,w\n1,a,b\r\n2,c,d\n3,e,f\r\n', {}, '1|a|b\n2|c|d\n3|e|f'],
    ['a lone CR ends lines where there is no LF', 'id,v,w\r1,a,b\r2,c,d\r', {}, '1|a|b\n2|c|d'],
    ['a lone CR is data where there is an LF', 'id,v,w\n1,a\rx,b\n', {}, '1|a\rx|b'],
    ['blank lines', '\n\r\nid,v,w\n\n1,a,b\n\r\n\n2,c,d\n\n', {}, '1|a|b\n2|c|d'],
    ['fields of \\. and other backslashes', 'id,v,w\n1,\\.,\\N\n2,a\\nb,"\\."\n', {}, '1|\\.|\\N\n2|a\\nb|\\.'],
    ['a byte-order mark', '\ufeffid,v,w\n1,a,b\n', {}, '1|a|b'],
    ['a quoted header', '"id","v","w"\n1,a,b\n', {}, '1|a|b'],
    ['blanks are data', 'id,v,w\n1, a , \n', {}, '1| a | '],
    ['--delimiter ;', 'id;v;w\n1;a,b;"c;d"\n', { delimiter: ';' }, '1|a,b|c;d'],
    ['--delimiter tab', 'id\tv\tw\n1\ta,b\t"c\td"\n', { delimiter: '\t' }, '1|a,b|c\td'],
    ['--delimiter |', 'id|v|w\n1|a|\n', { delimiter: '|' }, '1|a|~'],
    ["--quote '", "id,v,w\n1,'a,''b''',\"x\n", { quote: "'" }, "1|a,'b'|\"x"],
    ['--quote none', 'id,v,w\n1,"a,b"\n2,x""y,\n', { quote: 'none' }, '1|"a|b"\n2|x""y|~'],
    ['--quote none, odd quotes', 'id,v,w\n1,",\\\n2,a",\n', { quote: 'none' }, '1|"|\\\n2|a"|~'],
    ['--escape backslash', 'id,v,w\n1,"a\\"b\\\\",c\\d\n', { escape: '\\' }, '1|a"b\\|c\\d'],
    [
      '--null words, unquoted only',
      'id,v,w\n1,NULL,"NULL"\n2,\\N,\n3,null,N\n',
      { null: ['NULL', '\\N'] },
      '1|~|NULL\n2|~|~\n3|null|N',
    ],
    ['--null, and the empty field stays NULL', 'id,v,w\n1,-,\n2,"-",""\n', { null: ['-'] }, '1|~|~\n2|-|'],
    ['--empty string', 'id,v,w\n1,,""\n', { empty: 'string' }, '1||'],
    ['--empty string with --null', 'id,v,w\n1,,NA\n2,"NA",x\n', { empty: 'string', null: ['NA'] }, '1||~\n2|NA|x'],
    ['--ragged fill', 'id,v,w\n1\n2,a\n3,a,b\n', { ragged: 'fill' }, '1|~|~\n2|a|~\n3|a|b'],
    ['--ragged trim', 'id,v,w\n1,a,b,c,d\n2,a,b\n', { ragged: 'trim' }, '1|a|b\n2|a|b'],
    ['--skip-lines', 'made by x,\n"odd\nid,v,w\n1,a,b\n', { skipLines: 2 }, '1|a|b'],
    ['--skip-lines without a header', 'x\n1,a,b\n', { skipLines: 1, header: false }, '1|a|b'],
    ['--on-nul strip', 'id,v,w\n1,a\0b,"\0"\n', { onNul: 'strip' }, '1|ab|'],
    ['--sourceFormat tsv', 'id\tv\tw\n1\ta\t\n', { sourceFormat: 'tsv' }, '1|a|~'],
  ])('%s', async (_, text, options, rows) => {
    expect(await place.text(text, DDL, options)).toMatchObject({ result: done(count(rows)), rows })
  })

  it.each<Case>([
    ['NULLs and empty strings', 'v\na\n\n""\nb\n', {}, 'a\n~\n\nb'],
    ['NULL first and last', 'v\n\na\n\n', {}, '~\na\n~'],
    ['CRLF', 'v\r\n\r\na\r\n', {}, '~\na'],
    ['a word', 'v\nNULL\n"NULL"\n\n', { null: ['NULL'] }, '~\nNULL\n~'],
    ['\\.', 'v\na\n\\.\nb\n"\\."\n', {}, 'a\n\\.\nb\n\\.'],
    ['--empty string', 'v\n\na\n', { empty: 'string' }, '\na'],
  ])('one column: %s', async (_, text, options, rows) => {
    await place.table('v text, at int GENERATED ALWAYS AS IDENTITY')
    const source = place.file('one.csv', text)
    const loaded = await place.run(source, { options, query: 'SELECT v FROM t ORDER BY at' })
    // psql's last line end is cut off: a NULL is ~, so only an empty string could be lost, and none is last here.
    expect(loaded).toMatchObject({ result: done(count(rows)), rows })
  })

  it('--on-invalid-utf8 replace; without it, the row is named', async () => {
    const bytes = Buffer.concat([Buffer.from('id,v,w\n1,ok,\n2,a'), Buffer.from([0xff]), Buffer.from('b,"x"\n')])
    const refused = await place.text(bytes, DDL)
    expect(refused).toMatchObject({ result: failed('SLUICE_ENCODING'), rows: '' })
    expect(refused.result.error?.where).toMatch(/ row 2 \(line 3, byte \d+\), column v$/)
    const replaced = await place.text(bytes, DDL, { onInvalidUtf8: 'replace' })
    expect(replaced).toMatchObject({ result: done(2), rows: '1|ok|~\n2|a\ufffdb|x' })
  })

  it('NUL is refused by name of row and column', async () => {
    const { result, rows } = await place.text('id,v,w\n1,a,\n2,b\0,\n', DDL)
    expect(result).toMatchObject(failed('SLUICE_NUL'))
    expect(result.error?.where).toMatch(/ row 2 \(line 3, byte \d+\), column v$/)
    expect(rows).toBe('')
  })

  it.each<[string, string, CopyOptions, string, RegExp]>([
    ['too few fields', 'id,v,w\n1,a,b\n2,c\n', {}, 'SLUICE_CSV_FIELD_COUNT', / row 2 \(line 3, byte 13\)/],
    ['too many fields', 'id,v,w\n1,a,b\n2,c,d,e\n', {}, 'SLUICE_CSV_FIELD_COUNT', / row 2 \(line 3, byte 13\)/],
    ['too few with trim', 'id,v,w\n1,a\n', { ragged: 'trim' }, 'SLUICE_CSV_FIELD_COUNT', / row 1 /],
    ['too many with fill', 'id,v,w\n1,a,b,c\n', { ragged: 'fill' }, 'SLUICE_CSV_FIELD_COUNT', / row 1 /],
    ['text after a closing quote', 'id,v,w\n1,"a"b,c\n', {}, 'SLUICE_CSV_QUOTE', / row 1 \(line 2, byte \d+\)/],
    ['a quote that does not end', 'id,v,w\n1,a,b\n2,"c,d\n3,e,f\n', {}, 'SLUICE_CSV_UNTERMINATED_QUOTE', /line 3/],
    ['a name twice', 'id,v,v\n1,a,b\n', {}, 'SLUICE_CSV_HEADER', /./],
    ['an empty name', 'id,v,\n1,a,b\n', {}, 'SLUICE_CSV_HEADER', /./],
  ])('%s: an error, and nothing is loaded', async (_, text, options, code, where) => {
    const { result, rows } = await place.text(text, DDL, options)
    expect(result).toMatchObject(failed(code))
    expect(`${result.error?.where}`).toMatch(where)
    expect(rows).toBe('')
  })

  it('an unknown encoding is refused before anything is read', async () => {
    const load = place.text('id,v,w\n', DDL, { encoding: 'latin-99' })
    await expect(load).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
  })

  it('0 bytes: 0 rows and a warning; a header only: 0 rows and none', async () => {
    const nothing = await place.text('', DDL)
    expect(nothing).toMatchObject({ result: { ...done(0), warnings: [expect.stringMatching(/empty/)] }, rows: '' })
    for (const header of ['id,v,w\n', 'id,v,w', '\ufeffid,v,w\r\n', '\n\nid,v,w\n\n'])
      expect(await place.text(header, DDL)).toMatchObject({ result: { ...done(0), warnings: [] }, rows: '' })
    // Nor does what the table wants matter where nothing comes.
    const strict = await place.text('', 'id int NOT NULL PRIMARY KEY')
    expect(strict).toMatchObject({ result: { ...done(0), warnings: [expect.stringMatching(/empty/)] }, rows: '' })
    const blank = await place.text('\n\r\n', DDL)
    expect(blank).toMatchObject({ result: done(0), rows: '' })
  })

  it('--time-zone for times without an offset', async () => {
    const text =
      'id,at,local\n1,2020-07-01 12:00:00,2020-07-01 12:00:00\n2,2020-07-01 12:00:00+00,2020-07-01 12:00:00\n'
    const ddl = 'id int, at timestamptz, local timestamp'
    const query = `SELECT id, at AT TIME ZONE 'UTC', local FROM t ORDER BY 1`
    for (const [timeZone, hour] of [
      [undefined, 12],
      ['Europe/Berlin', 10],
    ] as const) {
      await place.table(ddl)
      const options = timeZone === undefined ? {} : { timeZone }
      const loaded = await place.run(place.file('zone.csv', text), { options, query })
      expect(loaded).toMatchObject({
        result: done(2),
        rows: `1|2020-07-01 ${hour}:00:00|2020-07-01 12:00:00\n2|2020-07-01 12:00:00|2020-07-01 12:00:00`,
      })
    }
    expect((await place.text('id\n1\n', 'id int', { timeZone: 'Mars/Olympus' })).result.status).toBe('failed')
  })

  it.each([
    ['LF', '\n'],
    ['CRLF', '\r\n'],
  ])('%s within quotes, over several extents', async (_, end) => {
    const path = join(place.folder, 'ends.csv')
    const file = createWriteStream(path)
    const rows = 120_000
    file.write(`id,v,w${end}`)
    for (let at = 0; at < rows; at += 10_000)
      file.write(
        Array.from(
          { length: 10_000 },
          (_, i) =>
            `${at + i},"${'x'.repeat((at + i) % 200)}${end}""${at + i}""${end}",${end === '\n' ? 'y,' : ''}`.slice(
              0,
              end === '\n' ? -1 : undefined,
            ) + end,
        ).join(''),
      )
    file.end()
    await once(file, 'close')
    await place.table(DDL)
    const check = `SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE v = repeat('x', id % 200) || e || '"' || id || '"' || e), count(w) FROM t, (SELECT ${end === '\n' ? "E'\\n'" : "E'\\r\\n'"} AS e) AS ends`
    const loaded = await place.run(path, { query: check })
    expect(loaded).toMatchObject({ result: done(rows), rows: `${rows}|${rows}|${rows}|${end === '\n' ? rows : 0}` })
    expect(loaded.result.bytesRead).toBeGreaterThan(13 * MIB)
  })

  it('a row of 20 MB', async () => {
    const long = `"${'a""b\n'.repeat(4 * MIB)}"`
    await place.table(DDL)
    const loaded = await place.run(place.file('long.csv', `id,v,w\n1,s,\n2,${long},e\n3,s,\n`), {
      query: "SELECT id, length(v), v = repeat(E'a\"b\\n', 4194304), w FROM t ORDER BY 1",
    })
    expect(loaded).toMatchObject({ result: done(3), rows: `1|1|f|~\n2|${16 * MIB}|t|e\n3|1|f|~` })
  })
})
