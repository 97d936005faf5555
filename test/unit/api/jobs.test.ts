import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { copy, jobs } from '../../../src/index.ts'

it('jobs are listed latest first, whatever their ids', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-jobs-'))
  try {
    writeFileSync(join(folder, 'in.csv'), 'id\n1\n')
    const common = { source: join(folder, 'in.csv'), env: {}, stateDir: join(folder, 'state') }
    for (const jobId of ['m', 'z', 'a'])
      await copy({ ...common, sink: join(folder, `${jobId}.csv`), options: {}, jobId })
    const found = await jobs(common.stateDir)
    expect(found.map((job) => job.jobId)).toEqual(['a', 'z', 'm'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('a job that is done is not done again, nor with another sink, by --job-id ID --resume', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-jobs-'))
  try {
    writeFileSync(join(folder, 'in.csv'), 'id\n1\n')
    const [sink, other] = [join(folder, 'a.csv'), join(folder, 'b.csv')]
    const job = { source: join(folder, 'in.csv'), env: {}, stateDir: join(folder, 'state'), options: {}, jobId: 'mine' }
    const first = await copy({ ...job, sink })
    expect(await copy({ ...job, sink, resume: true })).toEqual(JSON.parse(JSON.stringify(first)))
    await expect(copy({ ...job, sink: other, resume: true })).rejects.toMatchObject({
      code: 'SLUICE_USAGE',
      message: `job mine writes to ${sink}, not to ${other}`,
    })
    expect(existsSync(other)).toBe(false)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
