import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHttpFaultProxy, type HttpFaultProxy } from '../support/fault-proxy-http.ts'
import { freePort } from '../support/free-port.ts'
import { freshBucket, s3Do, sharedServices, startVersitygw } from '../support/services.ts'
import { hash, keysIn, makePlace, MIB, noise, objectOf, putObject, uploadsIn, WatchedPattern } from './bytes-place.ts'
import type { Place } from './bytes-place.ts'

const store = sharedServices().versitygw
const canMount = process.getuid?.() === 0 && spawnSync('mount', ['--version']).status === 0

let proxy: HttpFaultProxy
let place: Place
let bucket: string
beforeEach(async () => {
  bucket = await freshBucket(store, 'faults')
  proxy = await startHttpFaultProxy(store)
  place = makePlace(proxy)
})
afterEach(async () => {
  await proxy.stop()
  place.remove()
})

const nothingLeft = async (): Promise<void> =>
  expect([await keysIn(store, bucket), await uploadsIn(store, bucket)]).toEqual([[], []])

describe('S3 that fails for a while', () => {
  it('writing: 503 with Retry-After, 500 and cuts on every kind of request', async () => {
    const bytes = noise(23 * MIB)
    writeFileSync(place.path('in.bin'), bytes)
    proxy.add({
      method: 'PUT',
      url: /partNumber/,
      nth: 2,
      answer: { status: 503, headers: { 'retry-after': '1' }, body: '<Error><Code>SlowDown</Code></Error>' },
    })
    proxy.add({ method: 'PUT', url: /partNumber/, nth: 4, answer: 'cut' })
    proxy.add({ method: 'POST', url: /[?&]uploads/, answer: { status: 500 } })
    proxy.add({ method: 'POST', url: /uploadId/, answer: 'cut', forward: true })
    const { code, result } = await place.copy('in.bin', `s3://${bucket}/k`, '--part-size', '5MiB')
    expect({ code, error: result.error }).toEqual({ code: 0, error: undefined })
    expect(result.retries).toBeGreaterThanOrEqual(2)
    expect(hash(await objectOf(store, `/${bucket}/k`))).toBe(hash(bytes))
    expect(await uploadsIn(store, bucket)).toEqual([])
  })

  it('reading: cuts in the middle of a body, 500s', async () => {
    const bytes = noise(23 * MIB)
    await putObject(store, `/${bucket}/k`, bytes)
    proxy.add({ method: 'GET', url: /\/k/, nth: 2, times: 3, answer: { cutBodyAfter: MIB } })
    proxy.add({ method: 'GET', url: /\/k/, nth: 1, answer: { status: 500 } })
    const { code, result } = await place.copy(`s3://${bucket}/k`, 'out.bin')
    expect({ code, error: result.error }).toEqual({ code: 0, error: undefined })
    expect(hash(readFileSync(place.path('out.bin')))).toBe(hash(bytes))
  })

  it('a server that is gone stops it with 4, and resume completes', async () => {
    const bytes = noise(23 * MIB)
    writeFileSync(place.path('in.bin'), bytes)
    const remove = proxy.add({ method: 'PUT', url: /partNumber/, nth: 3, times: Infinity, answer: 'cut' })
    const { code, result } = await place.copy(
      'in.bin',
      `s3://${bucket}/k`,
      '--part-size',
      '5MiB',
      '--parallelism',
      '1',
      '--retry-for',
      '1s',
    )
    expect([code, result.status]).toEqual([4, 'stopped'])
    expect(result.resumeCommand).toContain(`sluice resume ${result.jobId}`)
    remove()
    expect((await place.resume(result.jobId)).code).toBe(0)
    expect(hash(await objectOf(store, `/${bucket}/k`))).toBe(hash(bytes))
    expect(await uploadsIn(store, bucket)).toEqual([])
  })

  it('a server that is not there any more ends it with 2', async () => {
    const own = await startVersitygw()
    const ownPlace = makePlace(own)
    try {
      const ownBucket = await freshBucket(own, 'gone')
      writeFileSync(ownPlace.path('in.bin'), noise(6 * MIB))
      await own.stop()
      const { code, result } = await ownPlace.copy('in.bin', `s3://${ownBucket}/k`, '--retry-for', '1s')
      expect([code, result.error?.code]).toEqual([2, 'SLUICE_UNREACHABLE'])
    } finally {
      ownPlace.remove()
    }
  })
})

