import { SluiceError } from '../../../core/errors.ts'
import type { PgConnection } from '../connection/connection.ts'
import { nearest } from '../nearest.ts'
import { candidates, formatReference, type TableReference } from './table-reference.ts'

export interface TableColumn {
  readonly name: string
  /** As format_type prints it: `numeric(10,2)`, `public.mood`. */
  readonly type: string
  readonly typeOid: number
  readonly typmod: number
  /** The type under the domains (under all of them), its modifier, and as format_type prints it. The same as above where it is no domain. */
  readonly baseTypeOid: number
  readonly baseTypmod: number
  readonly baseType: string
  /** pg_type of the base: typtype b, c, e, r, m, p; of an array, its elements' base type and modifier, else null. */
  readonly kind: string
  readonly element: {
    readonly typeOid: number
    readonly typmod: number
    readonly type: string
    readonly kind: string
  } | null
  /** The fields of a composite type in its order, each as a column; else null. */
  readonly attributes: readonly TableColumn[] | null
  readonly nullable: boolean
  readonly hasDefault: boolean
  readonly generated: boolean
  readonly identity: 'always' | 'by-default' | null
  /** Null where the type has none. */
  readonly collation: string | null
}

export interface TableForeignKey {
  readonly name: string
  readonly columns: readonly string[]
  /** `schema.table` it points to. */
  readonly references: string
}

export interface TableDescription {
  readonly schema: string
  readonly name: string
  readonly oid: number
  readonly kind: 'table' | 'partitioned' | 'view' | 'materialized-view' | 'foreign'
  readonly columns: readonly TableColumn[]
  /** Names in the key's order; null where there is none. */
  readonly primaryKey: readonly string[] | null
  /** Other unique keys on plain columns without a condition, named by their columns. */
  readonly uniqueKeys: readonly (readonly string[])[]
  /** Whether any unique or exclusion index at all is there (also partial ones and ones on expressions, also of partitions). */
  readonly hasUniqueIndex: boolean
  /** A foreign key leads from the table (or a partition of it) to itself (or a table above it). */
  readonly selfReferencing: boolean
  readonly foreignKeys: readonly TableForeignKey[]
  readonly partitioned: boolean
  /** The user's own row triggers that fire on INSERT, on the table or its partitions. */
  readonly triggers: readonly string[]
  /** Row-level security applies to us. */
  readonly rowSecurity: boolean
}

const KINDS: Readonly<Record<string, TableDescription['kind']>> = {
  r: 'table',
  p: 'partitioned',
  v: 'view',
  m: 'materialized-view',
  f: 'foreign',
}

const HINTS = { load: '--create makes the table', read: 'psql -c \\d lists tables and views' }

/**
 * Everything that loading into (or reading from) a table needs to know of it.
 *
 * @throws SLUICE_NOT_FOUND with the nearest name
 */
export async function describeTable(
  connection: PgConnection,
  reference: TableReference,
  use: 'load' | 'read' = 'load',
): Promise<TableDescription> {
  const found = await findTable(connection, reference)
  if (found === null) throw await notFound(connection, reference, use)
  const [columns, keys, foreign, triggers] = [
    await readColumns(connection, found.oid),
    await readKeys(connection, found.oid),
    await readForeignKeys(connection, found.oid),
    await readTriggers(connection, found.oid),
  ]
  return {
    ...found,
    columns,
    primaryKey: keys.find((key) => key.primary)?.columns ?? null,
    uniqueKeys: keys.filter((key) => !key.primary && key.plain).map((key) => key.columns),
    hasUniqueIndex: keys.length > 0,
    ...foreign,
    partitioned: found.kind === 'partitioned',
    triggers,
  }
}

/** Whether the table is there: its names as they are, or null. Views and foreign tables are found too. */
export async function findTable(
  connection: PgConnection,
  reference: TableReference,
): Promise<Pick<TableDescription, 'schema' | 'name' | 'oid' | 'kind' | 'rowSecurity'> | null> {
  for (const schema of reference.schema === null ? [null] : candidates(reference.schema)) {
    for (const name of candidates(reference.table)) {
      const [row] = await connection.query<{
        schema: string
        name: string
        oid: string
        kind: string
        secured: boolean
      }>(
        `SELECT n.nspname AS schema, c.relname AS name, c.oid::text AS oid, c.relkind AS kind, row_security_active(c.oid) AS secured
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
          WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
            AND CASE WHEN $2::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2 END`,
        [name, schema],
      )
      const kind = row === undefined ? undefined : KINDS[row.kind]
      if (row !== undefined && kind !== undefined) {
        return { schema: row.schema, name: row.name, oid: Number(row.oid), kind, rowSecurity: row.secured }
      }
    }
  }
  return null
}

