import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { JobResult } from '../../src/core/job.ts'
import { freshBucket, freshDatabase, psql, s3Do, sharedServices } from '../support/services.ts'
import { cli, type Ended } from './cli-process.ts'

const s3 = sharedServices().versitygw
/** Keys of cli.md, "What it prints"; `error` comes with a failure. */
const KEYS = [
  ...['jobId', 'status', 'source', 'sink', 'route', 'routeReason', 'runs'],
  ...['rowsRead', 'rowsWritten', 'rowsRejected', 'rowsSkipped', 'skipped', 'bytesRead', 'bytesWritten'],
  ...['partitions', 'retries', 'throttles', 'wallMs', 'cpuMs', 'peakRssBytes'],
  ...['outputs', 'rejectFile', 'warnings', 'resumeCommand'],
].sort()

let db: Awaited<ReturnType<typeof freshDatabase>>
let bucket = ''
let folder = ''
let state = ''
let place = 0

beforeAll(async () => {
  db = await freshDatabase(sharedServices().postgres15, 'cli_load')
  bucket = await freshBucket(s3, 'cli-load')
  folder = mkdtempSync(join(tmpdir(), 'sluice-cli-load-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await db.drop()
})
beforeEach(async () => {
  state = join(folder, `state-${(place += 1)}`)
  await psql(db, 'DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, name text)')
})

const sluice = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  cli(words, { cwd: folder, env: { XDG_STATE_HOME: state, PGPASSWORD: db.password, ...s3.env, ...env } })
/** A table of the test's database, by a URL without a password. */
const table = (name = 't'): string => `postgres://${db.user}@${db.host}:${db.port}/${db.database}?table=${name}`
const sql = (text: string): Promise<string> => psql(db, text)
const count = (): Promise<string> => sql('SELECT count(*) FROM t')

async function put(key: string, body: string | Uint8Array): Promise<string> {
  await s3Do(s3, { method: 'PUT', path: `/${bucket}/${key}`, body })
  return `s3://${bucket}/${key}`
}
function file(name: string, content: string | Uint8Array): string {
  writeFileSync(join(folder, name), content)
  return name
}
/** The one JSON object of standard output. */
function oneObject(stdout: string): JobResult {
  expect(stdout).toMatch(/^\{[^\n]*\}\n$/)
  return JSON.parse(stdout) as JobResult
}
const people = (from: number, to: number): string =>
  `id,name\n${Array.from({ length: to - from + 1 }, (_, i) => `${from + i},name ${from + i}\n`).join('')}`
/** Every byte under a folder. */
function everythingIn(path: string): string {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.name}\n${readFileSync(join(entry.parentPath, entry.name), 'latin1')}`)
    .join('\n')
}

describe('copy into PostgreSQL', () => {
  it('makes the table with --create, and says on standard error what it ran and did', async () => {
    const source = await put('new.csv', 'id,name,born\n1,Ada,1815-12-10\n2,Grace,1906-12-09\n')
    await sql('DROP TABLE t')
    const { code, stdout, stderr } = await sluice(['copy', source, table(), '--create'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(/^SQL: CREATE TABLE [^\n]*t/m)
    expect(stderr).toMatch(/^done {2}2 rows in /m)
    expect(stderr).toContain(source)
    expect(stderr).not.toContain(db.password)
    expect(await sql('SELECT * FROM t ORDER BY id')).toBe('1|Ada|1815-12-10\n2|Grace|1906-12-09')
    expect(
      await sql(
        "SELECT string_agg(format_type(atttypid, atttypmod), ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0",
      ),
    ).toMatch(/^(integer|bigint),text,date$/)
  })

  it('prints one object with --json, whose counts balance', async () => {
    const source = await put('five.csv', people(1, 5))
    const { code, stdout } = await sluice(['copy', source, table(), '--json'])
    expect(code).toBe(0)
    const result = oneObject(stdout)
    expect(Object.keys(result).sort()).toEqual(KEYS)
    expect(result).toMatchObject({
      status: 'done',
      source,
      runs: 1,
      rowsRead: 5,
      rowsWritten: 5,
      rowsRejected: 0,
      rowsSkipped: 0,
      skipped: { filtered: 0, superseded: 0, existing: 0 },
      partitions: 1,
      rejectFile: null,
      warnings: [],
      resumeCommand: null,
    })
    expect(await count()).toBe('5')
  })

  it('counts what a flag left out as skipped, and still balances', async () => {
    const source = await put('mixed.csv', 'id,name\n1,a\n2,\n3,c\n')
    const { code, stdout, stderr } = await sluice(['copy', source, table(), '--skip-if-empty', 'name', '--json', '-q'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(oneObject(stdout)).toMatchObject({
      status: 'done',
      rowsRead: 3,
      rowsWritten: 2,
      rowsRejected: 0,
      rowsSkipped: 1,
      skipped: { filtered: 1, superseded: 0, existing: 0 },
    })
    expect(await sql('SELECT id FROM t ORDER BY id')).toBe('1\n3')
  })

  it('says nothing with -q', async () => {
    expect(await sluice(['copy', await put('quiet.csv', people(1, 3)), table(), '-q'])).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    })
    expect(await count()).toBe('3')
  })

  it.each([[['--log-level', 'error']], [['-q']]])(
    'prints its progress as lines of JSON with --progress json %j',
    async (more) => {
      const source = await put('progress.csv', people(1, 1000))
      const words = ['copy', source, table(), '--progress', 'json', '--json', ...more]
      const { code, stdout, stderr } = await sluice(words)
      expect(code).toBe(0)
      oneObject(stdout)
      const events = stderr
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { event: string })
      expect(events.map(({ event }) => event)).toEqual(expect.arrayContaining(['planned', 'phase']))
    },
  )

  it('loads a local file, gzipped or not, beside the objects', async () => {
    file('a.csv', people(1, 10))
    file('b.csv.gz', gzipSync(people(11, 20)))
    for (const name of ['a.csv', 'b.csv.gz']) {
      expect(await sluice(['copy', name, table(), '-q'])).toMatchObject({ code: 0, stderr: '' })
    }
    expect(await sql('SELECT count(*), sum(id) FROM t')).toBe('20|210')
  })

  it.each([
    ['a prefix', 'many/'],
    ['a glob', 'many/part-*.csv'],
  ])('loads %s of two objects', async (_, key) => {
    await put('many/part-1.csv', people(1, 10))
    await put('many/part-2.csv', people(11, 25))
    await put('many-more.csv', people(100, 110))
    const { code, stdout } = await sluice(['copy', `s3://${bucket}/${key}`, table(), '--json'])
    expect(code).toBe(0)
    expect(oneObject(stdout)).toMatchObject({ status: 'done', rowsRead: 25, rowsWritten: 25, partitions: 2 })
    expect(await sql('SELECT count(*), min(id), max(id) FROM t')).toBe('25|1|25')
  })
})

