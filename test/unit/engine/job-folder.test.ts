import { existsSync } from 'node:fs'
import { appendFile, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { JobFolder, findUnfinished, listJobIds, viewJob } from '../../../src/engine/job-folder.ts'

const header = {
  jobId: 'a-job',
  createdAt: '2026-12-02T00:00:00.000Z',
  source: 's3://b/k',
  sink: 'file',
  options: {},
  fingerprint: 'f00',
  resumable: true,
}

describe('JobFolder', () => {
  let stateDir = ''
  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'sluice-jobs-'))
  })
  afterEach(() => rm(stateDir, { recursive: true, force: true }))

  it('appears whole, with its lock, and leaves nothing else behind', async () => {
    const folder = await JobFolder.create(stateDir, header)
    expect(await readdir(join(stateDir, 'jobs'))).toEqual(['a-job'])
    expect(await viewJob(stateDir, 'a-job')).toMatchObject({ header, running: true, result: null })
    await expect(JobFolder.open(stateDir, 'a-job')).rejects.toMatchObject({ code: 'SLUICE_JOB_RUNNING' })
    await folder.close()
    expect((await viewJob(stateDir, 'a-job')).running).toBe(false)
  })

  it.runIf(existsSync('/proc/self'))('is an error where no folder can be made, and is not tried for ever', async () => {
    await expect(JobFolder.create('/proc/no-such/state', header)).rejects.toMatchObject({ code: 'SLUICE_STATE' })
    await writeFile(join(stateDir, 'file'), '')
    await expect(JobFolder.create(join(stateDir, 'file'), header)).rejects.toMatchObject({ code: 'SLUICE_STATE' })
    const deep = join(stateDir, 'a', 'b', 'c')
    await (await JobFolder.create(deep, header)).close()
    expect(await listJobIds(deep)).toEqual(['a-job'])
  })

  it('is made once for an id, and the one that is there stays as it is', async () => {
    await (await JobFolder.create(stateDir, header)).close()
    await expect(JobFolder.create(stateDir, { ...header, source: 'other' })).rejects.toMatchObject({
      code: 'SLUICE_JOB_EXISTS',
    })
    expect(await listJobIds(stateDir)).toEqual(['a-job'])
    expect((await viewJob(stateDir, 'a-job')).header.source).toBe('s3://b/k')
  })

  it('keeps what many appended at once, and cuts a torn last line off', async () => {
    const folder = await JobFolder.create(stateDir, header)
    await Promise.all(Array.from({ length: 20 }, (_, entry) => folder.append({ kind: 'sink', entry })))
    await folder.close()
    const file = join(stateDir, 'jobs', 'a-job', 'checkpoint.jsonl')
    await appendFile(file, '{"kind":"sink","ent')
    const again = await JobFolder.open(stateDir, 'a-job')
    expect(again.entries).toEqual(Array.from({ length: 20 }, (_, entry) => ({ kind: 'sink', entry })))
    await again.append({ kind: 'sink', entry: 'more' })
    await again.close()
    expect((await readFile(file, 'utf8')).trim().split('\n')).toHaveLength(21)
  })

  it('is found by its fingerprint until it has a result', async () => {
    const folder = await JobFolder.create(stateDir, header)
    expect((await findUnfinished(stateDir, 'f00'))?.header.jobId).toBe('a-job')
    expect(await findUnfinished(stateDir, 'beef')).toBeNull()
    await folder.close()
  })

  it('takes no id that leads out of its folder', async () => {
    for (const jobId of ['../x', '.hidden', '', 'a/b'])
      await expect(JobFolder.create(stateDir, { ...header, jobId })).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
    await expect(viewJob(stateDir, '../a-job')).rejects.toMatchObject({ code: 'SLUICE_JOB_UNKNOWN' })
  })
})
