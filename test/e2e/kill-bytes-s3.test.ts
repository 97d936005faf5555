import { readdirSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHttpFaultProxy, type HttpFaultProxy, type HttpFaultRule } from '../support/fault-proxy-http.ts'
import { freshBucket, sharedServices } from '../support/services.ts'
import {
  hash,
  isThere,
  keysIn,
  makePlace,
  MIB,
  noise,
  objectOf,
  putObject,
  uploadsIn,
  WatchedPattern,
  jobIds,
  killAt as killCopyAt,
} from './bytes-place.ts'
import type { Place } from './bytes-place.ts'
import { ended } from './cli-process.ts'

const store = sharedServices().versitygw
/** Five parts of 5 MiB, the last one short. */
const SIZE = 23 * MIB + 17
const PARTS = 5

let proxy: HttpFaultProxy
let place: Place
let bucket: string
beforeEach(async () => {
  bucket = await freshBucket(store, 'kill')
  proxy = await startHttpFaultProxy(store)
  place = makePlace(proxy)
})
afterEach(async () => {
  await proxy.stop()
  place.remove()
})

const PART = /partNumber=/
const partPuts = (): number =>
  proxy.requests.filter(({ method, url, status }) => method === 'PUT' && PART.test(url) && status === 200).length

/** Starts a copy, and kills it once a request has come to the proxy; `settled` waits for what the store does with it. */
const killAt = (
  words: readonly string[],
  rule: HttpFaultRule & { url: RegExp },
  settled: () => Promise<boolean> | boolean,
): Promise<string> => killCopyAt({ place, proxy }, words, { rule, settled })

async function hasUpload(): Promise<boolean> {
  return (await uploadsIn(store, bucket)).length === 1
}

describe('a copy to S3 that is killed and resumed', () => {
  const target = (): string => `s3://${bucket}/out.bin`
  const words = (...more: string[]): string[] => ['in.bin', target(), '--part-size', '5MiB', ...more]
  let bytes: Buffer
  beforeEach(() => {
    bytes = noise(SIZE)
    writeFileSync(place.path('in.bin'), bytes)
  })

  async function expectWhole(path = 'out.bin'): Promise<void> {
    expect(hash(await objectOf(store, `/${bucket}/${path}`))).toBe(hash(bytes))
    expect(await uploadsIn(store, bucket)).toEqual([])
  }

  const CREATE = /[?&]uploads/
  const COMPLETE = /[?&]uploadId=/

  const MOMENTS: readonly (readonly [string, HttpFaultRule & { url: RegExp }, () => Promise<boolean> | boolean])[] = [
    ['before Create', { method: 'POST', url: CREATE, answer: 'stall' }, () => true],
    ['after Create, its answer unseen', { method: 'POST', url: CREATE, answer: 'stall', forward: true }, hasUpload],
    ['before Complete', { method: 'POST', url: COMPLETE, answer: 'stall' }, hasUpload],
    [
      'after Complete, its answer unseen',
      { method: 'POST', url: COMPLETE, answer: 'stall', forward: true },
      () => isThere(store, `/${bucket}/out.bin`),
    ],
  ]

  it.each(MOMENTS)('%s', async (_, rule, settled) => {
    const id = await killAt(words(), rule, settled)
    const sent = partPuts()
    const { code, result, stderr } = await place.resume(id)
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    expect(result).toMatchObject({
      status: 'done',
      runs: 2,
      bytesWritten: SIZE,
      outputs: [{ url: target(), bytes: SIZE }],
    })
    await expectWhole()
    expect(partPuts()).toBe(rule.url === CREATE ? sent + PARTS : PARTS)
  })

  it('between parts: those that are there are not sent again', async () => {
    const id = await killAt(
      words('--parallelism', '1'),
      { method: 'PUT', url: PART, nth: 4, answer: 'stall' },
      hasUpload,
    )
    expect(partPuts()).toBe(3)
    const { code, result } = await place.resume(id)
    expect({ code, bytes: result.bytesWritten }).toEqual({ code: 0, bytes: SIZE })
    expect(partPuts()).toBe(PARTS)
    await expectWhole()
  })

  it('at ten random moments', async () => {
    for (let round = 0; round < 10; round += 1) {
      const key = `r${round}.bin`
      const child = place.start(['copy', 'in.bin', `s3://${bucket}/${key}`, '--part-size', '5MiB', '--job-id', key])
      const end = ended(child)
      await delay(120 + round * 45)
      child.kill('SIGKILL')
      const { code } = await end
      const begun = jobIds(place).includes(key)
      if (code !== 0 && begun) {
        const resumed = await place.resume(key)
        // The job's folder is made before its header is: a kill in between leaves no job.
        if (resumed.code !== 0) expect(resumed.result.error?.code).toBe('SLUICE_JOB_UNKNOWN')
        else await expectWhole(key)
      }
      expect(await uploadsIn(store, bucket)).toEqual([])
    }
    expect((await keysIn(store, bucket)).length).toBeGreaterThan(0)
  })

  it('the same command without an id is refused, and --new-job starts over and leaves no upload', async () => {
    const id = await killAt(words(), { method: 'POST', url: COMPLETE, answer: 'stall' }, hasUpload)
    const refused = await place.sluice(['copy', ...words()])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('[SLUICE_JOB_EXISTS]')
    expect(refused.stderr).toContain(`sluice resume ${id}`)
    const { code, result } = await place.copy(...words('--new-job'))
    expect(code).toBe(0)
    expect(result.jobId).not.toBe(id)
    await expectWhole()
  })

  it('two resumes at once: one is told that the job is running', async () => {
    const id = await killAt(words(), { method: 'POST', url: COMPLETE, answer: 'stall' }, hasUpload)
    const held = new WatchedPattern(COMPLETE)
    proxy.add({ method: 'POST', url: held, answer: { delayMs: 4000 } })
    const first = place.resume(id)
    await held.hit
    const second = await place.sluice(['resume', id])
    expect(second.code).toBe(2)
    expect(second.stderr).toContain('[SLUICE_JOB_RUNNING]')
    expect((await first).code).toBe(0)
    await expectWhole()
  })

  it('S3 to a file', async () => {
    await putObject(store, `/${bucket}/in.bin`, bytes)
    const id = await killAt(
      [`s3://${bucket}/in.bin`, 'out.bin'],
      { method: 'GET', url: /in\.bin/, nth: 2, answer: 'stall' },
      () => true,
    )
    expect(readdirSync(place.folder)).not.toContain('out.bin')
    expect((await place.resume(id)).code).toBe(0)
    const { readFileSync } = await import('node:fs')
    expect(hash(readFileSync(place.path('out.bin')))).toBe(hash(bytes))
    expect(readdirSync(place.folder).sort()).toEqual(['in.bin', 'out.bin', 'state'])
  })
})

