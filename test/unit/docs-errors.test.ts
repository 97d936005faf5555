import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ERROR_RULES } from '../../src/core/errors.ts'
import { renderErrorsDoc } from '../support/write-errors-doc.mjs'

it('docs/errors.md is what the table of codes says', () => {
  const written = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  expect(written, 'stale: npm run build, then node test/support/write-errors-doc.mjs').toBe(
    renderErrorsDoc(ERROR_RULES),
  )
})
