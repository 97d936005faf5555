import { describe, expect, it } from 'vitest'
import type { Column } from '../../../../../src/core/schema.ts'
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

describe('types of Parquet', () => {
  it.each<[Column['layout'], string]>([
    [{ kind: 'bool' }, 'boolean'],
    [{ kind: 'int16' }, 'smallint'],
    [{ kind: 'float32' }, 'real'],
    [{ kind: 'float64' }, 'double precision'],
    [{ kind: 'uuid' }, 'uuid'],
    [{ kind: 'decimal', precision: 10, scale: 2 }, 'numeric(10,2)'],
    [{ kind: 'timestamp', utc: true }, 'timestamp with time zone'],
    [{ kind: 'timestamp', utc: false }, 'timestamp'],
    [{ kind: 'list', item: { kind: 'binary' } }, 'bytea[]'],
    [{ kind: 'list', item: { kind: 'list', item: { kind: 'int32' } } }, 'jsonb'],
  ])('are those that hold their values: %j', (layout, sql) => {
    const column: Column = { name: 'a', type: 'list', nativeType: 'of its own', nativeTo: 'parquet', layout }
    expect(sqlTypeOf(column)).toBe(sql)
  })

  it.each<[string, Column['type'], string]>([
    ['uint8', 'integer', 'smallint'],
    ['uint64', 'integer', 'numeric(20,0)'],
    ['decimal(76,2)', 'number', 'numeric(76,2)'],
    ['interval', 'string', 'interval'],
    ['int96', 'timestamp', 'timestamp'],
    ['struct', 'json', 'jsonb'],
    ['map', 'map', 'jsonb'],
    ['unknown', 'string', 'text'],
  ])('without a layout: %s', (nativeType, type, sql) => {
    expect(sqlTypeOf({ name: 'a', type, nativeType, nativeTo: 'parquet' })).toBe(sql)
  })

  it('of DynamoDB are no types of SQL', () => {
    expect(sqlTypeOf({ name: 'a', type: 'number', nativeType: 'N', nativeTo: 'dynamodb' })).toBe('numeric')
    expect(sqlTypeOf({ name: 'a', nativeType: 'N|S', nativeTo: 'dynamodb' })).toBe('text')
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
