import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { jobExitCode } from '../../src/cli/exit-code.ts'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { type DynamoPlace, openDynamoPlace } from '../support/dynamo-place.ts'
import { type DynamoFaults, type DynamoServer, type SeenBatch, scanAll } from '../support/dynamodb.ts'
import { type MisbehavingHttp, startMisbehavingHttp } from '../support/misbehaving-http.ts'
import { buildZip } from '../unit/compression/build-zip.ts'

// The ten bugs of the program of the third experiment (mojitocoder/etl-ddb), one test each: what it did, and what sluice does instead.

let place: DynamoPlace
let server: DynamoServer
let faults: DynamoFaults
let http: MisbehavingHttp
let folder = ''
let tables = 0
let table = ''
/** Requests of this test begin here. */
let first = 0

beforeAll(async () => {
  place = await openDynamoPlace('article')
  ;({ server, faults, folder } = place)
  http = await startMisbehavingHttp()
})
afterAll(async () => {
  await http.stop()
  await place.close()
})
beforeEach(() => {
  table = `Postcodes-${(tables += 1)}`
  first = faults.batches.length
  faults.decide = () => 'pass'
})

const state = (): string => join(folder, `state-${tables}`)
const load = (source: string, options: CopyOptions = {}): Promise<JobResult> =>
  copy({
    source,
    sink: `dynamodb:///${table}`,
    options: { createTable: true, partitionKey: 'postcode', ...options },
    env: faults.env,
    stateDir: state(),
  })

function file(text: string): string {
  const path = join(folder, `${tables}.csv`)
  writeFileSync(path, text)
  return path
}

const HEADER = 'id,postcode,latitude,longitude\n'
const rows = (count: number): string =>
  HEADER + Array.from({ length: count }, (_, i) => `${i},AB${i} 1CD,5${i}.1,-1.5\n`).join('')
const batches = (): readonly SeenBatch[] => faults.batches.slice(first)
const keys = async (): Promise<string[]> =>
  (await scanAll(server, table)).map((item) => String(item['postcode']?.['S'])).toSorted()
const SELECT: CopyOptions = { select: ['postcode', 'latitude', 'longitude'] }

it('article bug 1: items that come back unprocessed are sent again until each is in', async () => {
  faults.decide = ({ number }) => (number % 3 === 0 ? { unprocessed: (_, i) => i % 2 === 0 } : 'pass')
  expect(await load(file(rows(400)))).toMatchObject({ status: 'done', rowsRead: 400, rowsWritten: 400 })
  expect(batches().reduce((sum, { items }) => sum + items.length, 0)).toBeGreaterThan(400)
  expect(await keys()).toHaveLength(400)
})

it('article bug 2: no empty request is sent, whichever rows are left out', async () => {
  const leftOut = (i: number): boolean => i < 2 || i % 25 === 0 || i % 26 === 0 || i > 95
  const text = Array.from({ length: 100 }, (_, i) => `${i},P${i},${leftOut(i) ? '' : '1.5'},2\n`).join('')
  const written = Array.from({ length: 100 }, (_, i) => i).filter((i) => !leftOut(i)).length
  const result = await load(file(HEADER + text), { ...SELECT, skipIfEmpty: ['latitude', 'longitude'] })
  expect(result).toMatchObject({ status: 'done', rowsRead: 100, rowsWritten: written, rowsSkipped: 100 - written })
  expect(batches().length).toBeGreaterThan(0)
  for (const { items } of batches()) expect(items.length).toBeGreaterThan(0)
})

it('article bug 3: a load that failed never says that it went well', async () => {
  faults.decide = ({ number }) => (number - first < 2 ? 'pass' : { error: 'AccessDeniedException' })
  const result = await load(file(rows(200)))
  expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_ACCESS_DENIED' } })
  // Not 2, which would say that nothing moved: two requests were answered.
  expect(jobExitCode(result, null)).toBe(1)
  expect(result.leftRows).toBe(true)
  expect(await keys()).toHaveLength(50)
})

it('article bug 4: one slow request holds up no other', async () => {
  let restCame: () => void = () => undefined
  const rest = new Promise<void>((resolve) => (restCame = resolve))
  faults.decide = ({ number }) => {
    // A barrier of two requests would wait for the slow one for ever.
    if (number - first === 30) restCame()
    return number === first ? { after: rest } : 'pass'
  }
  expect(await load(file(rows(1000)), { concurrency: 2 })).toMatchObject({ status: 'done', rowsWritten: 1000 })
  expect(batches().length).toBeGreaterThanOrEqual(40)
})

it('article bug 5: quoted fields, doubled quotes, line ends in a field and a byte-order mark are read as CSV is', async () => {
  const text = '\uFEFFid,postcode,latitude,longitude,name\n1,"AB1, 1CD",1.5,2,"a ""b"""\n2,P2,1.5,2,"two\nlines"\r\n'
  expect(await load(file(text))).toMatchObject({ status: 'done', rowsRead: 2, rowsWritten: 2 })
  expect(await scanAll(server, table)).toContainEqual({
    id: { N: '1' },
    postcode: { S: 'AB1, 1CD' },
    latitude: { N: '1.5' },
    longitude: { N: '2' },
    name: { S: 'a "b"' },
  })
  expect(await keys()).toEqual(['AB1, 1CD', 'P2'])
  // A row of too few fields is no row to be left out without a word.
  expect(await load(file(`${HEADER}1,P1,1,2\n2,P2,1\n`))).toMatchObject({
    status: 'failed',
    error: { code: 'SLUICE_CSV_FIELD_COUNT', where: expect.stringContaining('row 2') as unknown },
  })
})