describe('input that is wrong', () => {
  it('is named with its row, line and column, and nothing is loaded', async () => {
    const source = await put('bad.csv', 'id,name\n1,"a\nb"\n2,b\n3x,c\n4,d\n')
    const { code, stdout, stderr } = await sluice(['copy', source, table()])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^error: .*3x.* {2}\[SLUICE_VALUE\]$/m)
    expect(stderr).toContain(`at: ${source} row 3 (line 5`)
    expect(stderr).toMatch(/^ *at: .*, column id$/m)
    expect(stderr).toMatch(/^ hint: \S/m)
    expect(stderr).not.toMatch(/^done/m)
    expect(await count()).toBe('0')
  })

  it('has its place in the object of --json too', async () => {
    const source = await put('bad.csv', 'id,name\n1,a\n2,b\n3x,c\n')
    const { code, stdout } = await sluice(['copy', source, table(), '--json', '-q'])
    expect(code).toBe(1)
    const { error, ...rest } = oneObject(stdout)
    expect(Object.keys(rest).sort()).toEqual(KEYS)
    expect(rest).toMatchObject({ status: 'failed', rowsWritten: 0 })
    expect(error).toEqual({
      code: 'SLUICE_VALUE',
      message: expect.stringContaining('3x') as string,
      where: expect.stringMatching(/^s3:\/\/.*bad\.csv row 3 \(line 4.*column id$/) as string,
      hint: expect.stringMatching(/\S/) as string,
    })
  })

  it('with a quote that is never closed names where it opened', async () => {
    const text = 'id,name\n1,a\n2,"b\n3,c\n'
    const source = await put('quote.csv', text)
    const { code, stderr } = await sluice(['copy', source, table()])
    expect(code).toBe(1)
    expect(stderr).toContain('[SLUICE_CSV_UNTERMINATED_QUOTE]')
    expect(stderr).toMatch(new RegExp(`at: ${source} row 2 \\(line 3, byte ${text.indexOf('"')}\\)`))
    expect(await count()).toBe('0')
  })

  it.each(['s3', 'file'])('that is a cut gzip stream (%s) leaves the table empty', async (kind) => {
    const whole = gzipSync(people(1, 50_000))
    const cut = whole.subarray(0, whole.length - 100)
    const source = kind === 's3' ? await put('cut.csv.gz', cut) : file('cut.csv.gz', cut)
    const { code, stderr } = await sluice(['copy', source, table()])
    expect(code).toBe(1)
    expect(stderr).toContain('[SLUICE_COMPRESSION]')
    expect(stderr).toContain(`cut.csv.gz`)
    expect(await count()).toBe('0')
  })
})

