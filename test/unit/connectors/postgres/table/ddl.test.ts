import { describe, expect, it } from 'vitest'
import { createTableSql } from '../../../../../src/connectors/postgres/table/ddl.ts'
import { neutralTypeOf, sqlTypeNamed, sqlTypeOf } from '../../../../../src/connectors/postgres/table/type-map.ts'

const table = { schema: 'public', name: 'People' }

describe('createTableSql', () => {
  it('prints one column a line', () => {
    const sql = createTableSql(table, [
      { name: 'id', type: 'integer', nullable: false },
      { name: 'full "name"', type: 'string' },
      { name: 'paid', nativeType: 'numeric(10,2)' },
      { name: 'raw' },
    ])
    expect(sql).toBe(
      'CREATE TABLE "public"."People" (\n  "id" bigint NOT NULL,\n  "full ""name""" text,\n  "paid" numeric(10,2),\n  "raw" text\n)',
    )
  })

  it('refuses names that would be cut, doubles, nothing, too many', () => {
    for (const columns of [
      [{ name: 'é'.repeat(32) }],
      [{ name: '' }],
      [{ name: 'a' }, { name: 'a' }],
      [],
      Array.from({ length: 1601 }, (_, i) => ({ name: `c${i}` })),
    ]) {
      expect(() => createTableSql(table, columns)).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
    }
    expect(createTableSql(table, [{ name: 'x'.repeat(63) }])).toContain('x'.repeat(63))
  })
})

describe('types', () => {
  it('sizes inferred integers', () => {
    expect(sqlTypeOf({ name: 'a', type: 'integer', integerBits: 32 })).toBe('integer')
    expect(sqlTypeOf({ name: 'a', type: 'integer', integerBits: 64 })).toBe('bigint')
    expect(sqlTypeOf({ name: 'a', type: 'integer', integerBits: 'more' })).toBe('numeric')
  })

  it.each([
    ['string', 'text'], ['number', 'numeric'], ['timestamptz', 'timestamp with time zone'], ['binary', 'bytea'], ['numeric(10,2)', 'numeric(10,2)'], ['text[]', 'text[]'],
    ['public.mood', 'public.mood'], ['"Mixed"."Type"(3)', '"Mixed"."Type"(3)'], ['double precision', 'double precision'], ['timestamp(3) with time zone', 'timestamp(3) with time zone'], ['mytype', 'mytype'],
  ])('--type c=%s is %s', (name, sql) => {
    expect(sqlTypeNamed(name)).toBe(sql)
  }) // prettier-ignore

  it.each(['', 'int); DROP TABLE x', "text DEFAULT 'x'", 'int,', 'intger', 'a b--'])('refuses --type c=%s', (name) => {
    expect(() => sqlTypeNamed(name)).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })

  it('knows the neutral types of base types', () => {
    expect([neutralTypeOf(23), neutralTypeOf(1700), neutralTypeOf(99_999), neutralTypeOf(23, true)]).toEqual([
      'integer',
      'number',
      'string',
      'list',
    ])
  })
})
