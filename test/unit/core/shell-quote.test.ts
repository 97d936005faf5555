import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resumeCommand } from '../../../src/cli/run-job.ts'
import { shellQuote } from '../../../src/core/shell-quote.ts'

describe('shellQuote', () => {
  it('leaves plain words alone', () => {
    expect(shellQuote(['sluice', 'copy', 's3://b/k.csv', '--retry-for=5m'])).toBe(
      'sluice copy s3://b/k.csv --retry-for=5m',
    )
    expect(shellQuote(["it's", '', '~', 'a b', 'x?y=*'])).toBe(String.raw`'it'\''s' '' '~' 'a b' 'x?y=*'`)
  })

  it('is read back by a real shell as the same words', () => {
    const word = fc.string({ unit: 'binary-ascii', maxLength: 12 }).filter((text) => !text.includes('\0'))
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), (words) => {
        const printed = execFileSync('/bin/sh', ['-c', `for w in ${shellQuote(words)}; do printf '%s\\0' "$w"; done`], {
          encoding: 'utf8',
        })
        expect(printed.split('\0').slice(0, -1)).toEqual(words)
      }),
      { numRuns: 40 },
    )
  })
})

describe('resumeCommand', () => {
  it('names the state folder where it is not the usual one', () => {
    expect(resumeCommand('j1', '/home/me/.local/state/sluice', '/home/me/.local/state/sluice')).toBe('sluice resume j1')
    expect(resumeCommand('j1', '/my state', '/home/me/.local/state/sluice')).toBe(
      "sluice resume j1 --state-dir '/my state'",
    )
  })
})
