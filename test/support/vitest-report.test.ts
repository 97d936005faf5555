import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { countReport } from './vitest-report.mjs'

const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))
const HEAD = `import { expect, it } from 'vitest'\n`

/** Runs vitest itself over these test files, and counts. */
function runAndCount(files: Readonly<Record<string, string>>, config = ''): ReturnType<typeof countReport> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-report-'))
  try {
    symlinkSync(modules, join(folder, 'node_modules'))
    mkdirSync(join(folder, 'test'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'vitest.config.js'), `export default { test: { include: ['test/*.js'], ${config} } }`)
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'test', name), HEAD + text)
    const report = join(folder, 'report.json')
    const args = [join(modules, 'vitest', 'vitest.mjs'), 'run', '--reporter=json', `--outputFile.json=${report}`]
    const env = { PATH: process.env.PATH ?? '', HOME: folder }
    const { status, signal } = spawnSync(process.execPath, args, { cwd: folder, env })
    return countReport({ report, code: status, signal })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const PASSES = `it('a', () => expect(1).toBe(1))\nit('b', () => expect(1).toBe(1))`

it('counts what passes', () => {
  expect(runAndCount({ 'a.js': PASSES })).toEqual({ passed: 2, failed: 0, notes: [] })
})

it('counts a failure, a suite that does not load, a hook that fails and a skipped test', () => {
  const counted = runAndCount({
    'a.js': PASSES,
    'b.js': `it('fails', () => expect(1).toBe(2))`,
    'c.js': `throw new Error('at load')`,
    'd.js': `import { afterAll } from 'vitest'\nafterAll(() => { throw new Error('hook') })\n${PASSES}`,
    'e.js': `it.skip('later', () => undefined)\nit.todo('some day')`,
  })
  expect(counted).toMatchObject({ passed: 4, failed: 5 })
  expect(counted.notes).toHaveLength(3)
})

it('counts an error outside of any test, a run without tests, and a setup that fails', () => {
  const stray = `it('a', async () => { setTimeout(() => { throw new Error('stray') }, 1); await new Promise((r) => setTimeout(r, 50)) })`
  expect(runAndCount({ 'a.js': stray })).toMatchObject({ passed: 1, failed: 1 })
  expect(runAndCount({})).toMatchObject({ passed: 0, failed: 1 })
  expect(runAndCount({ 'a.js': PASSES }, `globalSetup: './missing.js'`)).toMatchObject({ passed: 0, failed: 1 })
})
