import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cat, copy, inspect, list, plan, SluiceError, verify } from '../../../src/index.ts'
import type { CopyOptions, CopyRequest } from '../../../src/index.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-border-'))
  writeFileSync(join(folder, 'in.csv'), 'id,name\n1,Ada\n')
})
afterAll(() => rmSync(folder, { recursive: true }))

const request = (options: CopyOptions): CopyRequest => ({
  source: join(folder, 'in.csv'),
  sink: join(folder, 'out.jsonl'),
  options,
  env: {},
  stateDir: join(folder, 'state'),
})
/** What only JavaScript lets through. */
const untyped = (options: object): CopyOptions => options as CopyOptions

describe('an option that cannot be meant is refused before anything is opened', () => {
  it.each<[object, RegExp]>([
    [{ parallelism: -1 }, /^option parallelism -1: not a value that fits$/],
    [{ parallelism: Number.NaN }, /^option parallelism NaN/],
    [{ parallelism: 1e9 }, /^option parallelism 1000000000/],
    [{ parallelism: 1.5 }, /^option parallelism 1.5/],
    [{ parallelism: '4' }, /^option parallelism: not/],
    [{ concurrency: 0 }, /^option concurrency 0/],
    [{ concurrency: Number.POSITIVE_INFINITY }, /^option concurrency Infinity/],
    [{ workers: 257 }, /^option workers 257/],
    [{ maxMemory: 1 }, /^option maxMemory 1:/],
    [{ retryFor: -5 }, /^option retryFor -5/],
    [{ partSize: 0 }, /^option partSize 0/],
    [{ rowGroupRows: 0 }, /^option rowGroupRows 0/],
    [{ skipLines: -1 }, /^option skipLines -1/],
    [{ writeUnits: 0 }, /^option writeUnits 0/],
    [{ ifExists: 'overwrit' }, /^option ifExists: not/],
    [{ select: 'id' }, /^option select: not/],
    [{ rename: ['id'] }, /^option rename: not/],
    [{ delimiter: 'ab' }, /^option delimiter: not/],
    [{ delimiter: '\n' }, /^option delimiter: not/],
    [{ quote: '' }, /^option quote: not/],
    [{ encoding: 'utf-99' }, /^option encoding: not/],
    [{ numeric: 'decimal(99,2)' }, /^option numeric: not/],
    [{ header: 'no' }, /^option header: not/],
    [{ header: null }, /^option header null: not/],
    [{ s3Endpoint: 'http://user:secret@h:9000' }, /^option s3Endpoint: not a value that fits$/],
    [{ ifExist: 'skip' }, /^unknown option ifExist; did you mean ifExists\?$/],
    [{ toString: 1 }, /^unknown option toString/],
  ])('%j', async (options, message) => {
    const asked = request(untyped(options))
    const refused = { name: 'SluiceError', code: 'SLUICE_USAGE', message: expect.stringMatching(message) as string }
    await expect(copy(asked)).rejects.toMatchObject(refused)
    await expect(plan(asked)).rejects.toMatchObject(refused)
    await expect(inspect(asked.source, asked)).rejects.toMatchObject(refused)
    await expect(verify(asked.source, asked.source, asked)).rejects.toMatchObject(refused)
    await expect(cat(asked.source, { ...asked, stdout: process.stdout })).rejects.toMatchObject(refused)
    await expect(list(asked.source, asked).next()).rejects.toMatchObject(refused)
  })

  it('and one that is absent, or undefined, is not', async () => {
    const { status } = await copy(request(untyped({ parallelism: undefined, partSize: 1, ifExists: 'overwrite' })))
    expect(status).toBe('done')
  })
})

it.each<[string, object]>([
  ['source', { source: undefined }],
  ['stateDir', { stateDir: undefined }],
  ['options', { options: undefined }],
  ['env', { env: undefined }],
])('a request without %s is told so', async (name, missing) => {
  await expect(copy({ ...request({}), ...missing })).rejects.toMatchObject({
    code: 'SLUICE_USAGE',
    message: expect.stringMatching(new RegExp(`^${name} is missing`)) as string,
  })
})

describe('a signal of the caller', () => {
  it.each<[string, (controller: AbortController) => void, string]>([
    ['abort()', (controller) => controller.abort(), 'stopped by the caller'],
    ['abort(error)', (controller) => controller.abort(new Error('enough')), 'stopped by the caller: enough'],
    ['abort(text)', (controller) => controller.abort('enough'), 'stopped by the caller'],
  ])('%s stops a job that can be gone on with, as an interruption', async (_, abort, message) => {
    const controller = new AbortController()
    const result = await copy({
      ...request({ ifExists: 'overwrite' }),
      newJob: true,
      signal: controller.signal,
      onEvent: (event) => {
        if (event.kind === 'phase' && event.phase === 'copying') abort(controller)
      },
    })
    expect(result).toMatchObject({ status: 'stopped', error: { code: 'SLUICE_INTERRUPTED', message } })
    expect(result.resumeCommand).toBe(`sluice resume ${result.jobId}`)
  })

  it('that is aborted already lets nothing begin, and is let go of', async () => {
    const { source } = request({})
    const asked = { options: {}, env: {}, signal: AbortSignal.abort() }
    const interrupted = { code: 'SLUICE_INTERRUPTED' }
    await expect(inspect(source, asked)).rejects.toMatchObject(interrupted)
    await expect(list(source, asked).next()).rejects.toBeInstanceOf(SluiceError)
    await expect(copy({ ...request({}), ...asked })).rejects.toMatchObject(interrupted)
  })
})
