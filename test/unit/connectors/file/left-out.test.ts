import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy } from '../../../../src/api/copy.ts'
import type { JobResult } from '../../../../src/core/job.ts'
import type { CopyOptions } from '../../../../src/core/options.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-left-'))
  mkdirSync(join(folder, 'in/sub'), { recursive: true })
  writeFileSync(join(folder, 'in/a.csv'), 'id\n1\n')
  writeFileSync(join(folder, 'in/_SUCCESS'), '')
  writeFileSync(join(folder, 'in/sub/_SUCCESS'), '')
  symlinkSync('/nowhere/b.csv', join(folder, 'in/b.csv'))
  execFileSync('mkfifo', [join(folder, 'in/pipe')])
})
afterAll(() => rmSync(folder, { recursive: true }))

const run = (source: string, sink: string, options: CopyOptions = {}): Promise<JobResult> =>
  copy({
    source: join(folder, source),
    sink: join(folder, sink),
    stateDir: join(folder, 'state'),
    options,
    env: {},
    newJob: true,
  })

async function warnings(source: string, sink: string): Promise<readonly string[]> {
  const result = await run(source, sink)
  expect(result.error).toBeUndefined()
  return result.warnings
}

describe('what a copy leaves out', () => {
  it('is told: empty files, links to nothing, FIFOs', async () => {
    expect(await warnings('in/', 'out/')).toEqual([
      expect.stringMatching(/in\/b\.csv is left out/),
      expect.stringMatching(/in\/pipe is left out/),
      expect.stringMatching(/^2 empty objects are not copied: .*in\/_SUCCESS …/),
    ])
    expect(readdirSync(join(folder, 'out'))).toEqual(['a.csv'])
  })

  it('of rows, too, where the pattern means it; empty files have no rows', async () => {
    expect(await warnings('in/*.csv', 'rows.jsonl')).toEqual([expect.stringMatching(/in\/b\.csv is left out/)])
    expect(await warnings('in/a*', 'some.csv')).toEqual([])
  })
})

it.each([
  ['in/a*', 'wrong.jsonl'],
  ['in/', 'wrong.csv.gz'],
])('the only file of %s is not copied as it is to %s, whose name says another form', async (source, sink) => {
  expect((await run(source, sink)).error).toMatchObject({
    code: 'SLUICE_USAGE',
    hint: expect.stringContaining('--source-format csv') as string,
  })
  expect(existsSync(join(folder, sink))).toBe(false)
  expect((await run(source, sink, { sinkFormat: 'raw' })).error).toBeUndefined()
})

it('a .json file, which may be one array, becomes JSON Lines by its rows', async () => {
  writeFileSync(join(folder, 'array.json'), '[{"a":1.50},\n {"b":"x"}]\n')
  expect((await run('array.json', 'lines.jsonl')).error).toBeUndefined()
  expect(readFileSync(join(folder, 'lines.jsonl'), 'utf8')).toBe('{"a":1.50}\n{"b":"x"}\n')
  expect((await run('array.json', 'same.json')).error).toBeUndefined()
  expect(readFileSync(join(folder, 'same.json'), 'utf8')).toContain('[{"a":1.50},\n ')
})
