import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { freshDatabase, type PostgresAddress, psql, sharedServices } from '../support/services.ts'

let folder = ''
let files = 0
let db: PostgresAddress & { drop(): Promise<void> }
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-errors-'))
  db = await freshDatabase(sharedServices().postgres15, 'load_errors')
  await psql(db, 'CREATE EXTENSION hstore')
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await db.drop()
})

interface Load {
  readonly ddl: string
  readonly ending?: string
  readonly options?: CopyOptions
}

/** The source's address in `where` is cut off: it is the same in each. */
async function load(
  text: string | Uint8Array,
  { ddl, ending = 'csv', options = {} }: Load,
): Promise<JobResult & { at: string }> {
  const source = join(folder, `${(files += 1)}.${ending}`)
  writeFileSync(source, text)
  await psql(db, `DROP TABLE IF EXISTS t; CREATE TABLE t (${ddl})`)
  const result = await copy({ source, sink: `${db.url}?table=t`, options, env: {}, stateDir: join(folder, 'state') })
  if (result.status !== 'done') expect(await psql(db, 'SELECT count(*) FROM t')).toBe('0')
  rmSync(source)
  const { where } = result.error ?? {}
  if (where) expect(where).toContain(`${files}.${ending}`)
  return { ...result, at: (where ?? '').replace(/^\S+ ?/, '') }
}

const BAD = 1_234_567
const ROWS = 1_300_000

interface Big {
  /** Row from 1. */
  readonly row: (row: number) => string
  readonly head?: string
}

/** A file of 1.3 million rows, of which row 1,234,567 is bad; and where that is, worked out by itself. */
function big({ row, head = '' }: Big): { text: string; byte: number; line: number } {
  const before = Array.from({ length: BAD - 1 }, (_, i) => row(i + 1)).join('')
  const after = Array.from({ length: ROWS - BAD + 1 }, (_, i) => row(BAD + i)).join('')
  const upTo = head + before
  return { text: upTo + after, byte: Buffer.byteLength(upTo), line: upTo.split('\n').length }
}

describe('one bad value in row 1,234,567 of 1,300,000', () => {
  const value = (row: number): string => (row === BAD ? '12x' : String(row % 1000))
  const pad = 'padding-16-bytes'

  it.each<[string, Big]>([
    ['plain rows', { head: 'id,v,p\n', row: (i) => `${i},${value(i)},${pad}\n` }],
    [
      'a quote or a backslash now and then, so that extents go as text first and as CSV then',
      {
        head: 'id,v,p\n',
        row: (i) => `${i},${value(i)},${i % 60_000 === 0 ? '"a\nb"' : i % 60_000 === 30_000 ? 'a\\nb' : pad}\n`,
      },
    ],
    [
      'a first record with line ends inside',
      { head: 'id,v,p\n', row: (i) => `${i},${value(i)},${i === 1 ? '"a\nb\n\nc"' : pad}\n` },
    ],
    [
      'line ends inside everywhere',
      { head: 'id,v,p\n', row: (i) => `${i},${value(i)},"${i % 3 === 0 ? 'a\nb' : i % 3 === 1 ? 'a\r\nb' : pad}"\n` },
    ],
    [
      'CRLF with LF inside',
      { head: 'id,v,p\r\n', row: (i) => `${i},${value(i)},${i % 5 === 0 ? '"ä\nb\r\nc"' : pad}\r\n` },
    ],
    [
      'mixed line ends and blank lines',
      { head: 'id,v,p\r\n', row: (i) => `${i},${value(i)},${pad}${i % 2 === 0 ? '\r\n' : '\n\n'}` },
    ],
  ])('is named by row, line, byte and column: %s', async (_, shape) => {
    const { text, byte, line } = big(shape)
    const result = await load(text, { ddl: 'id int, v int, p text' })
    expect(result.error?.code).toBe('SLUICE_VALUE')
    expect(result.error?.message).toContain('12x')
    expect(result.at).toBe(`row ${BAD} (line ${line}, byte ${byte}), column v`)
  })

  it('is named in JSON Lines, too', async () => {
    const { text, byte, line } = big({ row: (i) => `{"id":${i},"v":"${value(i)}"}\n` })
    const result = await load(text, { ddl: 'id int, v int', ending: 'jsonl' })
    expect(result.error).toMatchObject({ code: 'SLUICE_VALUE' })
    expect(result.at).toBe(`row ${BAD} (line ${line}, byte ${byte}), column v`)
  })
})

