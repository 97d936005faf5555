import { describe, expect, it } from 'vitest'
import { mustInfer } from '../../../src/engine/infer-source.ts'

const known = { name: 'id', type: 'integer' } as const
const native = { name: 'id', nativeType: 'bigint' } as const
const open = { name: 'note' }

describe('whether types are inferred, for which all rows are read', () => {
  it.each([
    ['a created table, a column that is open', [known, open], { create: true }, true],
    ['a created table, all types given', [known, native], { create: true }, false],
    [
      'a created table, all types given, and columns that may come later',
      [known],
      { create: true, whole: false },
      true,
    ],
    ['a sink that wants types, a column that is open', [open], { wantsTypes: true }, true],
    ['a sink that wants types, all given', [known, native], { wantsTypes: true }, false],
    ['a table that is there', [open], {}, false],
  ] as const)('%s', (_, columns, o, wanted) => {
    const schema = { columns, named: true }
    expect(mustInfer(schema, { create: false, wantsTypes: false, whole: true, ...o })).toBe(wanted)
  })

  it('never where the source knows all', () => {
    const schema = { columns: [known], named: true, fixed: true }
    expect(mustInfer(schema, { create: true, wantsTypes: true, whole: false })).toBe(false)
  })
})
