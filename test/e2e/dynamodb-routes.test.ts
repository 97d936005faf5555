import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { JobResult } from '../../src/core/job.ts'
import { type DynamoPlace, openDynamoPlace } from '../support/dynamo-place.ts'
import { type DynamoServer, scanAll, type WireItem } from '../support/dynamodb.ts'
import { type HttpFile, type MisbehavingHttp, startMisbehavingHttp } from '../support/misbehaving-http.ts'
import { freshDatabase, psql, sharedServices } from '../support/services.ts'
import { buildZip } from '../unit/compression/build-zip.ts'
import { cli, ended, type Ended, startCli } from './cli-process.ts'

const ROWS = 1500
/** As the third experiment's file: a blank in each postcode; every 100th has no place. */
const csvRow = (i: number): string =>
  `${i},AB${Math.floor(i / 100)} ${String(i % 100).padStart(2, '0')}CD,${i % 100 === 0 ? ',' : `5${i % 10}.${i}1,-${i % 7}.${i}3`}\n`
const CSV = Buffer.from(`id,postcode,latitude,longitude\n${Array.from({ length: ROWS }, (_, i) => csvRow(i)).join('')}`)
const KEY = ['--create-table', '--partition-key', 'postcode:S']
const MAPPING = [
  ...['--select', 'postcode,latitude,longitude', '--replace', 'postcode=/ //'],
  ...['--type', 'latitude=number', '--type', 'longitude=number', '--skip-if-empty', 'latitude,longitude'],
]
const LOADED = { status: 'done', rowsRead: ROWS, rowsWritten: ROWS - 15, rowsSkipped: 15, retries: 0 }

/** Some 3 MiB that compress badly, in few rows: more than is looked at before anything is written. */
const LONG_ROWS = 150
const LONG = Buffer.from(
  `id,postcode,latitude,longitude\n${Array.from({ length: LONG_ROWS }, (_, i) => `${randomBytes(10_000).toString('hex')},X${i},1,2\n`).join('')}`,
)

let place: DynamoPlace
let server: DynamoServer
let http: MisbehavingHttp
let folder = ''
let tables = 0
let table = ''

beforeAll(async () => {
  place = await openDynamoPlace('routes')
  ;({ server, folder } = place)
  http = await startMisbehavingHttp()
})
afterAll(async () => {
  await http.stop()
  await place.close()
})
beforeEach(() => {
  table = `Postcodes-${(tables += 1)}`
})

async function sluice(words: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  return cli([...words, '--state-dir', 'state'], { cwd: folder, env: { ...server.env, ...env } })
}

