import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHttpFaultProxy } from '../support/fault-proxy-http.ts'
import { startMisbehavingHttp, type MisbehavingHttp } from '../support/misbehaving-http.ts'
import { freshBucket, sharedServices } from '../support/services.ts'
import {
  hash,
  keysIn,
  lastJson,
  makePlace,
  MIB,
  noise,
  objectOf,
  putObject,
  uploadsIn,
  WatchedPattern,
} from './bytes-place.ts'
import type { Place } from './bytes-place.ts'
import { ended } from './cli-process.ts'

const { versitygw, seaweedfs } = sharedServices()
let http: MisbehavingHttp
let place: Place
let bucket: string

describe.each([
  ['versitygw', versitygw],
  ['SeaweedFS', seaweedfs],
] as const)('bytes with %s', (_, store) => {
  beforeEach(async () => {
    bucket = await freshBucket(store, 'bytes')
    place = makePlace(store)
  })
  afterEach(() => place.remove())

  it.each([0, 1, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 8 * MIB + 1, 11 * MIB])(
    'file to S3 and back, %d bytes',
    async (size) => {
      const bytes = noise(size)
      writeFileSync(place.path('in.bin'), bytes)
      const up = await place.copy('in.bin', `s3://${bucket}/k`, '--part-size', '5MiB')
      expect({
        code: up.code,
        error: up.result.error,
        read: up.result.bytesRead,
        written: up.result.bytesWritten,
      }).toEqual({ code: 0, error: undefined, read: size, written: size })
      expect(hash(await objectOf(store, `/${bucket}/k`))).toBe(hash(bytes))
      const down = await place.copy(`s3://${bucket}/k`, 'out.bin')
      expect({ code: down.code, error: down.result.error }).toEqual({ code: 0, error: undefined })
      expect(hash(readFileSync(place.path('out.bin')))).toBe(hash(bytes))
      expect(await uploadsIn(store, bucket)).toEqual([])
      expect(readdirSync(place.folder).sort()).toEqual(['in.bin', 'out.bin', 'state'])
    },
  )

  it.each(['0', '1', '3'])('S3 to S3, --parallelism %s', async (parallelism) => {
    const bytes = noise(16 * MIB + 3)
    await putObject(store, `/${bucket}/a`, bytes)
    const proxy = await startHttpFaultProxy(store)
    try {
      const { code } = await place.copy(
        `s3://${bucket}/a`,
        `s3://${bucket}/b`,
        '--parallelism',
        parallelism,
        '--part-size',
        '5MiB',
        '--s3-endpoint',
        proxy.endpoint,
      )
      expect(code).toBe(0)
      expect(hash(await objectOf(store, `/${bucket}/b`))).toBe(hash(bytes))
      expect(proxy.requests.filter(({ method, url }) => method === 'PUT' && /partNumber/.test(url))).toHaveLength(4)
    } finally {
      await proxy.stop()
    }
  })

  it.each(['100%.bin', 'a+b c.txt', 'ü.bin', "it's (1) & [2].bin", 'a#b?c.bin', 'deep/er//x'])(
    'a key called %s, exactly',
    async (key) => {
      const bytes = noise(100)
      writeFileSync(place.path('in.bin'), bytes)
      expect((await place.copy('in.bin', `s3://${bucket}/${key}`)).result.error).toBeUndefined()
      expect(hash(await objectOf(store, `/${bucket}/${key}`))).toBe(hash(bytes))
      expect((await place.copy(`s3://${bucket}/${key}`, 'out.bin')).result.error).toBeUndefined()
      expect(hash(readFileSync(place.path('out.bin')))).toBe(hash(bytes))
    },
  )

  it('an object of exactly the name beats a glob, --no-glob takes * as itself, a glob takes all that match', async () => {
    for (const key of ['p/a*.bin', 'p/ab.bin', 'p/ac.bin', 'p/q/ad.bin'])
      await putObject(store, `/${bucket}/${key}`, key)
    expect((await place.copy(`s3://${bucket}/p/a*.bin`, 'exact.bin')).code).toBe(0)
    expect(readFileSync(place.path('exact.bin'), 'utf8')).toBe('p/a*.bin')
    expect((await place.copy(`s3://${bucket}/p/a*.bin`, 'plain.bin', '--no-glob')).code).toBe(0)
    expect(readFileSync(place.path('plain.bin'), 'utf8')).toBe('p/a*.bin')
    mkdirSync(place.path('all'))
    const many = await place.copy(`s3://${bucket}/p/a[bc].bin`, 'all/')
    expect(many.result).toMatchObject({ status: 'done', partitions: 2 })
    expect(readdirSync(place.path('all')).sort()).toEqual(['ab.bin', 'ac.bin'])
    const none = await place.copy(`s3://${bucket}/p/z*.bin`, 'z.bin')
    expect([none.code, none.result.error?.code]).toEqual([2, 'SLUICE_NOTHING_MATCHES'])
  })

  it('prefix to prefix and prefix to folder: names stay, markers, empty objects and neighbours are left out', async () => {
    const files: Record<string, string> = { 'p/a.txt': 'A', 'p/q/b.txt': 'B', 'p/ü +.txt': 'C' }
    for (const [key, body] of Object.entries(files)) await putObject(store, `/${bucket}/${key}`, body)
    await putObject(store, `/${bucket}/p/marker/`, '')
    await putObject(store, `/${bucket}/p/empty.txt`, '')
    await putObject(store, `/${bucket}/p2/no.txt`, 'no')
    expect((await place.copy(`s3://${bucket}/p/`, `s3://${bucket}/x/`)).result).toMatchObject({
      status: 'done',
      partitions: 3,
    })
    for (const [key, body] of Object.entries(files))
      expect((await objectOf(store, `/${bucket}/${key.replace(/^p/, 'x')}`)).toString()).toBe(body)
    expect((await keysIn(store, bucket)).filter((key) => key.startsWith('x/') && !key.endsWith('/'))).toHaveLength(3)
    const down = await place.copy(`s3://${bucket}/p/`, 'tree/')
    expect([down.code, down.result.error]).toEqual([0, undefined])
    expect(readdirSync(place.path('tree'), { recursive: true }).map(String).sort()).toEqual([
      'a.txt',
      'q',
      'q/b.txt',
      'ü +.txt',
    ])
    expect(readFileSync(place.path('tree/q/b.txt'), 'utf8')).toBe('B')
  })

  it('a folder of files to a prefix', async () => {
    mkdirSync(place.path('in/sub'), { recursive: true })
    writeFileSync(place.path('in/one.bin'), '1')
    writeFileSync(place.path('in/sub/two.bin'), '2')
    expect((await place.copy('in/', `s3://${bucket}/d/`)).result).toMatchObject({ status: 'done', partitions: 2 })
    expect((await objectOf(store, `/${bucket}/d/sub/two.bin`)).toString()).toBe('2')
    expect((await place.copy('in/*.bin', `s3://${bucket}/g/`)).result).toMatchObject({ status: 'done', partitions: 1 })
    expect((await objectOf(store, `/${bucket}/g/one.bin`)).toString()).toBe('1')
  })

  it('standard input of unknown size to S3, and S3 to standard output', async () => {
    const bytes = noise(12 * MIB + 5)
    const child = place.start(['copy', '-', `s3://${bucket}/stdin`, '--part-size', '5MiB', '--json'], { stdin: 'open' })
    child.stdin.end(bytes)
    const { code, stdout } = await ended(child)
    expect({ code, bytes: lastJson(stdout).bytesWritten }).toEqual({ code: 0, bytes: bytes.length })
    expect(hash(await objectOf(store, `/${bucket}/stdin`))).toBe(hash(bytes))
    const out = place.start(['copy', `s3://${bucket}/stdin`, '-', '--json'])
    const chunks: Buffer[] = []
    out.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    let stderr = ''
    out.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    await new Promise((resolve) => out.once('close', resolve))
    expect(hash(Buffer.concat(chunks))).toBe(hash(bytes))
    expect(lastJson(stderr)).toMatchObject({ status: 'done', sink: '-', bytesWritten: bytes.length })
  })

  it('--if-exists: fail before any byte moved, overwrite, skip', async () => {
    writeFileSync(place.path('in.bin'), noise(6 * MIB))
    await putObject(store, `/${bucket}/k`, 'old')
    const failed = await place.copy('in.bin', `s3://${bucket}/k`)
    expect([failed.code, failed.result.error?.code, failed.result.bytesRead]).toEqual([2, 'SLUICE_EXISTS', 0])
    const skipped = await place.copy('in.bin', `s3://${bucket}/k`, '--if-exists', 'skip')
    expect([skipped.code, skipped.result.status, skipped.result.bytesWritten]).toEqual([0, 'done', 0])
    expect((await objectOf(store, `/${bucket}/k`)).toString()).toBe('old')
    expect((await place.copy('in.bin', `s3://${bucket}/k`, '--if-exists', 'overwrite')).code).toBe(0)
    expect(await objectOf(store, `/${bucket}/k`)).toHaveLength(6 * MIB)
  })

  it.each([
    ['fail', 1, 'failed'],
    ['skip', 0, 'done'],
  ] as const)(
    '--if-exists %s: an object that comes in between is never overwritten',
    async (ifExists, code, status) => {
      writeFileSync(place.path('in.bin'), noise(11 * MIB))
      const proxy = await startHttpFaultProxy(store)
      try {
        const complete = new WatchedPattern(/[?&]uploadId=/)
        proxy.add({ method: 'POST', url: complete, answer: { delayMs: 1500 } })
        const running = place.copy(
          'in.bin',
          `s3://${bucket}/k`,
          '--if-exists',
          ifExists,
          '--part-size',
          '5MiB',
          '--s3-endpoint',
          proxy.endpoint,
        )
        await complete.hit
        await putObject(store, `/${bucket}/k`, 'theirs')
        const ended = await running
        expect([ended.code, ended.result.status]).toEqual([code, status])
        expect((await objectOf(store, `/${bucket}/k`)).toString()).toBe('theirs')
        expect(await uploadsIn(store, bucket)).toEqual([])
      } finally {
        await proxy.stop()
      }
    },
  )
})