describe('small and many outputs that are killed and resumed', () => {
  it.each([
    [0, false],
    [0, true],
    [1000, false],
    [1000, true],
  ])('%d bytes by one PUT, answer lost after the store had it: %s', async (size, forward) => {
    const bytes = noise(size)
    writeFileSync(place.path('in.bin'), bytes)
    const id = await killAt(
      ['in.bin', `s3://${bucket}/small`],
      { method: 'PUT', url: /small/, answer: 'stall', forward },
      () => !forward || isThere(store, `/${bucket}/small`),
    )
    const { code, result } = await place.resume(id)
    expect({ code, error: result.error, bytes: result.bytesWritten }).toEqual({
      code: 0,
      error: undefined,
      bytes: size,
    })
    expect(hash(await objectOf(store, `/${bucket}/small`))).toBe(hash(bytes))
  })

  it("another's object of the same size is not taken for ours", async () => {
    writeFileSync(place.path('in.bin'), 'ours!!')
    const id = await killAt(
      ['in.bin', `s3://${bucket}/small`],
      { method: 'PUT', url: /small/, answer: 'stall' },
      () => true,
    )
    await putObject(store, `/${bucket}/small`, 'theirs')
    const { code, result } = await place.resume(id)
    expect([code, result.error?.code]).toEqual([2, 'SLUICE_EXISTS'])
    expect((await objectOf(store, `/${bucket}/small`)).toString()).toBe('theirs')
  })

  it('many objects, some of which --if-exists skip leaves: the rest is copied, once', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `f${String(i).padStart(2, '0')}`)
    for (const name of names) await putObject(store, `/${bucket}/p/${name}`, `new ${name}`)
    for (const name of ['f03', 'f11']) await putObject(store, `/${bucket}/x/${name}`, 'old')
    const id = await killAt(
      [`s3://${bucket}/p/`, `s3://${bucket}/x/`, '--if-exists', 'skip'],
      { method: 'PUT', url: /x\/f/, nth: 6, times: Infinity, answer: 'stall', forward: true },
      () => true,
    )
    proxy.clear()
    const before = (await keysIn(store, bucket)).filter((key) => key.startsWith('x/'))
    expect(before.length).toBeGreaterThanOrEqual(7)
    const { code, result } = await place.resume(id)
    expect({ code, error: result.error }).toEqual({ code: 0, error: undefined })
    for (const name of names)
      expect((await objectOf(store, `/${bucket}/x/${name}`)).toString()).toBe(
        ['f03', 'f11'].includes(name) ? 'old' : `new ${name}`,
      )
  })
})

describe('a conversion to S3 that is killed and resumed', () => {
  const JSONL = Array.from({ length: 1000 }, (_, i) => `{"id":"${i}"}\n`).join('')
  beforeEach(() =>
    writeFileSync(place.path('in.csv'), `id\n${Array.from({ length: 1000 }, (_, i) => `${i}\n`).join('')}`),
  )

  it.each([
    ['before its PUT', false],
    ['after its PUT, the answer unseen', true],
  ])('%s', async (_, forward) => {
    const id = await killAt(
      ['in.csv', `s3://${bucket}/out.jsonl`],
      { method: 'PUT', url: /out\.jsonl/, answer: 'stall', forward },
      () => !forward || isThere(store, `/${bucket}/out.jsonl`),
    )
    const { code, result, stderr } = await place.resume(id)
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    expect(result).toMatchObject({ rowsRead: 1000, rowsWritten: 1000, runs: 2 })
    expect((await objectOf(store, `/${bucket}/out.jsonl`)).toString()).toBe(JSONL)
    expect(await uploadsIn(store, bucket)).toEqual([])
  })
})
