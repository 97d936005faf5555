import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const oxlint = join(root, 'node_modules', 'oxlint', 'bin', 'oxlint')

interface Finding {
  readonly code: string
  readonly message: string
  readonly filename: string
}

function lint(folder: string, paths: readonly string[]): Finding[] {
  let printed: string
  try {
    printed = execFileSync(process.execPath, [oxlint, '-f', 'json', ...paths], { cwd: folder, encoding: 'utf8' })
  } catch (error) {
    if (!(error instanceof Error) || !('stdout' in error)) throw error
    printed = String(error.stdout)
  }
  const parsed: { diagnostics: Finding[] } = JSON.parse(printed)
  return parsed.diagnostics
}

/** A tree with the repository's lint configuration and these files only, so that nothing is written into the real one. */
function makeTree(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-layers-'))
  mkdirSync(join(folder, 'test', 'support'), { recursive: true })
  for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json', 'test/support/oxlint-layers.mjs']) {
    cpSync(join(root, name), join(folder, name))
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

const LAYERS = 'sluice(layers)'

const violations: [path: string, text: string, code: string, says: string][] = [
  ['src/core/a1.ts', `export { x } from '../engine/x.ts'`, LAYERS, 'core may not import from engine'],
  [
    'src/core/a2.ts',
    `import { readFileSync } from 'node:fs'\nreadFileSync('x')`,
    LAYERS,
    'core may not import node:fs',
  ],
  ['src/core/a3.ts', `import { request } from 'undici'\nrequest('x')`, LAYERS, 'core may import no package'],
  ['src/core/a4.ts', `export type T = import('../engine/x.ts').T`, LAYERS, 'core may not import from engine'],
  ['src/engine/b1.ts', `export { x } from '../stores/s3/x.ts'`, LAYERS, 'engine may not import from stores'],
  ['src/engine/b2.ts', `export * from '../connectors/registry.ts'`, LAYERS, 'engine may not import from connectors'],
  ['src/engine/b3.ts', `import pg from 'pg'\npg.x()`, LAYERS, 'engine may import no package'],
  ['src/engine/deep/b4.ts', `export const x = import('../../cli/x.ts')`, LAYERS, 'engine may not import from cli'],
  ['src/aws/c1.ts', `export { x } from '../stores/s3/x.ts'`, LAYERS, 'aws may not import from stores'],
  ['src/stores/s3/d1.ts', `export { x } from '../../formats/csv/x.ts'`, LAYERS, 'stores may not import from formats'],
  ['src/stores/d2.ts', `export { x } from '../compression/x.ts'`, LAYERS, 'stores may not import from compression'],
  ['src/stores/d3.ts', `export { x } from '../engine/x.ts'`, LAYERS, 'stores may not import from engine'],
  ['src/compression/e1.ts', `export { x } from '../stores/x.ts'`, LAYERS, 'compression may not import from stores'],
  ['src/compression/e2.ts', `export { x } from '../aws/x.ts'`, LAYERS, 'compression may not import from aws'],
  [
    'src/formats/csv/f1.ts',
    `export { x } from '../../compression/x.ts'`,
    LAYERS,
    'formats may not import from compression',
  ],
  [
    'src/connectors/file/g1.ts',
    `export { x } from '../postgres/x.ts'`,
    LAYERS,
    'only registry.ts names the connectors',
  ],
  ['src/connectors/g2.ts', `export const x = import('./file/x.ts')`, LAYERS, 'only registry.ts names the connectors'],
  [
    'src/connectors/file/g3.ts',
    `export { x } from '../../engine/x.ts'`,
    LAYERS,
    'connectors may not import from engine',
  ],
  ['src/cli/h1.ts', `export { x } from '../connectors/registry.ts'`, LAYERS, 'cli may not import from connectors'],
  ['src/cli/commands/h2.ts', `export { x } from '../../engine/x.ts'`, LAYERS, 'cli may not import from engine'],
  ['src/cli/h3.ts', `export { x } from '../../test/support/x.ts'`, LAYERS, 'from outside of src/'],
  ['src/extras/i1.ts', `export const x = 1`, LAYERS, 'src/extras is no layer'],
  ['src/engine/utils/i2.ts', `export const x = 1`, LAYERS, 'utils says nothing'],
  ['src/engine/types.ts', `export const x = 1`, LAYERS, 'types.ts says nothing'],
  ['src/engine/j1.ts', `export const x = process.env`, 'eslint(no-restricted-properties)', 'process.env'],
  ['src/engine/j2.ts', `export const { argv } = process`, 'eslint(no-restricted-properties)', 'process.argv'],
  ['src/stores/j3.ts', `process.exit(1)`, 'eslint(no-restricted-properties)', 'process.exit'],
  ['src/formats/j4.ts', `process.stdout.write('x')`, 'eslint(no-restricted-properties)', 'process.stdout'],
  ['src/formats/j5.ts', `console.log('x')`, 'eslint(no-console)', 'console'],
  [
    'src/stores/j6.ts',
    `import { env } from 'node:process'\nexport const x = env`,
    'eslint(no-restricted-imports)',
    'process',
  ],
  ['src/core/k1.ts', `export const x: any = 1`, 'typescript(no-explicit-any)', 'any'],
  ['src/core/k2.ts', `export const x = (y?: number) => y!`, 'typescript(no-non-null-assertion)', ''],
  ['src/core/k3.ts', `export default 1`, 'import(no-default-export)', ''],
]

const allowed: [path: string, text: string][] = [
  [
    'src/core/ok.ts',
    `import { setTimeout } from 'node:timers/promises'\nexport { x } from './x.ts'\nexport { setTimeout }`,
  ],
  ['src/engine/ok.ts', `import { open } from 'node:fs/promises'\nexport { x } from '../core/x.ts'\nexport { open }`],
  ['src/stores/s3/ok.ts', `export { x } from '../../aws/x.ts'\nexport { y } from '../x.ts'`],
  ['src/connectors/file/ok.ts', `export { x } from '../../stores/s3/x.ts'\nexport { y } from '../../formats/csv/x.ts'`],
  ['src/connectors/registry.ts', `export const x = () => import('./file/x.ts')`],
  ['src/cli/ok.ts', `export { x } from '../index.ts'\nexport const y = process.env['X']`],
]

describe('the linter', () => {
  const folder = makeTree(Object.fromEntries([...violations, ...allowed].map(([path, text]) => [path, `${text}\n`])))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const findings = lint(folder, ['src'])

  it.each(violations)('finds what is wrong with %s: %s', (path, _text, code, says) => {
    const own = findings.filter((finding) => finding.filename.endsWith(path))
    expect(own.map((finding) => finding.code)).toContain(code)
    const message = own.find((finding) => finding.code === code)?.message ?? ''
    expect(message.toLowerCase()).toContain(says.toLowerCase())
  })

  it.each(allowed)('finds nothing wrong with %s', (path) => {
    expect(findings.filter((finding) => finding.filename.endsWith(path))).toEqual([])
  })

  it('finds no breach of the layers in the tree itself', () => {
    const codes = [LAYERS, 'eslint(no-restricted-properties)', 'eslint(no-restricted-imports)', 'eslint(no-console)']
    expect(lint(root, ['src']).filter((finding) => codes.includes(finding.code))).toEqual([])
  })
})