describe('from HTTP', () => {
  beforeEach(async () => {
    bucket = await freshBucket(versitygw, 'http')
    place = makePlace(versitygw)
    http = await startMisbehavingHttp()
  })
  afterEach(async () => {
    await http.stop()
    place.remove()
  })

  it.each([
    ['with ranges', {}],
    ['without ranges', { ranges: 'ignore' }],
    ['without a length', { ranges: 'ignore', chunked: { surplus: 0 } }],
    ['cut twice', { cut: { afterBytes: 2 * MIB, times: 2 } }],
    ['busy at first', { failure: { status: 503, times: 2, retryAfter: '1' } }],
    ['without ETag', { etag: null }],
  ] as const)('%s', async (_, file) => {
    const bytes = noise(12 * MIB + 7)
    const { code, result } = await place.copy(http.file('/f.bin', { bytes, ...file }), `s3://${bucket}/f.bin`)
    expect({ code, error: result.error }).toEqual({ code: 0, error: undefined })
    expect(hash(await objectOf(versitygw, `/${bucket}/f.bin`))).toBe(hash(bytes))
  })

  it('a stall in the middle of a body is taken up again after 30 s', async () => {
    const bytes = noise(3 * MIB)
    const url = http.file('/f.bin', { bytes, stall: { afterBytes: MIB, times: 1 } })
    const { code, result } = await place.copy(url, 'out.bin')
    expect({ code, error: result.error }).toEqual({ code: 0, error: undefined })
    expect(result.retries).toBe(1)
    expect(hash(readFileSync(place.path('out.bin')))).toBe(hash(bytes))
  })

  it('a file that changes in between is an error, and nothing is at the sink', async () => {
    const url = http.file('/f.bin', { bytes: noise(23 * MIB) })
    http.onRequest((_, earlier) => {
      if (earlier === 2) http.file('/f.bin', { bytes: noise(23 * MIB) })
    })
    const { code, result } = await place.copy(url, `s3://${bucket}/f.bin`)
    expect([code, result.error?.code]).toEqual([1, 'SLUICE_SOURCE_CHANGED'])
    expect(result.error?.where).toContain('/f.bin')
    expect([await keysIn(versitygw, bucket), await uploadsIn(versitygw, bucket)]).toEqual([[], []])
  })

  it('another length than was told is an error, and nothing is at the sink', async () => {
    const url = http.file('/f.bin', {
      bytes: noise(MIB),
      ranges: 'ignore',
      etag: null,
      lastModified: null,
      lengthError: 1000,
    })
    const { code, result } = await place.copy(url, `s3://${bucket}/f.bin`, '--retry-for', '1s')
    expect(code).not.toBe(0)
    expect(result.error?.code).toMatch(/SLUICE_(SOURCE_SHORT|NETWORK|NOT_REPLAYABLE|SOURCE_CHANGED)/)
    expect([await keysIn(versitygw, bucket), await uploadsIn(versitygw, bucket)]).toEqual([[], []])
  })

  it('a zip without ranges is spooled and read', async () => {
    const { execFileSync } = await import('node:child_process')
    writeFileSync(place.path('d.csv'), 'a,b\n1,2\n')
    execFileSync('python3', ['-m', 'zipfile', '-c', 'd.zip', 'd.csv'], { cwd: place.folder })
    const url = http.file('/d.zip', { bytes: readFileSync(place.path('d.zip')), ranges: 'ignore' })
    const { code, result } = await place.copy(url, 'out.jsonl')
    expect({ code, error: result.error }).toEqual({ code: 0, error: undefined })
    expect(readFileSync(place.path('out.jsonl'), 'utf8')).toBe('{"a":"1","b":"2"}\n')
    expect(
      readdirSync(place.path('state'), { recursive: true }).filter((name) => /archive|spool-/.test(String(name))),
    ).toEqual([])
  })
})