it('article bug 6: a row is parsed once and put once; only types that have to be found out take a second reading', async () => {
  const note = 'n'.repeat(10_000)
  const path = file(`id,postcode,note\n${Array.from({ length: 400 }, (_, i) => `${i},P${i},${note}\n`).join('')}`)
  const { size } = statSync(path)
  const known = await load(path, { type: ['id=number', 'postcode=string', 'note=string'] })
  expect(known).toMatchObject({ status: 'done', rowsRead: 400, rowsWritten: 400 })
  // Beside the whole file its head, which is looked at for the names of the columns.
  expect(known.bytesRead).toBeLessThan(1.5 * size)
  const puts = batches().flatMap(({ items }) => items.map((item) => item['postcode']?.['S']))
  expect(puts).toHaveLength(400)
  expect(new Set(puts).size).toBe(400)
  expect((await load(path)).bytesRead).toBeGreaterThanOrEqual(2 * size)
})

it('article bug 7: a download is what the server meant to send, or an error', async () => {
  const zip = buildZip([{ name: 'ukpostcodes.csv', data: Buffer.from(rows(300)) }])
  expect(await load(`${http.origin}/nothing.zip`)).toMatchObject({
    status: 'failed',
    error: { code: 'SLUICE_NOT_FOUND' },
  })
  const failing = http.file('/failing.zip', { bytes: zip, failure: { status: 403, times: 1000 } })
  expect(await load(failing)).toMatchObject({ status: 'failed', error: { code: 'SLUICE_ACCESS_DENIED' } })
  const short = http.file('/short.zip', { bytes: zip, ranges: 'ignore', lengthError: 1000 })
  const cut = await load(short, { retryFor: 300 })
  expect(cut.status).not.toBe('done')
  expect(jobExitCode(cut, null)).not.toBe(0)
  http.file('/moved/whole.zip', { bytes: zip, cut: { afterBytes: 1000, times: 2 } })
  const moved = http.redirect('/whole.zip', '/moved/whole.zip')
  expect(await load(moved)).toMatchObject({ status: 'done', rowsRead: 300, rowsWritten: 300 })
  expect(await keys()).toHaveLength(300)
})

it('article bug 8: no request holds a key twice, and the later row is what stays', async () => {
  const text = Array.from({ length: 200 }, (_, i) => `${i},P${i % 3},${i},2\n`).join('')
  const result = await load(file(HEADER + text), { type: ['latitude=number'] })
  expect(result).toMatchObject({ status: 'done', rowsRead: 200 })
  expect(result.rowsWritten + result.skipped.superseded).toBe(200)
  for (const { items } of batches())
    expect(new Set(items.map((item) => item['postcode']?.['S'])).size).toBe(items.length)
  const last = (await scanAll(server, table)).map((item) => item['latitude']?.['N'])
  expect(last.toSorted()).toEqual(['197', '198', '199'])
})

it('article bug 9: neither the zip nor the CSV touches the disk where the server has ranges', async () => {
  // A folder of its own for what is temporary: other tests are at work in the usual one.
  const temporary = join(folder, 'temporary')
  mkdirSync(temporary)
  vi.stubEnv('TMPDIR', temporary)
  expect(tmpdir()).toBe(temporary)
  const data = Buffer.from(
    rows(60_000)
      .slice(0, 600_000)
      .replace(/[^\n]*$/, ''),
  )
  const source = http.file('/large.zip', { bytes: buildZip([{ name: 'a.csv', data, method: 0 }]) })
  let [looks, most] = [0, 0]
  faults.decide = () => {
    looks += 1
    if (looks % 20 === 1) most = Math.max(most, bytesBelow(state()))
    return 'pass'
  }
  const result = await load(source, { ...SELECT, types: 'string' }).finally(() => vi.unstubAllEnvs())
  expect(result.status).toBe('done')
  expect(looks).toBeGreaterThan(100)
  expect(most).toBeLessThan(50_000)
  expect(bytesBelow(temporary)).toBeLessThan(50_000)
})

it('article bug 10: every blank goes, by one rule wherever it runs', async () => {
  const text = `${HEADER}1,AB1 1 C D,1,2\n2,"  X  ",1,2\n`
  const options = { ...SELECT, replace: ['postcode=/ //'] }
  expect(await load(file(text), options)).toMatchObject({ status: 'done', rowsWritten: 2 })
  expect(await keys()).toEqual(['AB11CD', 'X'])
  const jsonl = join(folder, `${tables}.jsonl`)
  writeFileSync(
    jsonl,
    '{"postcode":"AB1 1 C D","latitude":1,"longitude":2}\n{"postcode":"  X  ","latitude":1,"longitude":2}\n',
  )
  expect(await load(jsonl, options)).toMatchObject({ status: 'done', rowsWritten: 2 })
  expect(await keys()).toEqual(['AB11CD', 'X'])
})

/** Bytes of all files below a folder; a folder that others are at work in may lose some meanwhile. */
function bytesBelow(path: string): number {
  const info = statSync(path, { throwIfNoEntry: false })
  if (info === undefined) return 0
  if (!info.isDirectory()) return info.size
  return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0)
}
