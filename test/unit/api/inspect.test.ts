import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { copy, inspect } from '../../../src/index.ts'

it('a Parquet file is as large as it is on the disk, not as its row groups are', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-inspect-'))
  try {
    writeFileSync(join(folder, 'in.csv'), 'id,name\n1,Ada\n')
    const sink = join(folder, 'out.parquet')
    const job = { source: join(folder, 'in.csv'), sink, options: {}, env: {}, stateDir: join(folder, 'state') }
    expect((await copy(job)).status).toBe('done')
    const { bytes, counts } = await inspect(sink, job)
    expect({ bytes, counts }).toEqual({ bytes: statSync(sink).size, counts: { rows: 1, exact: true } })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