/**
 * Refuses what rows can't be loaded into.
 *
 * @throws SLUICE_USAGE
 */
export function requireLoadable(table: TableDescription): void {
  if (table.kind === 'table' || table.kind === 'partitioned' || table.kind === 'foreign') return
  const what = table.kind === 'view' ? 'a view' : 'a materialized view'
  throw new SluiceError('SLUICE_USAGE', `${table.schema}.${table.name} is ${what}, and COPY loads into tables only`, {
    hint: 'name the table behind it',
  })
}

async function notFound(
  connection: PgConnection,
  reference: TableReference,
  use: 'load' | 'read',
): Promise<SluiceError> {
  const rows = await connection.query<{ schema: string; name: string; visible: boolean }>(
    `SELECT n.nspname AS schema, c.relname AS name, pg_catalog.pg_table_is_visible(c.oid) AS visible
       FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind = ANY($1::"char"[]) AND NOT c.relispartition AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
      ORDER BY 1, 2 LIMIT 10000`,
    [use === 'load' ? ['r', 'p', 'f'] : Object.keys(KINDS)],
  )
  const asked = formatReference(reference)
  const sameName = rows.find((row) => row.name.toLowerCase() === reference.table.name.toLowerCase())
  const spelled = rows.map((row) => (reference.schema === null && row.visible ? row.name : `${row.schema}.${row.name}`))
  const likely = sameName === undefined ? nearest(asked, spelled) : `${sameName.schema}.${sameName.name}`
  return new SluiceError('SLUICE_NOT_FOUND', `no table ${asked} in the database ${connection.client.database ?? ''}`, {
    hint: [likely === null ? '' : `did you mean ${likely}?`, HINTS[use]].filter(Boolean).join(' '),
  })
}

interface ColumnRow {
  readonly name: string
  readonly type: string
  readonly type_oid: string
  readonly typmod: number
  readonly base_oid: string
  readonly base_typmod: number
  readonly base_type: string
  readonly kind: string
  readonly element_oid: string | null
  readonly element_typmod: number | null
  readonly element_type: string | null
  readonly element_kind: string | null
  readonly nullable: boolean
  readonly has_default: boolean
  readonly generated: boolean
  readonly identity: string
  readonly collation: string | null
  readonly relation: string
}

/** Domains are followed down to their base, for the column and, where that is an array, for its elements. */
const COLUMNS_SQL = `
WITH RECURSIVE col AS (
  SELECT a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.atthasdef, a.attgenerated, a.attidentity, a.attcollation
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
), base AS (
  SELECT attnum, atttypid AS oid, atttypmod AS typmod, false AS forbids_null FROM col
  UNION ALL
  SELECT b.attnum, t.typbasetype, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE b.typmod END, b.forbids_null OR t.typnotnull
    FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid WHERE t.typtype = 'd'
), ground AS (
  SELECT b.attnum, b.oid, b.typmod, b.forbids_null, t.typtype, t.typcategory, t.typrelid,
         CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem END AS elem
    FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid WHERE t.typtype <> 'd'
), element AS (
  SELECT attnum, elem AS oid, typmod FROM ground WHERE elem IS NOT NULL
  UNION ALL
  SELECT e.attnum, t.typbasetype, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE e.typmod END
    FROM element e JOIN pg_catalog.pg_type t ON t.oid = e.oid WHERE t.typtype = 'd'
)
SELECT c.attname AS name, pg_catalog.format_type(c.atttypid, c.atttypmod) AS type, c.atttypid::text AS type_oid, c.atttypmod AS typmod,
       g.oid::text AS base_oid, g.typmod AS base_typmod, pg_catalog.format_type(g.oid, g.typmod) AS base_type, g.typtype AS kind,
       e.oid::text AS element_oid, e.typmod AS element_typmod, pg_catalog.format_type(e.oid, e.typmod) AS element_type, et.typtype AS element_kind,
       NOT (c.attnotnull OR g.forbids_null) AS nullable, c.atthasdef AS has_default, c.attgenerated <> '' AS generated,
       c.attidentity AS identity, l.collname AS collation, g.typrelid::text AS relation
  FROM col c JOIN ground g USING (attnum)
  LEFT JOIN (element e JOIN pg_catalog.pg_type et ON et.oid = e.oid AND et.typtype <> 'd') ON e.attnum = c.attnum
  LEFT JOIN pg_catalog.pg_collation l ON l.oid = c.attcollation
 ORDER BY c.attnum`

