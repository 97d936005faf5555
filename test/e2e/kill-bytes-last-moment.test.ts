import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshBucket, sharedServices } from '../support/services.ts'
import { hash, makePlace, MIB, noise, objectOf, putObject, uploadsIn } from './bytes-place.ts'
import type { Place } from './bytes-place.ts'
import { ended } from './cli-process.ts'

const store = sharedServices().seaweedfs
let place: Place
let bucket: string
beforeEach(async () => {
  bucket = await freshBucket(store, 'last')
  place = makePlace(store)
})
afterEach(() => place.remove())

/**
 * Leaves the state folder as a kill does that comes when the output is visible and the word of it is not on disk yet: the entries from
 * `completed` (or from `end`, where that is kept) on were never written, and there is no result.
 */
function forgetTheEnd(jobId: string, from: 'completed' | 'end'): void {
  const folder = join(place.folder, 'state', 'sluice', 'jobs', jobId)
  const lines = readFileSync(join(folder, 'checkpoint.jsonl'), 'utf8').trimEnd().split('\n')
  const cut = lines.findIndex((line) => line.includes(`"kind":"${from}"`))
  expect(cut).toBeGreaterThan(0)
  writeFileSync(join(folder, 'checkpoint.jsonl'), `${lines.slice(0, cut).join('\n')}\n`)
  rmSync(join(folder, 'result.json'))
}

/** Of JSON Lines, two parts of 5 MiB at least. */
const ROWS = 400_000
const CSV = `id\n${Array.from({ length: ROWS }, (_, i) => `${i}\n`).join('')}`
const JSONL = Array.from({ length: ROWS }, (_, i) => `{"id":"${i}"}\n`).join('')

describe.each(['completed', 'end'] as const)('killed when the output was there, before "%s" was recorded', (from) => {
  it.each(['fail', 'overwrite', 'skip'] as const)('bytes to a file and to S3, --if-exists %s', async (ifExists) => {
    const bytes = noise(11 * MIB)
    writeFileSync(place.path('in.bin'), bytes)
    for (const sink of ['out.bin', `s3://${bucket}/out.bin`]) {
      const first = await place.copy('in.bin', sink, '--if-exists', ifExists, '--part-size', '5MiB')
      expect(first.code).toBe(0)
      forgetTheEnd(first.result.jobId, from)
      const { code, result } = await place.resume(first.result.jobId)
      expect({ sink, code, error: result.error, bytes: result.bytesWritten, outputs: result.outputs.length }).toEqual({
        sink,
        code: 0,
        error: undefined,
        bytes: bytes.length,
        outputs: 1,
      })
    }
    expect(hash(readFileSync(place.path('out.bin')))).toBe(hash(bytes))
    expect(hash(await objectOf(store, `/${bucket}/out.bin`))).toBe(hash(bytes))
    expect(readdirSync(place.folder).sort()).toEqual(['in.bin', 'out.bin', 'state'])
    expect(await uploadsIn(store, bucket)).toEqual([])
  })

  it.each(['fail', 'overwrite', 'skip'] as const)(
    'rows to a file and to S3 in several parts, --if-exists %s',
    async (ifExists) => {
      writeFileSync(place.path('in.csv'), CSV)
      for (const sink of ['out.jsonl', `s3://${bucket}/out.jsonl`]) {
        const first = await place.copy('in.csv', sink, '--if-exists', ifExists, '--part-size', '5MiB')
        expect(first.code).toBe(0)
        forgetTheEnd(first.result.jobId, from)
        const { code, result } = await place.resume(first.result.jobId)
        expect({ sink, code, error: result.error }).toEqual({ sink, code: 0, error: undefined })
        expect(result).toMatchObject({
          rowsRead: ROWS,
          rowsWritten: ROWS,
          bytesWritten: first.result.bytesWritten,
          outputs: [{ rows: ROWS, bytes: JSONL.length }],
        })
      }
      expect(hash(readFileSync(place.path('out.jsonl')))).toBe(hash(Buffer.from(JSONL)))
      expect(hash(await objectOf(store, `/${bucket}/out.jsonl`))).toBe(hash(Buffer.from(JSONL)))
      expect(readdirSync(place.folder).sort()).toEqual(['in.csv', 'out.jsonl', 'state'])
      expect(await uploadsIn(store, bucket)).toEqual([])
    },
  )
})

describe('another file in the place of ours', () => {
  it.each(['in.csv', 'in.bin'])('is refused by the resume of a copy of %s, and left alone', async (source) => {
    writeFileSync(place.path(source), 'id\n1\n')
    const sink = source === 'in.csv' ? 'out.jsonl' : 'out.bin'
    const first = await place.copy(source, sink)
    forgetTheEnd(first.result.jobId, 'completed')
    const theirs = 'x'.repeat(readFileSync(place.path(sink)).length)
    rmSync(place.path(sink))
    writeFileSync(place.path('new'), '')
    writeFileSync(place.path(sink), theirs)
    const { result } = await place.resume(first.result.jobId)
    expect(result.error?.code).toBe('SLUICE_EXISTS')
    expect(readFileSync(place.path(sink), 'utf8')).toBe(theirs)
  })
})

describe('copies to files that are killed at random moments', () => {
  it.each(['in.bin', 'in.csv'])('of %s', async (source) => {
    const bytes = source === 'in.bin' ? noise(60 * MIB) : Buffer.from(CSV)
    await putObject(store, `/${bucket}/${source}`, bytes)
    for (let round = 0; round < 5; round += 1) {
      const [id, sink] = [`job-${round}`, source === 'in.bin' ? `out${round}.bin` : `out${round}.jsonl`]
      const child = place.start(['copy', `s3://${bucket}/${source}`, sink, '--job-id', id])
      const end = ended(child)
      await delay(250 + round * 110)
      child.kill('SIGKILL')
      if ((await end).code === 0) continue
      const { code, result } = await place.resume(id)
      if (result.error?.code === 'SLUICE_JOB_UNKNOWN') continue
      expect({ code, error: result.error }).toEqual({ code: 0, error: undefined })
      expect(hash(readFileSync(place.path(sink)))).toBe(hash(source === 'in.bin' ? bytes : Buffer.from(JSONL)))
      expect(
        readdirSync(place.folder).filter((name) => name !== 'state' && !/^out\d\.(bin|jsonl)$/.test(name)),
      ).toEqual([])
    }
  })
})