describe('what is not there', () => {
  it.each([
    ['object', () => `s3://${bucket}/nonesuch.csv`, 't', 'SLUICE_NOT_FOUND', 'nonesuch.csv'],
    ['prefix', () => `s3://${bucket}/nonesuch/`, 't', 'SLUICE_NOTHING_MATCHES', 'nonesuch/'],
    ['bucket', () => 's3://no-such-bucket-here/a.csv', 't', 'SLUICE_NOT_FOUND', 'no-such-bucket-here'],
    ['file', () => 'nonesuch.csv', 't', 'SLUICE_NOT_FOUND', 'nonesuch.csv'],
    ['table', () => put('there.csv', people(1, 2)), 'nonesuch', 'SLUICE_NOT_FOUND', 'nonesuch'],
    ['column', () => put('column.csv', 'id,nom\n1,a\n'), 't', 'SLUICE_COLUMN_MISSING', 'nom'],
  ])('a missing %s ends with 2', async (_, source, name, errorCode, named) => {
    const { code, stdout, stderr } = await sluice(['copy', await source(), table(name), '--json'])
    expect(code).toBe(2)
    expect(stderr).toMatch(new RegExp(`^error: .*\\[${errorCode}\\]$`, 'm'))
    expect(stderr).toContain(named)
    expect(stderr).toMatch(/^ hint: \S/m)
    expect(oneObject(stdout)).toMatchObject({ status: 'failed', error: { code: errorCode } })
    expect(await count()).toBe('0')
  })

  it('a server that does not answer ends with 2', async () => {
    const source = await put('there.csv', people(1, 2))
    const { code, stderr } = await sluice(['copy', source, `postgres://u@127.0.0.1:1/d?table=t`])
    expect(code).toBe(2)
    expect(stderr).toContain('[SLUICE_UNREACHABLE]')
  })
})

describe('a wrong password', () => {
  const secret = 'Wrong/pass word#7'
  const spelled = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]

  it.each(['in the URL', 'in the environment'])('%s ends with 2, and is told nowhere', async (where) => {
    const source = await put('there.csv', people(1, 2))
    const inUrl = table().replace('@', `:${encodeURIComponent(secret)}@`)
    const { code, stdout, stderr } =
      where === 'in the URL'
        ? await sluice(['copy', source, inUrl, '--json', '-v'])
        : await sluice(['copy', source, table(), '--json', '-v'], { PGPASSWORD: secret })
    expect(code).toBe(2)
    expect(stderr).toContain('[SLUICE_CREDENTIALS]')
    const { stdout: listed } = await sluice(['jobs', '--json'])
    const told = [stdout, stderr, listed, everythingIn(folder)].join('\n')
    for (const spelling of spelled) expect(told).not.toContain(spelling)
  })

  it('of S3 ends with 2, and is told nowhere', async () => {
    const source = await put('there.csv', people(1, 2))
    const { code, stdout, stderr } = await sluice(['copy', source, table(), '--json', '-v'], {
      AWS_SECRET_ACCESS_KEY: secret,
    })
    expect(code).toBe(2)
    expect(stderr).toMatch(/\[SLUICE_(CREDENTIALS|ACCESS_DENIED)\]/)
    const told = [stdout, stderr, everythingIn(folder)].join('\n')
    for (const spelling of spelled) expect(told).not.toContain(spelling)
  })
})