describe('a value that only the server can judge', () => {
  it.each<[string, string, string]>([
    ['a domain', 'x int, v evens', '3'],
    ['an enum', 'x int, v mood', 'angry'],
    ['xml', 'x int, v xml', '<a>'],
    ['a range', 'x int, v int4range', '[3'],
  ])('is named by row and column: %s', async (_, ddl, bad) => {
    await psql(
      db,
      `DROP TABLE IF EXISTS t; DROP DOMAIN IF EXISTS evens; DROP TYPE IF EXISTS mood;
       CREATE DOMAIN evens AS int CHECK (VALUE % 2 = 0); CREATE TYPE mood AS ENUM ('glad', 'sad')`,
    )
    const good = ddl.endsWith('evens') ? '2' : ddl.endsWith('mood') ? 'sad' : ddl.endsWith('xml') ? '<a/>' : '"[1,2)"'
    const result = await load(`x,v\n"1\n",${good}\n2,${good}\n3,${bad}\n4,${good}\n`.replace('"1\n"', '1'), { ddl })
    expect(result.status).toBe('failed')
    expect(result.at).toMatch(/^row 3 \(line 4, byte \d+\), column v$/)
  })
})

describe('a malformed record', () => {
  it.each<[string, string, string, string]>([
    ['too many fields', 'a,b\n1,2\n3,4,5\n', 'SLUICE_CSV_FIELD_COUNT', 'row 2 (line 3, byte 8)'],
    ['too few fields', 'a,b\n1,2\n"x\ny",4\n5\n', 'SLUICE_CSV_FIELD_COUNT', 'row 3 (line 5, byte 16)'],
    ['text after a closing quote', 'a,b\n1,2\n3,"4"5\n', 'SLUICE_CSV_QUOTE', 'row 2 (line 3, byte 13), column b'],
    [
      'a quote that never ends',
      'a,b\n1,2\n3,"4\n5,6\n7,8\n',
      'SLUICE_CSV_UNTERMINATED_QUOTE',
      'row 2 (line 3, byte 10), column b',
    ],
  ])('is named by its place: %s', async (_, text, code, at) => {
    const result = await load(text, { ddl: 'a text, b text' })
    expect(result.error?.code).toBe(code)
    expect(result.at).toBe(at)
  })

  it('is named where a quote opened 12 MB before the end', async () => {
    const rows = Array.from({ length: 100_000 }, (_, i) => `${i},b\n`).join('')
    const text = `a,b\n${rows}x,"open\n${rows.repeat(14)}`
    const result = await load(text, { ddl: 'a text, b text' })
    expect(result.error?.code).toBe('SLUICE_CSV_UNTERMINATED_QUOTE')
    expect(result.at).toBe(`row 100001 (line 100002, byte ${rows.length + 6}), column b`)
  })
})

describe('a hint', () => {
  it('quotes a name for the shell', async () => {
    const { error } = await load(' ID ,name\n1,a\n', { ddl: 'id int, name text' })
    expect(error?.hint).toBe("--rename ' ID =id', or leave it out: --select name")
  })

  it('says what can hold a NUL that JSON escapes', async () => {
    const { error, at } = await load('id,j\n1,"{""a"":""\\u0000""}"\n', { ddl: 'id int, j jsonb' })
    expect(error).toMatchObject({ code: 'SLUICE_ENCODING', hint: expect.stringContaining('json holds \\u0000') })
    expect(at).toContain('column j')
  })

  it.each([
    ['bytea', String.raw`\x0g`],
    ['jsonpath', '$.a =>'],
    ['regclass', 'no_such_table'],
    ['regtype', 'no_such_type'],
    ['regprocedure', 'no_such_function(int)'],
    ['hstore', 'a'],
  ])('a value that %s refuses with a SQLSTATE of another class', async (type, value) => {
    const { error, at } = await load(`id,v\n1,\n2,${value}\n`, { ddl: `id int, v ${type}` })
    expect(error).toMatchObject({ code: 'SLUICE_VALUE', hint: expect.stringContaining('mend the value') })
    expect(at).toBe('row 2 (line 3, byte 8), column v')
  })

  it('names what was compressed twice', async () => {
    const twice = gzipSync(gzipSync('id\n1\n'))
    const { error } = await load(twice, { ddl: 'id int', ending: 'csv.gz' })
    expect(error).toMatchObject({ code: 'SLUICE_COMPRESSION', message: expect.stringContaining('compressed twice') })
  })
})