describe('a source that changes', () => {
  it.each([
    ['changed', () => putObject(store, `/${bucket}/k`, noise(23 * MIB))],
    ['deleted', () => s3Do(store, { method: 'DELETE', path: `/${bucket}/k` }).then(() => undefined)],
  ] as const)('%s in between: the error names it, and nothing is at the sink', async (_, change) => {
    await putObject(store, `/${bucket}/k`, noise(23 * MIB))
    const read = new WatchedPattern(/\/k/, 2)
    proxy.add({ method: 'GET', url: read, nth: 2, times: Infinity, answer: { delayMs: 700 } })
    const running = place.copy(`s3://${bucket}/k`, 'out.bin')
    await read.hit
    await change()
    const { code, result } = await running
    expect([code, result.error?.code]).toEqual([1, 'SLUICE_SOURCE_CHANGED'])
    expect(result.error?.where).toContain(`s3://${bucket}/k`)
    expect(readdirSync(place.folder)).toEqual(['state'])
  })
})

describe('what is wrong from the beginning ends with 2', () => {
  it('bucket missing, key missing, wrong keys, nothing listening', async () => {
    writeFileSync(place.path('in.bin'), 'x')
    const missing = await place.copy('in.bin', 's3://no-such-bucket-here/k')
    expect([missing.code, missing.result.error?.code]).toEqual([2, 'SLUICE_NOT_FOUND'])
    expect(missing.result.error?.message).toMatch(/bucket/)
    const key = await place.copy(`s3://${bucket}/none`, 'out.bin')
    expect([key.code, key.result.error?.code]).toEqual([2, 'SLUICE_NOT_FOUND'])
    const wrong = makePlace({ ...proxy, env: { ...proxy.env, AWS_SECRET_ACCESS_KEY: 'wrong-secret' } })
    writeFileSync(wrong.path('in.bin'), 'x')
    const refused = await wrong.copy('in.bin', `s3://${bucket}/k`)
    wrong.remove()
    expect([refused.code, refused.result.error?.code]).toEqual([2, 'SLUICE_CREDENTIALS'])
    expect(refused.stderr).not.toContain('wrong-secret')
    const beganMs = performance.now()
    const nobody = await place.copy(
      'in.bin',
      `s3://${bucket}/k`,
      '--s3-endpoint',
      `http://127.0.0.1:${await freePort()}`,
    )
    expect([nobody.code, nobody.result.error?.code]).toEqual([2, 'SLUICE_UNREACHABLE'])
    expect(performance.now() - beganMs).toBeLessThan(5_000)
    await nothingLeft()
  })

  it('a folder that is missing, and a target that is a folder', async () => {
    writeFileSync(place.path('in.bin'), 'x')
    mkdirSync(place.path('folder'))
    const missing = await place.copy('in.bin', 'none/out.bin')
    expect([missing.code, missing.result.error?.code]).toEqual([2, 'SLUICE_NOT_FOUND'])
    const folder = await place.copy('in.bin', 'folder')
    expect(folder.code).toBe(2)
    expect(folder.result.error?.message).toMatch(/folder/)
  })

  it('a folder that is read-only', async () => {
    writeFileSync(place.path('in.bin'), 'x')
    const folder = place.path('ro')
    mkdirSync(folder, { mode: 0o500 })
    // Root may write wherever the file system lets it.
    if (canMount) expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'tmpfs', folder]).status).toBe(0)
    try {
      const { code, result } = await place.copy('in.bin', 'ro/out.bin')
      expect([code, result.status]).toEqual([2, 'failed'])
      expect(result.error?.code).toMatch(/SLUICE_(ACCESS_DENIED|LOCAL_IO)/)
      expect(result.error?.where).toContain('ro/out.bin')
    } finally {
      if (canMount) spawnSync('umount', [folder])
    }
  })
})