describe('plan', () => {
  it('prints partitions, columns and SQL on standard output, and writes nothing', async () => {
    await put('planned/1.csv', people(1, 10))
    await put('planned/2.csv', people(11, 20))
    await sql('DROP TABLE t')
    const { code, stdout, stderr } = await sluice(['plan', `s3://${bucket}/planned/`, table(), '--create'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('2 partitions')
    expect(stdout).toContain(`s3://${bucket}/planned/1.csv`)
    expect(stdout).toContain(`s3://${bucket}/planned/2.csv`)
    expect(stdout).toMatch(/^ *CREATE TABLE /m)
    expect(stdout).toMatch(/^ *COPY .* FROM STDIN/m)
    expect(await sql("SELECT to_regclass('t') IS NULL AND to_regnamespace('sluice') IS NULL")).toBe('t')
    expect((await sluice(['jobs', '--json'])).stdout).toBe('{"jobs":[]}\n')
  })

  it('is what copy --dry-run does', async () => {
    const source = await put('dry.csv', people(1, 3))
    const dry = await sluice(['copy', source, table(), '--dry-run', '--json'])
    expect(dry.code).toBe(0)
    expect(JSON.parse(dry.stdout)).toMatchObject({ partitions: [{ url: source, bytes: people(1, 3).length }] })
    expect(JSON.parse((await sluice(['plan', source, table(), '--json'])).stdout)).toEqual(JSON.parse(dry.stdout))
    expect(await count()).toBe('0')
  })
})

describe('--mode truncate', () => {
  it('wants --yes where nobody can be asked, and then puts the new in place of the old', async () => {
    await sql("INSERT INTO t VALUES (100, 'old')")
    const words = ['copy', await put('truncate.csv', people(1, 3)), table(), '--mode', 'truncate']
    const { code, stderr } = await sluice(words)
    expect(code).toBe(2)
    expect(stderr).toMatch(/^error: .*\[SLUICE_USAGE\]$/m)
    expect(stderr).toContain('--yes')
    expect(await sql('SELECT id FROM t')).toBe('100')
    expect(await sluice([...words, '--yes', '-q'])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await sql('SELECT id FROM t ORDER BY id')).toBe('1\n2\n3')
  })
})

describe('verify', () => {
  it('ends with 0 where both sides hold the same, and with 1 where not', async () => {
    const source = await put('verify.csv', people(1, 20))
    await sluice(['copy', source, table(), '-q'])
    const same = await sluice(['verify', source, table()])
    expect(same.code).toBe(0)
    expect(same.stdout).toMatch(/^same$/m)
    await sql("UPDATE t SET name = 'another' WHERE id = 7")
    const different = await sluice(['verify', source, table(), '--json'])
    expect(different.code).toBe(1)
    expect(JSON.parse(different.stdout)).toMatchObject({ same: false, source: { rows: 20 }, sink: { rows: 20 } })
  })
})

describe('inspect', () => {
  it('--ddl postgres prints a statement that makes a table which holds the rows', async () => {
    const source = await put('made.csv', 'id,amount,born\n1,1.5,2020-01-02\n2,2.5,\n')
    const { code, stdout, stderr } = await sluice(['inspect', source, '--ddl', 'postgres'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^CREATE TABLE [^\n]*made"? \(\n/)
    await sql(`${stdout}SELECT 1`)
    expect((await sluice(['copy', source, table('made'), '-q'])).code).toBe(0)
    expect(await sql('SELECT * FROM made ORDER BY id')).toBe('1|1.5|2020-01-02\n2|2.5|')
    await sql('DROP TABLE made')
  })

  it('shows columns and rows of an object, and of the table', async () => {
    const source = await put('shown.csv', people(1, 3))
    const object = await sluice(['inspect', source])
    expect(object.code).toBe(0)
    expect(object.stdout).toContain('name 2')
    const { code, stdout } = await sluice(['inspect', table(), '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ columns: [{ name: 'id' }, { name: 'name' }] })
  })
})

describe('jobs and show', () => {
  it('tell of a load that went well and of one that did not', async () => {
    const good = oneObject((await sluice(['copy', await put('g.csv', people(1, 3)), table(), '--json'])).stdout)
    const bad = oneObject((await sluice(['copy', await put('b.csv', 'id,name\nx,y\n'), table(), '--json'])).stdout)
    const { jobs } = JSON.parse((await sluice(['jobs', '--json'])).stdout) as { jobs: { jobId: string }[] }
    expect(jobs).toHaveLength(2)
    expect(jobs).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ jobId: good.jobId, status: 'done', rowsWritten: 3 }),
        expect.objectContaining({ jobId: bad.jobId, status: 'failed', rowsWritten: 0 }),
      ]),
    )
    const list = (await sluice(['jobs'])).stdout
    expect(list).toContain(good.jobId)
    expect(list).toContain(bad.jobId)
    const shown = await sluice(['show', bad.jobId])
    expect(shown.code).toBe(0)
    expect(shown.stdout).toContain('[SLUICE_VALUE]')
    expect(shown.stdout).toContain(`s3://${bucket}/b.csv row 1`)
    expect((await sluice(['show', good.jobId])).stdout).toContain('3 rows')
  })
})
