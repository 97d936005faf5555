import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { ERROR_RULES } from '../../src/core/errors.ts'
import { renderErrorsDoc } from '../support/write-errors-doc.mjs'

it('docs/errors.md is what the table of codes says', () => {
  const written = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  expect(written, 'stale: npm run build, then node test/support/write-errors-doc.mjs').toBe(
    renderErrorsDoc(ERROR_RULES),
  )
})

it('each code is reported somewhere', () => {
  const folder = fileURLToPath(new URL('../../src/', import.meta.url))
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && name !== join('core', 'errors.ts'),
  )
  // Comments name what a function throws: that is no report.
  const code = files
    .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ''))
    .join('\n')
  expect(Object.keys(ERROR_RULES).filter((name) => !code.includes(`'${name}'`))).toEqual([])
})