describe('a disk that is full', () => {
  it('stops with 4, frees what it had written, and resumes once there is space', async () => {
    expect(canMount, 'a small tmpfs must be mounted: run the tests as root').toBe(true)
    const disk = place.path('disk')
    mkdirSync(disk)
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', disk]).status).toBe(0)
    try {
      const bytes = noise(15 * MIB)
      await putObject(store, `/${bucket}/k`, bytes)
      writeFileSync(join(disk, 'ballast'), noise(10 * MIB))
      const { code, result } = await place.copy(`s3://${bucket}/k`, 'disk/out.bin')
      expect([code, result.status, result.error?.code]).toEqual([4, 'stopped', 'SLUICE_DISK_FULL'])
      expect(readdirSync(disk)).toEqual(['ballast'])
      rmSync(join(disk, 'ballast'))
      expect((await place.resume(result.jobId)).code).toBe(0)
      expect(hash(readFileSync(join(disk, 'out.bin')))).toBe(hash(bytes))
      expect(readdirSync(disk)).toEqual(['out.bin'])
    } finally {
      spawnSync('umount', [disk])
    }
  })
})

describe('compressed input', () => {
  const CSV = `id,name\n${Array.from({ length: 20_000 }, (_, i) => `${i},name ${i * 7919}\n`).join('')}`
  const zip = (name: string, files: readonly string[]): void => {
    for (const file of files) writeFileSync(place.path(file), CSV)
    expect(spawnSync('python3', ['-m', 'zipfile', '-c', name, ...files], { cwd: place.folder }).status).toBe(0)
  }
  const corrupted = (bytes: Buffer): Buffer => {
    const copy = Buffer.from(bytes)
    copy.writeUInt8(copy.readUInt8(copy.length >> 1) ^ 0xff, copy.length >> 1)
    return copy
  }

  it.each(['cut', 'corrupt'] as const)(
    'gzip, zstd and zip that are %s: an error, and nothing at the sink',
    async (how) => {
      writeFileSync(place.path('whole.csv'), CSV)
      expect((await place.sluice(['copy', 'whole.csv', 'whole.csv.zst'])).code).toBe(0)
      zip('whole.zip', ['d.csv'])
      const whole = {
        'bad.csv.gz': gzipSync(CSV),
        'bad.csv.zst': readFileSync(place.path('whole.csv.zst')),
        'bad.zip': readFileSync(place.path('whole.zip')),
      }
      for (const [name, bytes] of Object.entries(whole)) {
        writeFileSync(place.path(name), how === 'cut' ? bytes.subarray(0, bytes.length - 100) : corrupted(bytes))
        // Rubbish may show as a row that makes no sense before the checksum is reached.
        const { code, result } = await place.copy(name, `s3://${bucket}/out.jsonl`)
        expect({ name, code: [1, 2].includes(code ?? 0), error: result.error?.code }).toEqual({
          name,
          code: true,
          error: expect.stringMatching(/SLUICE_(COMPRESSION|ARCHIVE_ENTRY|CSV|ENCODING)/) as string,
        })
        const bytesOnly = await place.sluice(['cat', name])
        expect(bytesOnly.code).not.toBe(0)
        expect(bytesOnly.stderr).toMatch(/SLUICE_(COMPRESSION|ARCHIVE_ENTRY)/)
        await nothingLeft()
      }
    },
  )

  it('two data files in a zip: the error names both, and --entry chooses', async () => {
    zip('two.zip', ['one.csv', 'two.csv'])
    const { code, result } = await place.copy('two.zip', 'out.jsonl')
    expect([code, result.error?.code]).toEqual([2, 'SLUICE_ARCHIVE_ENTRY'])
    expect(`${result.error?.message} ${result.error?.hint}`).toMatch(/one\.csv.*two\.csv/s)
    const chosen = await place.copy('two.zip', 'out.jsonl', '--entry', 'two.csv')
    expect(chosen.result).toMatchObject({ status: 'done', rowsWritten: 20_000 })
  })

  it('plain text named .gz is read, with a warning; 0 bytes named .gz are no rows, with a warning', async () => {
    writeFileSync(place.path('plain.csv.gz'), 'id\n1\n')
    const plain = await place.copy('plain.csv.gz', 'out.jsonl')
    expect(plain.result).toMatchObject({ status: 'done', rowsWritten: 1 })
    expect(plain.result.warnings.join()).toMatch(/not compressed/)
    expect(readFileSync(place.path('out.jsonl'), 'utf8')).toBe('{"id":"1"}\n')
    writeFileSync(place.path('empty.csv.gz'), '')
    const empty = await place.copy('empty.csv.gz', 'empty.jsonl')
    expect({ code: empty.code, error: empty.result.error }).toEqual({ code: 0, error: undefined })
    expect(empty.result.warnings).not.toEqual([])
    expect(readFileSync(place.path('empty.jsonl'), 'utf8')).toBe('')
  })
})
