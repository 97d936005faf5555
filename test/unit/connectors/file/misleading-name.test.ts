import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { plan } from '../../../../src/api/plan.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-name-'))
afterAll(() => rmSync(folder, { recursive: true }))

it.each([
  ['in.csv', 'out.csv.xz', /out\.csv\.xz will not be compressed by xz, as its name says/],
  ['in.csv', 'OUT.XLSX', /will not be an Excel file/],
  ['in.csv', 'out.csv', null],
  ['in.csv', 'out.csv.gz', null],
  ['in.csv.xz', 'out.csv.xz', null],
  ['in', 'out.xlsx', null],
])('%s → %s: %s', async (source, sink, warning) => {
  writeFileSync(join(folder, source), 'id\n1\n')
  const request = { source: join(folder, source), sink: join(folder, sink), options: {}, env: {}, stateDir: folder }
  const { warnings } = await plan(request)
  expect(warnings).toEqual(warning === null ? [] : [expect.stringMatching(warning)])
})
