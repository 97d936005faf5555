import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHttpFaultProxy, type HttpFaultProxy } from '../support/fault-proxy-http.ts'
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

const store = sharedServices().versitygw
let proxy: HttpFaultProxy
let place: Place
let bucket: string
let bytes: Buffer
beforeEach(async () => {
  bucket = await freshBucket(store, 'signals')
  proxy = await startHttpFaultProxy(store)
  place = makePlace(proxy)
  bytes = noise(23 * MIB)
  writeFileSync(place.path('in.bin'), bytes)
})
afterEach(async () => {
  await proxy.stop()
  place.remove()
})

describe('signals while bytes are copied', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    '%s while the server stalls: code %d, the command to resume, and resume completes',
    async (signal, expected) => {
      const stalled = new WatchedPattern(/partNumber=/, 3)
      proxy.add({ method: 'PUT', url: stalled, nth: 3, answer: 'stall' })
      const child = place.start([
        'copy',
        'in.bin',
        `s3://${bucket}/out.bin`,
        '--part-size',
        '5MiB',
        '--parallelism',
        '1',
        '--json',
      ])
      const end = ended(child)
      await stalled.hit
      const beganMs = performance.now()
      child.kill(signal)
      const { code, stdout, stderr } = await end
      expect(performance.now() - beganMs).toBeLessThan(10_000)
      expect(code).toBe(expected)
      const result = lastJson(stdout)
      expect(result).toMatchObject({ status: 'stopped', error: { code: 'SLUICE_INTERRUPTED' } })
      expect(stderr).toContain(`sluice resume ${result.jobId}`)
      const resumed = await place.resume(result.jobId)
      expect([resumed.code, resumed.result.bytesWritten]).toEqual([0, bytes.length])
      expect(hash(await objectOf(store, `/${bucket}/out.bin`))).toBe(hash(bytes))
      expect(await uploadsIn(store, bucket)).toEqual([])
      const puts = proxy.requests.filter(
        ({ method, url, status }) => method === 'PUT' && /partNumber/.test(url) && status === 200,
      )
      expect(puts).toHaveLength(5)
    },
  )

  it('a second signal ends it at once', async () => {
    const held = new WatchedPattern(/uploadId=/)
    proxy.add({ method: 'PUT', url: held, times: Infinity, answer: 'stall' })
    proxy.add({ method: 'DELETE', times: Infinity, answer: 'stall' })
    writeFileSync(place.path('in.csv'), `id\n${'123456789\n'.repeat(600_000)}`)
    const child = place.start([
      'copy',
      'in.csv',
      `s3://${bucket}/out.jsonl`,
      '--part-size',
      '5MiB',
      '--job-id',
      'twice',
    ])
    const end = ended(child)
    await held.hit
    const beganMs = performance.now()
    child.kill('SIGINT')
    await new Promise((resolve) => setTimeout(resolve, 300))
    child.kill('SIGINT')
    expect((await end).code).toBe(130)
    expect(performance.now() - beganMs).toBeLessThan(5_000)
    proxy.clear()
    expect((await place.resume('twice')).result).toMatchObject({ status: 'done', rowsWritten: 600_000 })
    expect(await uploadsIn(store, bucket)).toEqual([])
  })

  it('a conversion that is stopped leaves no upload and no file, and resumes', async () => {
    writeFileSync(place.path('in.csv'), `id\n${'123456789\n'.repeat(600_000)}`)
    const stalled = new WatchedPattern(/partNumber=/)
    const remove = proxy.add({ method: 'PUT', url: stalled, answer: 'stall' })
    const child = place.start(['copy', 'in.csv', `s3://${bucket}/out.jsonl`, '--part-size', '5MiB', '--json'])
    const end = ended(child)
    await stalled.hit
    child.kill('SIGTERM')
    const { code, stdout } = await end
    remove()
    expect(code).toBe(143)
    expect([await keysIn(store, bucket), await uploadsIn(store, bucket)]).toEqual([[], []])
    const { result } = await place.resume(lastJson(stdout).jobId)
    expect(result).toMatchObject({ status: 'done', rowsRead: 600_000, rowsWritten: 600_000 })
  })

  it('a download that is stopped leaves no file behind', async () => {
    await putObject(store, `/${bucket}/in.bin`, bytes)
    const stalled = new WatchedPattern(/in\.bin/, 3)
    const remove = proxy.add({ method: 'GET', url: stalled, nth: 3, times: 9, answer: 'stall' })
    const child = place.start(['copy', `s3://${bucket}/in.bin`, 'out.bin', '--json'])
    const end = ended(child)
    await stalled.hit
    child.kill('SIGINT')
    const { code, stdout } = await end
    remove()
    expect(code).toBe(130)
    expect(readdirSync(place.folder).sort()).toEqual(['in.bin', 'state'])
    expect((await place.resume(lastJson(stdout).jobId)).code).toBe(0)
    expect(hash(readFileSync(place.path('out.bin')))).toBe(hash(bytes))
  })

  it('a reader of standard output that goes away ends it quietly with 141', async () => {
    await putObject(store, `/${bucket}/in.bin`, bytes)
    const child = place.start(['copy', `s3://${bucket}/in.bin`, '-', '-q'])
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.stdout.once('data', () => child.stdout.destroy())
    const code = await new Promise((resolve) => child.once('exit', resolve))
    expect({ code, stderr }).toEqual({ code: 141, stderr: '' })
  })
})
