import type { ColumnType } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'
import { NEUTRAL_TYPES, type Column, type NeutralType } from '../../../core/schema.ts'
import { nearest } from '../nearest.ts'

/** sluice's types as PostgreSQL's, for `--create`. Sets become JSON arrays; a ttl is a count of seconds since 1970. */
const SQL_TYPES: Readonly<Record<NeutralType, string>> = {
  string: 'text',
  integer: 'bigint',
  number: 'numeric',
  boolean: 'boolean',
  date: 'date',
  time: 'time',
  timestamp: 'timestamp',
  timestamptz: 'timestamp with time zone',
  binary: 'bytea',
  json: 'jsonb',
  list: 'jsonb',
  map: 'jsonb',
  'string-set': 'jsonb',
  'number-set': 'jsonb',
  'binary-set': 'jsonb',
  ttl: 'bigint',
}

/** Base types by their names in pg_type and in SQL, for the check of `--type column=TYPE`. Others are left to the server. */
const KNOWN_SQL_TYPES = [
  'bigint', 'bigserial', 'bit', 'bit varying', 'bool', 'boolean', 'box', 'bpchar', 'bytea', 'char', 'character', 'character varying', 'cidr', 'circle',
  'citext', 'date', 'decimal', 'double precision', 'float', 'float4', 'float8', 'hstore', 'inet', 'int', 'int2', 'int4', 'int8', 'integer', 'interval',
  'json', 'jsonb', 'line', 'lseg', 'macaddr', 'macaddr8', 'money', 'name', 'numeric', 'oid', 'path', 'pg_lsn', 'point', 'polygon', 'real', 'serial',
  'serial4', 'serial8', 'smallint', 'smallserial', 'text', 'time', 'time with time zone', 'time without time zone', 'timestamp',
  'timestamp with time zone', 'timestamp without time zone', 'timestamptz', 'timetz', 'tsquery', 'tsvector', 'uuid', 'varbit', 'varchar', 'xml',
] // prettier-ignore

/** Names that mean one thing to sluice and another to SQL are sluice's (`time` and `timestamp` are the same, `binary` is no SQL type). */
const NEUTRAL = new Set<string>(NEUTRAL_TYPES)

/**
 * The SQL type that `--type column=TYPE` means: one of sluice's names, or an SQL type as it is (`numeric(10,2)`, `text[]`, `public.mood`).
 *
 * @throws SLUICE_USAGE for text that can't be a type's name
 */