describe('conversions', () => {
  const CSV = 'id,name,note\n1,Ada,""\n2,"Gr,ace",\n3,"ü""x","a\nb"\n'
  const JSONL =
    '{"id":"1","name":"Ada","note":""}\n{"id":"2","name":"Gr,ace","note":null}\n{"id":"3","name":"ü\\"x","note":"a\\nb"}\n'
  beforeEach(async () => {
    bucket = await freshBucket(versitygw, 'convert')
    place = makePlace(versitygw)
    writeFileSync(place.path('in.csv'), CSV)
  })
  afterEach(() => place.remove())

  it('csv to jsonl: the empty string and NULL differ', async () => {
    const { code, result } = await place.copy('in.csv', 'out.jsonl')
    expect(code).toBe(0)
    expect(result).toMatchObject({ rowsRead: 3, rowsWritten: 3, outputs: [{ rows: 3 }] })
    expect(readFileSync(place.path('out.jsonl'), 'utf8')).toBe(JSONL)
  })

  it('jsonl to csv, columns chosen and renamed, to S3 and standard output', async () => {
    writeFileSync(place.path('in.jsonl'), JSONL)
    const expected = 'note,id\n"",1\n,2\n"a\nb",3\n'
    expect((await place.copy('in.jsonl', `s3://${bucket}/o.csv`, '--select', 'note,id')).result.error).toBeUndefined()
    expect((await objectOf(versitygw, `/${bucket}/o.csv`)).toString()).toBe(expected)
    const { code, stdout, stderr } = await place.sluice([
      'copy',
      'in.jsonl',
      '-',
      '--sink-format',
      'csv',
      '--select',
      'note,id',
      '--json',
    ])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expected })
    expect(lastJson(stderr)).toMatchObject({ rowsWritten: 3, sink: '-' })
  })

  it('csv.gz to csv, csv to csv.gz and csv.zst, and back', async () => {
    writeFileSync(place.path('in.csv.gz'), gzipSync(CSV))
    expect((await place.copy('in.csv.gz', 'out.csv')).result.error).toBeUndefined()
    expect(readFileSync(place.path('out.csv'), 'utf8')).toBe(CSV)
    expect((await place.copy('in.csv', `s3://${bucket}/o.csv.gz`)).result.error).toBeUndefined()
    expect(gunzipSync(await objectOf(versitygw, `/${bucket}/o.csv.gz`)).toString()).toBe(CSV)
    expect((await place.copy('in.csv', 'o.csv.zst')).result.error).toBeUndefined()
    expect(readFileSync(place.path('o.csv.zst')).subarray(0, 4).toString('hex')).toBe('28b52ffd')
    expect((await place.sluice(['cat', 'o.csv.zst'])).stdout).toBe(CSV)
  })

  it('cat and ls', async () => {
    writeFileSync(place.path('in.csv.gz'), gzipSync(CSV))
    expect((await place.sluice(['cat', 'in.csv.gz'])).stdout).toBe(CSV)
    expect((await place.sluice(['cat', 'in.csv', '--as', 'jsonl'])).stdout).toBe(JSONL)
    for (const key of ['l/a.csv', 'l/b.csv', 'l/c.txt']) await putObject(versitygw, `/${bucket}/${key}`, key)
    const listed = await place.sluice(['ls', `s3://${bucket}/l/*.csv`])
    expect(listed.code).toBe(0)
    expect(listed.stdout).toMatch(/a\.csv[\s\S]*b\.csv/)
    expect(listed.stdout).not.toContain('c.txt')
    const json = await place.sluice(['ls', `s3://${bucket}/l/`, '--json'])
    expect(json.code).toBe(0)
    for (const key of ['a.csv', 'b.csv', 'c.txt']) expect(json.stdout).toContain(key)
  })
})
