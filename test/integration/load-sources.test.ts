import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { done, failed, type LoadPlace, makeLoadPlace } from '../support/load-place.ts'
import { type MisbehavingHttp, startMisbehavingHttp } from '../support/misbehaving-http.ts'
import { freshBucket, s3Do, sharedServices } from '../support/services.ts'

const TEXT = 'id,name,note\n1,Zoë,\n2,"a,""b""\nc",""\n3,日本,x y\n'
const DDL = 'id int, name text, note text'
const ROWS = '1|Zoë|~\n2|a,"b"\nc|\n3|日本|x y'

describe.each(['postgres15', 'postgres18'] as const)('sources into %s', (server) => {
  let place: LoadPlace
  let http: MisbehavingHttp
  let bucket = ''
  const s3 = () => sharedServices().versitygw
  const put = (key: string, body: string | Uint8Array) => s3Do(s3(), { method: 'PUT', path: `/${bucket}/${key}`, body })
  beforeAll(async () => {
    place = await makeLoadPlace(server, 'load_sources')
    http = await startMisbehavingHttp()
    bucket = await freshBucket(s3(), 'load')
  })
  afterAll(async () => {
    await http.stop()
    await place.close()
  })

  async function chunks(...bytes: Uint8Array[]) {
    return (async function* () {
      await Promise.resolve()
      yield* bytes
    })()
  }

  it('an object', async () => {
    await put('dir/100% a+b.csv', TEXT)
    await place.table(DDL)
    const { result, rows } = await place.run(`s3://${bucket}/dir/100% a+b.csv`, { env: s3().env })
    expect(result).toMatchObject(done(3))
    expect(result.bytesRead).toBeGreaterThanOrEqual(Buffer.byteLength(TEXT))
    expect(rows).toBe(ROWS)
  })

  it('a prefix whose files have their columns in other orders, one with a header only, one empty', async () => {
    await put('many/1.csv', 'id,name,note\n1,a,x\n')
    await put('many/2.csv', 'NOTE,id,name\n"y\nz",2,b\n')
    await put('many/3/3.csv', 'name,note,id\r\n')
    await put('many/4.csv', '')
    await put('many/5.csv.gz', gzipSync('name,id\nc,3\n'))
    await put('many2/6.csv', 'id,name,note\n9,no,no\n')
    await place.table(DDL)
    const { result, rows } = await place.run(`s3://${bucket}/many/`, { env: s3().env })
    expect(result).toMatchObject(done(3))
    expect(rows).toBe('1|a|x\n2|b|y\nz\n3|c|~')
  })

  it('a prefix, chosen and renamed columns; a later file has columns that are left out', async () => {
    await put('sel/1.csv', 'id,name\n1,a\n')
    await put('sel/2.csv', 'more,name,id\nx,b,2\n')
    await place.table(DDL)
    const { result, rows } = await place.run(`s3://${bucket}/sel/`, {
      env: s3().env,
      options: { select: ['id', 'name'], rename: ['name=note'] },
    })
    expect(result).toMatchObject(done(2))
    expect(rows).toBe('1|~|a\n2|~|b')
  })

  it('a later file with a column that the table lacks: nothing is loaded, and the file is named', async () => {
    await put('lack/1.csv', 'id,name\n1,a\n')
    await put('lack/2.csv', 'id,other\n2,b\n')
    await place.table(DDL)
    const { result, rows } = await place.run(`s3://${bucket}/lack/`, { env: s3().env })
    expect(result).toMatchObject(failed('SLUICE_COLUMN_MISSING'))
    expect(result.error?.message).toContain('"other"')
    expect(`${result.error?.where}`).toContain('lack/2.csv')
    expect(rows).toBe('')
  })

  it('a glob, of objects and of files; an object of exactly that name beats it', async () => {
    await put('g/a1.csv', 'id\n1\n')
    await put('g/a2.csv', 'id\n2\n')
    await put('g/b1.csv', 'id\n3\n')
    await place.table(DDL)
    expect(await place.run(`s3://${bucket}/g/a?.csv`, { env: s3().env })).toMatchObject({
      result: done(2),
      rows: '1|~|~\n2|~|~',
    })
    mkdirSync(join(place.folder, 'g'))
    for (const name of ['g/x1.csv', 'g/x2.csv', 'g/y[1].csv']) place.file(name, `id\n${name.replaceAll(/\D/g, '')}\n`)
    await place.table(DDL)
    expect(await place.run(join(place.folder, 'g/x*.csv'))).toMatchObject({ result: done(2), rows: '1|~|~\n2|~|~' })
    await place.table(DDL)
    expect(await place.run(join(place.folder, 'g/y[1].csv'))).toMatchObject({ result: done(1) })
  })

  it('gzip of two members, and a file that only its magic bytes tell to be gzip', async () => {
    const half = TEXT.length / 2
    const bytes = Buffer.concat([gzipSync(TEXT.slice(0, half)), gzipSync(TEXT.slice(half)), Buffer.alloc(512)])
    for (const name of ['two.csv.gz', 'hidden.csv']) {
      await place.table(DDL)
      const { result, rows } = await place.run(place.file(name, bytes))
      expect(result).toMatchObject(done(3))
      expect(result.warnings.length).toBe(name === 'hidden.csv' ? 1 : 0)
      expect(rows).toBe(ROWS)
    }
  })

  it('zstd', async () => {
    const plain = place.file('z.csv', TEXT)
    execFileSync('zstd', ['-q', plain])
    await place.table(DDL)
    expect(await place.run(`${plain}.zst`)).toMatchObject({ result: done(3), rows: ROWS })
  })

  it('zip: its one data entry, from a folder, S3 and HTTP; two data entries are named', async () => {
    mkdirSync(join(place.folder, 'zip'))
    place.file('zip/data.csv', TEXT)
    place.file('zip/README.md', 'read me')
    place.file('zip/other.csv', 'id\n7\n')
    const pack = (name: string, ...entries: string[]): Buffer => {
      execFileSync('zip', ['-q', '-9', name, ...entries], { cwd: join(place.folder, 'zip') })
      return readFileSync(join(place.folder, 'zip', name))
    }
    const one = pack('one.zip', 'README.md', 'data.csv')
    pack('two.zip', 'data.csv', 'other.csv')
    await put('one.zip', one)
    const sources = [
      join(place.folder, 'zip/one.zip'),
      `s3://${bucket}/one.zip`,
      http.file('/one.zip', { bytes: one }),
      http.file('/unranged.zip', { bytes: one, ranges: 'ignore' }),
    ]
    for (const source of sources) {
      await place.table(DDL)
      expect(await place.run(source, { env: s3().env })).toMatchObject({ result: done(3), rows: ROWS })
    }
    await place.table(DDL)
    const both = await place.run(join(place.folder, 'zip/two.zip'))
    expect(both.result).toMatchObject(failed('SLUICE_ARCHIVE_ENTRY'))
    expect(both.result.error?.message).toMatch(/data\.csv.*other\.csv/)
    const entry = await place.run(join(place.folder, 'zip/two.zip'), { options: { entry: 'other.csv' } })
    expect(entry).toMatchObject({ result: done(1), rows: '7|~|~' })
  })

  it('gzip over HTTP into a table that is made: fetched once, with types to infer or with all given', async () => {
    // Random digits, which no gzip makes much of: 1.5 MB.
    const lines = Array.from({ length: 100_000 }, (_, i) => `${i},${randomBytes(12).toString('hex')}\n`)
    const bytes = gzipSync(`id,note\n${lines.join('')}`)
    const url = http.file('/large.csv.gz', { bytes })
    const cases = [
      { type: [], madeOf: 'integer' },
      { type: ['id=bigint', 'note=text'], madeOf: 'bigint' },
    ]
    for (const { type, madeOf } of cases) {
      await place.sql('DROP TABLE IF EXISTS t')
      const loaded = await place.run(url, {
        options: { create: true, type },
        query:
          "SELECT max(id), count(note), format_type(atttypid, atttypmod) FROM t, pg_attribute WHERE attrelid = 't'::regclass AND attname = 'id' GROUP BY 3",
      })
      const { result } = loaded
      expect(loaded).toMatchObject({ result: done(100_000), rows: `99999|100000|${madeOf}` })
      // The head is read once more.
      expect(result.bytesRead).toBeLessThan(bytes.byteLength + 2 * 256 * 1024)
    }
  })

  it('tab-separated, with quotes', async () => {
    await place.table(DDL)
    const source = place.file('t.tsv', 'id\tname\tnote\n1\ta,b\t\n2\t"c\td"\t""\n')
    expect(await place.run(source)).toMatchObject({ result: done(2), rows: '1|a,b|~\n2|c\td|' })
  })

  it('JSON Lines: missing keys, keys in another order, nested values, exact numbers', async () => {
    await place.table('id bigint, n numeric, ok boolean, doc jsonb, name text')
    const lines = [
      '{"id":9007199254740993,"n":1.10,"ok":true,"doc":{"b":[1,2.50],"a":null},"name":"Zo\\u00eb\\n"}',
      '{"name":null,"id":2}',
      '',
      '{"doc":[],"ok":false,"id":3,"n":123456789012345678901234567890.5}',
    ]
    const { result, rows } = await place.run(place.file('j.jsonl', `${lines.join('\n')}\n`))
    expect(result).toMatchObject(done(3))
    expect(rows).toBe(
      '2|~|~|~|~\n3|123456789012345678901234567890.5|f|[]|~\n9007199254740993|1.10|t|{"a": null, "b": [1, 2.50]}|Zoë\n',
    )
  })

  it('a JSON array', async () => {
    await place.table(DDL)
    const source = place.file('array.json', ' [ {"id":1,"name":"a"},\n{"id":2,"note":"],["} ] ')
    expect(await place.run(source)).toMatchObject({ result: done(2), rows: '1|a|~\n2|~|],[' })
  })

  it('standard input, cut anywhere, packed', async () => {
    const bytes = gzipSync(TEXT)
    await place.table(DDL)
    const stdin = await chunks(bytes.subarray(0, 7), bytes.subarray(7, 8), bytes.subarray(8))
    const { result, rows } = await place.run('-', { stdin, options: { sourceFormat: 'csv' } })
    expect(result).toMatchObject(done(3))
    expect(rows).toBe(ROWS)
  })

  it('HTTP, with ranges and without, behind a redirect', async () => {
    for (const file of [{}, { ranges: 'ignore' as const }, { chunked: { surplus: 0 }, etag: null }]) {
      http.file('/real.csv', { bytes: Buffer.from(TEXT), ...file })
      const url = http.redirect('/moved.csv', '/real.csv')
      await place.table(DDL)
      expect(await place.run(url)).toMatchObject({ result: done(3), rows: ROWS })
    }
  })

  it('windows-1252, and UTF-16 of either order by its byte-order mark', async () => {
    const cafe = 'id,name,note\n1,Caf\u00e9 \u20ac,\n2,"x\ny",""\n'
    const cp1252 = Buffer.from(cafe.replace('\u20ac', '\u0080'), 'latin1')
    const le = Buffer.from(`\ufeff${cafe}`, 'utf16le')
    const be = Buffer.from(le).swap16()
    const cases: [Buffer, string | undefined][] = [
      [cp1252, 'windows-1252'],
      [le, undefined],
      [be, undefined],
      [le.subarray(2), 'utf-16le'],
      [Buffer.from(`\ufeff${cafe}`), undefined],
    ]
    for (const [bytes, encoding] of cases) {
      const loaded = await place.text(bytes, DDL, encoding === undefined ? {} : { encoding })
      expect(loaded).toMatchObject({ result: done(2), rows: '1|Café €|~\n2|x\ny|' })
    }
  })

  it('nothing matches: an error', async () => {
    await place.table(DDL)
    for (const source of [`s3://${bucket}/nothing/`, `s3://${bucket}/no*.csv`, join(place.folder, 'no*.csv')])
      expect((await place.run(source, { env: s3().env })).result).toMatchObject(failed('SLUICE_NOTHING_MATCHES'))
    expect((await place.run(`s3://${bucket}/no.csv`, { env: s3().env })).result).toMatchObject(
      failed('SLUICE_NOT_FOUND'),
    )
  })
})