async function readColumns(connection: PgConnection, oid: number): Promise<TableColumn[]> {
  const rows = await connection.query<ColumnRow>(COLUMNS_SQL, [oid])
  const columns: TableColumn[] = []
  for (const row of rows) {
    const relation = row.relation === '0' || row.kind !== 'c' ? null : Number(row.relation)
    columns.push(columnOf(row, relation === null ? null : await readColumns(connection, relation)))
  }
  return columns
}

function columnOf(row: ColumnRow, attributes: readonly TableColumn[] | null): TableColumn {
  return {
    name: row.name,
    type: row.type,
    typeOid: Number(row.type_oid),
    typmod: row.typmod,
    baseTypeOid: Number(row.base_oid),
    baseTypmod: row.base_typmod,
    baseType: row.base_type,
    kind: row.kind,
    element:
      row.element_oid === null
        ? null
        : {
            typeOid: Number(row.element_oid),
            typmod: row.element_typmod ?? -1,
            type: row.element_type ?? '',
            kind: row.element_kind ?? 'b',
          },
    attributes,
    nullable: row.nullable,
    hasDefault: row.has_default && !row.generated,
    generated: row.generated,
    identity: row.identity === 'a' ? 'always' : row.identity === 'd' ? 'by-default' : null,
    collation: row.collation,
  }
}

interface Key {
  readonly primary: boolean
  /** On plain columns, without a condition, valid, not deferrable: usable by ON CONFLICT and by us. */
  readonly plain: boolean
  readonly columns: readonly string[]
}

async function readKeys(connection: PgConnection, oid: number): Promise<Key[]> {
  return connection.query<{ primary: boolean; plain: boolean; columns: string[] }>(
    `SELECT i.indrelid = $1::oid AND i.indisprimary AS primary,
            i.indrelid = $1::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AS plain,
            ARRAY(SELECT a.attname::text FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(attnum, place)
                    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum ORDER BY k.place) AS columns
       FROM pg_catalog.pg_index i
      WHERE (i.indisunique OR i.indisexclusion)
        AND (i.indrelid = $1::oid OR i.indrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree($1::oid::regclass)))
      ORDER BY 1 DESC, i.indexrelid`,
    [oid],
  )
}

async function readForeignKeys(
  connection: PgConnection,
  oid: number,
): Promise<Pick<TableDescription, 'foreignKeys' | 'selfReferencing'>> {
  const rows = await connection.query<{
    name: string
    columns: string[]
    target: string
    own: boolean
    itself: boolean
  }>(
    `WITH family AS (
       SELECT $1::oid AS oid
       UNION SELECT relid FROM pg_catalog.pg_partition_tree($1::oid::regclass)
     ), above AS (SELECT relid AS oid FROM pg_catalog.pg_partition_ancestors($1::oid::regclass))
     SELECT f.conname AS name, n.nspname || '.' || t.relname AS target, f.conrelid = $1::oid AND f.conparentid = 0 AS own,
            f.confrelid IN (SELECT oid FROM family UNION SELECT oid FROM above) AS itself,
            ARRAY(SELECT a.attname::text FROM unnest(f.conkey) WITH ORDINALITY k(attnum, place)
                    JOIN pg_catalog.pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.attnum ORDER BY k.place) AS columns
       FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_class t ON t.oid = f.confrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
      WHERE f.contype = 'f' AND f.conrelid IN (SELECT oid FROM family)
      ORDER BY f.conname`,
    [oid],
  )
  return {
    foreignKeys: rows
      .filter((row) => row.own)
      .map(({ name, columns, target }) => ({ name, columns, references: target })),
    selfReferencing: rows.some((row) => row.itself),
  }
}

async function readTriggers(connection: PgConnection, oid: number): Promise<string[]> {
  const rows = await connection.query<{ name: string }>(
    // tgtype: bit 0 row, bit 2 INSERT (src/include/catalog/pg_trigger.h).
    `SELECT DISTINCT tgname AS name FROM pg_catalog.pg_trigger
      WHERE NOT tgisinternal AND tgenabled <> 'D' AND (tgtype & 5) = 5
        AND (tgrelid = $1::oid OR tgrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree($1::oid::regclass)))
      ORDER BY 1`,
    [oid],
  )
  return rows.map((row) => row.name)
}
