import { describe, expect, it } from 'vitest'
import { forJsonColumns } from '../../../../../src/connectors/postgres/load/json-columns.ts'
import type { TableColumn } from '../../../../../src/connectors/postgres/table/table.ts'
import type { RowsBatch, Value } from '../../../../../src/core/batch.ts'
import { START } from '../../../../../src/core/job.ts'

const INTS = { baseTypeOid: 1007, element: { typeOid: 23 } } as TableColumn
const JSONB = { baseTypeOid: 3802, element: null } as TableColumn
const TEXT = { baseTypeOid: 25, element: null } as TableColumn

function convert(column: TableColumn, value: Value, typed = true): Value {
  const rest = { places: [], sourceBytes: 0, filtered: 0, start: START, end: START, mayEnd: true }
  const batch: RowsBatch = { form: 'rows', columns: ['x'], rows: [[value]], ...rest }
  return forJsonColumns(batch, [column], { typed, onTextForBytes: () => undefined }).rows[0]?.[0]
}

describe('forJsonColumns', () => {
  it('writes a JSON array for an array column', () => {
    expect(convert(INTS, { kind: 'json', text: '[1, null]' }, false)).toBe('{1,NULL}')
    expect(convert(INTS, '{1,2}')).toBe('{1,2}')
  })

  it('makes a JSON string of a text that has a type of its own', () => {
    expect(convert(JSONB, 'say "hi"')).toBe('"say \\"hi\\""')
    expect(convert(JSONB, '5')).toBe('"5"')
    expect(convert(JSONB, '{not json')).toBe('"{not json"')
  })

  it('leaves the text of an object or an array, numbers, nested values and NULL as they are', () => {
    expect(convert(JSONB, ' {"a": 1}')).toBe(' {"a": 1}')
    expect(convert(JSONB, '[]')).toBe('[]')
    expect(convert(JSONB, null)).toBe(null)
    expect(convert(JSONB, { kind: 'number', text: '1.0' })).toEqual({ kind: 'number', text: '1.0' })
  })

  it('leaves text alone that has no type of its own, and columns that are no JSON', () => {
    expect(convert(JSONB, '5', false)).toBe('5')
    expect(convert(TEXT, '5')).toBe('5')
  })
})
