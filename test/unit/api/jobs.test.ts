import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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