/** Runs a copy to its end; its exit code is beside its result. */
async function copied(
  operands: readonly [string, string],
  flags: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<JobResult & { code: number | null }> {
  const { code, stdout, stderr } = await sluice(['copy', ...operands, ...flags, '--json', '--progress', 'none'], env)
  if (!stdout.startsWith('{')) throw new Error(stderr)
  return { ...(JSON.parse(stdout) as JobResult), code }
}

const url = (name = table): string => `dynamodb:///${name}`
const sorted = (items: readonly WireItem[]): unknown[] =>
  items
    .map((item) => Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    .map((entries) => JSON.stringify(entries))
    .toSorted()
const itemsOf = async (name: string): Promise<unknown[]> => sorted(await scanAll(server, name))
const zip = (name: string, bytes: Uint8Array, more: Partial<HttpFile> = {}): string =>
  http.file(`/${tables}-${name}`, { bytes, ...more })
const zipped = (data = CSV, more: object = {}): Buffer => buildZip([{ name: 'ukpostcodes.csv', data, ...more }])

describe('there and back', () => {
  it.each([
    ['JSON Lines', 'out.jsonl.gz', []],
    ['DynamoDB JSON', 'out.json', ['dynamodb-json']],
  ] as const)('a zip on the web → a table → %s → a table, equal', async (_, name, [format]) => {
    const [back, file] = [`${table}-back`, `${table}-${name}`]
    expect(await copied([zip('p.zip', zipped()), url()], [...KEY, ...MAPPING])).toMatchObject({ code: 0, ...LOADED })
    const out = format === undefined ? [] : ['--sink-format', format]
    const into = format === undefined ? [] : ['--source-format', format]
    expect(await copied([url(), file], out)).toMatchObject({ code: 0, rowsWritten: ROWS - 15 })
    expect(await copied([file, url(back)], [...KEY, ...into])).toMatchObject({ code: 0, rowsWritten: ROWS - 15 })
    const items = await itemsOf(table)
    expect(items).toHaveLength(ROWS - 15)
    expect(items).toContain('[["latitude",{"N":"51.11"}],["longitude",{"N":"-1.13"}],["postcode",{"S":"AB001CD"}]]')
    expect(await itemsOf(back)).toEqual(items)
    expect((await sluice(['verify', url(), file, ...out])).code).toBe(0)
  })

  it('a table → CSV → a table, and → Parquet → a table, equal', async () => {
    writeFileSync(join(folder, 'mixed.csv'), 'postcode,n,code,text\nA,1.5,007,"x, ""y"""\nB,-2,0,\nC,1234567.25,1,ü\n')
    await copied(['mixed.csv', url()], [...KEY, '--type', 'n=number'])
    const items = await itemsOf(table)
    expect(items).toHaveLength(3)
    for (const [name, flags] of [
      ['csv', ['--type', 'n=number', '--type', 'code=string']],
      // A NULL of Parquet is an attribute that was not there.
      ['parquet', ['--empty', 'omit', '--type', 'n=number']],
    ] as const) {
      const [file, back] = [`${table}.${name}`, `${table}-${name}`]
      expect(await copied([url(), file])).toMatchObject({ code: 0, rowsWritten: 3 })
      expect(await copied([file, url(back)], [...KEY, ...flags])).toMatchObject({ code: 0, rowsWritten: 3 })
      expect(await itemsOf(back)).toEqual(items)
    }
  })

  it('a table → PostgreSQL → a table, equal; what PostgreSQL knows of types is kept', async () => {
    const database = await freshDatabase(sharedServices().postgres18, 'routes')
    const rows = (name: string): string => `${database.url}${database.url.includes('?') ? '&' : '?'}table=${name}`
    try {
      await copied([zip('p.zip', zipped()), url()], [...KEY, ...MAPPING])
      const columns = ['--columns', 'postcode,latitude,longitude']
      await psql(database, 'CREATE TABLE postcodes (postcode text primary key, latitude numeric, longitude numeric)')
      expect(await copied([url(), rows('postcodes')], columns)).toMatchObject({ code: 0, rowsWritten: ROWS - 15 })
      expect(await psql(database, 'SELECT count(*), min(latitude) FROM postcodes')).toBe(`${ROWS - 15}|50.101`)
      expect(await copied([rows('postcodes'), url(`${table}-back`)], KEY)).toMatchObject({ rowsWritten: ROWS - 15 })
      expect(await itemsOf(`${table}-back`)).toEqual(await itemsOf(table))
      await psql(
        database,
        `CREATE TABLE typed AS SELECT 1 AS id, 2.50 AS n, 0.1::float8 AS f, true AS flag, '\\x00ff'::bytea AS bytes, '{"a":[1,null]}'::jsonb AS doc,
         '2020-01-01T00:00:00Z'::timestamptz AS at, ARRAY['a','b,c'] AS list, NULL::text AS nothing, '01' AS code`,
      )
      const typed = `${table}-typed`
      expect((await copied([rows('typed'), url(typed)], ['--create-table', '--partition-key', 'id:N'])).code).toBe(0)
      expect(await scanAll(server, typed)).toEqual([
        {
          id: { N: '1' },
          n: { N: '2.5' },
          f: { N: '0.1' },
          flag: { BOOL: true },
          bytes: { B: 'AP8=' },
          doc: { M: { a: { L: [{ N: '1' }, { NULL: true }] } } },
          at: { S: '2020-01-01T00:00:00Z' },
          list: { L: [{ S: 'a' }, { S: 'b,c' }] },
          nothing: { NULL: true },
          code: { S: '01' },
        },
      ])
    } finally {
      await database.drop()
    }
  })
})

describe('zips on the web', () => {
  const load = (source: string, more: readonly string[] = []) => copied([source, url()], [...KEY, ...MAPPING, ...more])
  const whole = async (): Promise<void> => expect(await scanAll(server, table)).toHaveLength(ROWS - 15)

  it.each<[string, () => string]>([
    ['with ranges', () => zip('a.zip', zipped())],
    ['without ranges', () => zip('a.zip', zipped(), { ranges: 'ignore' })],
    [
      'without ranges, size and date',
      () => zip('a.zip', zipped(), { ranges: 'ignore', chunked: { surplus: 0 }, etag: null, lastModified: null }),
    ],
    ['zip64', () => zip('a.zip', zipped(CSV, { zip64: true }))],
    ['cut twice on the way', () => zip('a.zip', zipped(), { cut: { afterBytes: 5000, times: 2 } })],
    ['behind a redirect', () => http.redirect(`/${tables}-moved.zip`, zip('a.zip', zipped()))],
  ])('%s: all of it is in', async (_, source) => {
    expect(await load(source())).toMatchObject({ code: 0, status: 'done', rowsRead: ROWS, rowsWritten: ROWS - 15 })
    await whole()
  })

  it('two data files: an error that names both, and --entry chooses', async () => {
    const other = { name: 'other/terminated.csv', data: Buffer.from('id,postcode,latitude,longitude\n1,Z Z,1,2\n') }
    const aside = { name: '__MACOSX/._ukpostcodes.csv', data: Buffer.from('rubbish') }
    const source = zip('two.zip', buildZip([{ name: 'ukpostcodes.csv', data: CSV }, aside, other]))
    const refused = await load(source)
    expect(refused).toMatchObject({ code: 2, rowsRead: 0, error: { code: 'SLUICE_ARCHIVE_ENTRY' } })
    expect(refused.error?.message).toContain('ukpostcodes.csv')
    expect(refused.error?.message).toContain('other/terminated.csv')
    expect(refused.error?.hint).toContain('--entry')
    expect(await load(source, ['--entry', 'other/terminated.csv'])).toMatchObject({ code: 0, rowsWritten: 1 })
    expect(await load(source, ['--entry', 'ukpostcodes.csv'])).toMatchObject({ code: 0, rowsWritten: ROWS - 15 })
  })

  it('cut short, it is an error before anything is read', async () => {
    const bytes = zipped()
    expect(await load(zip('short.zip', bytes.subarray(0, bytes.byteLength - 400)))).toMatchObject({
      rowsRead: 0,
      rowsWritten: 0,
      error: { code: expect.stringMatching(/^SLUICE_COMPRESSION$/) as unknown },
    })
  })

  it('a wrong checksum is an error, and what was put until then is told, and is replaced by the true file', async () => {
    const bad = zipped(LONG, { crc: 1 })
    const result = await load(zip('a.zip', bad), ['--types', 'string'])
    expect(result).toMatchObject({ code: 1, status: 'failed', error: { code: 'SLUICE_COMPRESSION' } })
    expect(result.error?.message).toContain('wrong checksum')
    expect(result.error?.where).toContain('a.zip')
    expect(result.warnings.join()).toContain(`the table ${url()}, which this job made, stays`)
    expect(await load(zip('b.zip', zipped(LONG)))).toMatchObject({ code: 0, rowsWritten: LONG_ROWS })
    expect(await scanAll(server, table)).toHaveLength(LONG_ROWS)
  })

  it('changed while it is read, it is an error that names it', async () => {
    const source = zip('a.zip', zipped())
    http.onRequest((path, earlier) => {
      if (path === new URL(source).pathname && earlier === 3)
        http.file(path, { bytes: zipped(Buffer.concat([CSV, CSV])) })
    })
    const result = await load(source)
    http.onRequest(() => undefined)
    expect(result).toMatchObject({ code: 1, error: { code: 'SLUICE_SOURCE_CHANGED' } })
    expect(result.error?.where).toContain('a.zip')
  })

  it.each([
    ['while it is loaded', MAPPING],
    ['while types are inferred', ['--select', 'postcode,latitude,longitude']],
  ])('broken %s, the job stops, and resume finishes it when the server is well again', async (_, flags) => {
    const bytes = zipped(LONG)
    const source = zip('a.zip', bytes)
    await copied([source, url(`${table}-whole`)], [...KEY, ...flags])
    const requests = http.requests(new URL(source).pathname).length
    http.onRequest((path, earlier) => {
      if (path !== new URL(source).pathname) return
      // Behind the first extent, of 2 MiB, which is half as long here.
      if (earlier === 2 * requests - 1) http.file(path, { bytes, cut: { afterBytes: 1_600_000, times: 1 } })
      if (earlier === 2 * requests) http.file(path, { bytes, failure: { status: 503, times: 1_000_000 } })
    })
    const stopped = await copied([source, url()], [...KEY, ...flags, '--retry-for', '1s'])
    http.onRequest(() => undefined)
    expect(stopped).toMatchObject({ code: 4, status: 'stopped' })
    expect(stopped.resumeCommand).toContain(stopped.jobId)
    zip('a.zip', bytes)
    const { code, stdout } = await sluice(['resume', stopped.jobId, '--json', '--progress', 'none'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ status: 'done', runs: 2, rowsRead: LONG_ROWS, rowsWritten: LONG_ROWS })
    expect(await scanAll(server, table)).toHaveLength(LONG_ROWS)
  })

  it('from standard input, too: spooled, since a zip is read by its directory at the end', async () => {
    const child = startCli(
      ['copy', '-', url(), ...KEY, ...MAPPING, '--json', '--progress', 'none', '--state-dir', 'state'],
      {
        cwd: folder,
        env: server.env,
        stdin: 'open',
      },
    )
    child.stdin.end(zipped())
    const { code, stdout, stderr } = await ended(child)
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ status: 'done', rowsRead: ROWS, rowsWritten: ROWS - 15 })
    await whole()
  })
})

it('out of a table to standard output, a line an item', async () => {
  await copied([zip('p.zip', zipped()), url()], [...KEY, ...MAPPING])
  const { code, stdout } = await sluice(['copy', url(), '-', '--sink-format', 'jsonl', '--progress', 'none', '-q'])
  expect(code).toBe(0)
  expect(stdout.trimEnd().split('\n')).toHaveLength(ROWS - 15)
  writeFileSync(join(folder, 'piped.jsonl'), stdout)
  expect(readFileSync(join(folder, 'piped.jsonl'), 'utf8')).toContain('"postcode":"AB001CD"')
})