export function sqlTypeNamed(name: string): string {
  const trimmed = name.trim()
  if (NEUTRAL.has(trimmed)) return SQL_TYPES[trimmed as NeutralType]
  // The text goes into a CREATE TABLE: it may be a type's name and modifiers, and nothing that could end the statement's item.
  if (
    !/^(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)(?:\.(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*))?(?: [a-z]+)*(?:\([\w ,]*\))?(?: [a-z]+)*(?:\[\d*\])*$/iu.test(
      trimmed,
    )
  ) {
    throw new SluiceError('SLUICE_USAGE', `${name} is no type`, {
      hint: `write ${NEUTRAL_TYPES.join(', ')}, or an SQL type`,
    })
  }
  const base = trimmed.replace(/\([^)]*\)|\[\d*\]/g, '').toLowerCase()
  if (KNOWN_SQL_TYPES.includes(base) || /[".]/.test(base) || base.startsWith('interval')) return trimmed
  const likely = nearest(base, [...KNOWN_SQL_TYPES, ...NEUTRAL_TYPES])
  if (likely !== null && !likely.startsWith(base) && Math.abs(likely.length - base.length) <= 1 && base.length >= 4) {
    throw new SluiceError('SLUICE_USAGE', `${name} is no type that sluice knows`, {
      hint: `did you mean ${likely}? Types of your own are written schema.name`,
    })
  }
  return trimmed
}

/** A column as the engine's inference gives it: for integers, how many bits hold each value. */
export type SizedColumn = Column & { readonly integerBits?: 32 | 64 | 'more' | undefined }

/** A type for values that lie so (cli.md, "PostgreSQL → Parquet", read backwards); null for what only JSON holds. */
function sqlTypeOfLayout(layout: ColumnType): string | null {
  switch (layout.kind) {
    case 'decimal':
      return `numeric(${layout.precision},${layout.scale})`
    case 'timestamp':
      return layout.utc ? SQL_TYPES.timestamptz : SQL_TYPES.timestamp
    case 'list': {
      // Lists in a list may be of any lengths, dimensions of an array not.
      const item = layout.item.kind === 'list' ? null : sqlTypeOfLayout(layout.item)
      return item === null ? null : `${item}[]`
    }
    default:
      return SQL_LAYOUTS[layout.kind]
  }
}

const SQL_LAYOUTS: Readonly<Record<Exclude<ColumnType['kind'], 'decimal' | 'timestamp' | 'list'>, string>> = {
  bool: 'boolean',
  int16: 'smallint',
  int32: 'integer',
  int64: 'bigint',
  float32: 'real',
  float64: 'double precision',
  utf8: 'text',
  json: 'jsonb',
  binary: 'bytea',
  uuid: 'uuid',
  date: 'date',
  time: 'time',
}

/** Parquet's types that have no layout here: integers without sign, halves, decimals past 38 digits, intervals. */
function sqlTypeOfParquet(nativeType: string): string | null {
  const [, precision = ''] = /^decimal\((\d+),\d+\)$/.exec(nativeType) ?? []
  if (precision !== '' && Number(precision) <= MOST_NUMERIC_DIGITS) return nativeType.replace('decimal', 'numeric')
  return SQL_OF_PARQUET.get(nativeType) ?? null
}

/** NUMERIC_MAX_PRECISION. */
const MOST_NUMERIC_DIGITS = 1000
const SQL_OF_PARQUET: ReadonlyMap<string, string> = new Map([
  ['uint8', 'smallint'],
  ['uint16', 'integer'],
  ['uint32', 'bigint'],
  ['uint64', 'numeric(20,0)'],
  ['float16', 'real'],
  ['interval', 'interval'],
])

function foreignType(column: Column): string | null {
  if (column.layout !== undefined) return sqlTypeOfLayout(column.layout)
  return column.nativeTo === 'parquet' ? sqlTypeOfParquet(column.nativeType ?? '') : null
}

/**
 * A column's SQL type for CREATE TABLE: its nativeType where that is one of SQL's, else that of what is known of its values; text where nothing is. Inferred integers are `integer` where 32 bits hold each value, else `bigint`, else `numeric`.
 */
export function sqlTypeOf(column: SizedColumn): string {
  if (column.nativeType !== undefined && column.nativeTo === undefined) return column.nativeType
  const foreign = foreignType(column)
  if (foreign !== null) return foreign
  if (column.type === undefined) return 'text'
  if (column.type === 'integer' && column.integerBits === 32) return 'integer'
  if (column.type === 'integer' && column.integerBits === 'more') return 'numeric'
  return SQL_TYPES[column.type]
}

/** What a column's type is to sluice, by the OID of its base type (pg_type.dat); everything else is its text. */
export function neutralTypeOf(baseTypeOid: number, isArray = false): NeutralType {
  return isArray ? 'list' : (NEUTRAL_BY_OID.get(baseTypeOid) ?? 'string')
}

const NEUTRAL_BY_OID: ReadonlyMap<number, NeutralType> = new Map([
  [16, 'boolean'],
  [17, 'binary'],
  [20, 'integer'],
  [21, 'integer'],
  [23, 'integer'],
  [26, 'integer'],
  [114, 'json'],
  [700, 'number'],
  [701, 'number'],
  [1082, 'date'],
  [1083, 'time'],
  [1114, 'timestamp'],
  [1184, 'timestamptz'],
  [1700, 'number'],
  [3802, 'json'],
])
