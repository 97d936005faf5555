import { describe, expect, it } from 'vitest'
import { FLAGS } from '../../../src/cli/flags.ts'
import type { FlagResult } from '../../../src/cli/flag-values.ts'
import { requireSound } from '../../../src/core/option-rules.ts'

const WORDS = [
  ...[
    '-1',
    '0',
    '1',
    '2',
    '256',
    '257',
    '10000',
    '10001',
    '1.5',
    '1MiB',
    '1048575',
    '1s',
    '99h',
    'auto',
    'none',
    'x',
    'true',
  ],
  ...[
    ';',
    '\\t',
    'tab',
    'é',
    'a=b',
    'a=/b/c/',
    'a,b',
    'utf-8',
    'decimal(10,2)',
    'id:S',
    'http://h:1',
    'http://u:p@h:1',
    '',
  ],
]
const flags = FLAGS.filter((flag) => flag.built && flag.scope === 'options')

function parsed(flag: (typeof flags)[number], word: string): FlagResult | null {
  try {
    return flag.value.parse(word, flag.name)
  } catch {
    return null
  }
}

describe('what an option may be', () => {
  it.each(flags.map((flag) => [flag.name, flag] as const))('--%s: what the flag takes is taken', (_, flag) => {
    const values = [...WORDS, ...(flag.value.choices ?? [])].map((word) => parsed(flag, word))
    for (const value of values) if (value !== null) expect(() => requireSound({ [flag.key]: value })).not.toThrow()
    expect(values.some((value) => value !== null)).toBe(true)
  })

  it.each(flags.filter((flag) => flag.argument === 'N').map((flag) => [flag.name, flag] as const))(
    '--%s: a number that the flag refuses is refused',
    (_, flag) => {
      for (const word of WORDS.filter((one) => /^-?[\d.]+$/.test(one) && parsed(flag, one) === null))
        expect(() => requireSound({ [flag.key]: Number(word) }), word).toThrow(/not a value that fits/)
    },
  )
})
