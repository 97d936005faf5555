import { describe, expect, it } from 'vitest'
import { chosenColumns } from '../../../../../src/connectors/postgres/table/chosen-columns.ts'
import type { CopyOptions } from '../../../../../src/core/options.ts'

const COLUMNS = ['id', 'Name', 'name', 'Age'].map((name) => ({ name }))
const names = (options: CopyOptions): string[] => chosenColumns(COLUMNS, options).map(({ name }) => name)
const ALL = ['id', 'Name', 'name', 'Age']

describe('chosenColumns', () => {
  it('are the selected ones, in that order, exactly spelled or in another case', () => {
    expect(names({ select: ['age', 'Name', 'id'] })).toEqual(['Age', 'Name', 'id'])
  })

  it.each<CopyOptions>([
    {},
    { select: ['NAME'] },
    { select: ['id', 'nothing'] },
    { select: ['id', 'ID'] },
    { select: ['id'], skipIfEmpty: ['name'] },
    { select: ['id'], set: ['x=1'] },
    { select: ['id'], type: ['id=string'] },
    { select: ['id'], replace: ['id=/a/b/'] },
  ])('are all where the mapping has to decide: %j', (options) => {
    expect(names(options)).toEqual(ALL)
  })
})
