import type { Json, Partition } from '../../../core/job.ts'
import type { PgConnection } from '../connection/connection.ts'
import { quoteIdentifier, quoteTable } from '../quote.ts'

/** A table whose own rows are read: the one that was named, a leaf of its partitions, a child. */
export interface Leaf {
  readonly schema: string
  readonly name: string
  /** Blocks that it has now; null where it has none of its own (a view, a foreign table, another access method than heap). */
  readonly blocks: number | null
  /** Rows and blocks as the server last counted them; rows -1: never (before PostgreSQL 14: 0 of 0 blocks). */
  readonly countedRows: number
  readonly countedBlocks: number
}

/** What a partition is, in its state. `only`: without tables below it. Blocks: `[start, end)`; `start` null: all of it; `end` null: to its end. */
export interface TableRange {
  readonly schema: string
  readonly name: string
  readonly only: boolean
  readonly start: number | null
  readonly end: number | null
}

/** Bytes of a ctid range: a sixteenth of everything, so that a few readers end at about the same time, between these. */
const SHARES = 16
const LEAST_BYTES = 32 * 1024 * 1024
const MOST_BYTES = 1024 * 1024 * 1024
/** Until PostgreSQL 13 a range of ctids is found by reading the whole table (14 has TID range scans). */
const HAS_TID_RANGES = 140_000
const HAS_DETACH_PENDING = 140_000

export interface LeavesFound {
  readonly leaves: readonly Leaf[]
  /** False where leaves may not be read by themselves: then all is read through the table that was named. */
  readonly direct: boolean
  readonly blockBytes: number
}

/**
 * The tables that hold a table's rows, each once, in a stable order. Reading a leaf by itself passes by what is granted on the table above, and by
 * its policies: where that matters, `direct` is false.
 */
export async function findLeaves(
  connection: PgConnection,
  table: { readonly oid: number; readonly rowSecurity: boolean },
): Promise<LeavesFound> {
  const pending = connection.version >= HAS_DETACH_PENDING ? 'AND NOT i.inhdetachpending' : ''
  const rows = await connection.query<{
    schema: string
    name: string
    blocks: string | null
    rows: number
    counted: number
    own: boolean
    readable: boolean
    secured: boolean
    block_bytes: number
  }>(
    `WITH RECURSIVE tree AS (
       SELECT $1::oid AS oid
       UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree ON i.inhparent = tree.oid ${pending}
     )
     SELECT c.oid = $1::oid AS own, n.nspname AS schema, c.relname AS name, c.reltuples::float8 AS rows, c.relpages::float8 AS counted,
            CASE WHEN m.amname = 'heap' AND c.relkind IN ('r', 'm')
                 THEN pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int8 END AS blocks,
            pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR NOT EXISTS (
              SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                 AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))) AS readable,
            pg_catalog.row_security_active(c.oid) AS secured, pg_catalog.current_setting('block_size')::int4 AS block_bytes
       FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
       LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
      WHERE c.relkind <> 'p' AND NOT pg_catalog.pg_is_other_temp_schema(n.oid)
      ORDER BY c.oid <> $1::oid, n.nspname COLLATE "C", c.relname COLLATE "C"`,
    [table.oid],
  )
  const leaves = rows.map((row) => ({
    schema: row.schema,
    name: row.name,
    blocks: row.blocks === null ? null : Number(row.blocks),
    countedRows: row.rows,
    countedBlocks: row.counted,
  }))
  const direct = rows.every((row) => row.own || (row.readable && !row.secured && !table.rowSecurity))
  return { leaves, direct, blockBytes: rows[0]?.block_bytes ?? 8192 }
}

/**
 * Partitions of a table: ranges of ctids, each a sixteenth of everything but no less than 32 MiB and no more than 1 GiB, the last of a leaf without an
 * end; one a leaf where ranges gain nothing.
 */
export function planTable(
  table: { readonly schema: string; readonly name: string },
  found: LeavesFound & { readonly version: number; readonly url: string },
): readonly Partition[] {
  const { leaves, blockBytes, url } = found
  if (!found.direct) {
    const known = leaves.map((leaf) => ({ rows: estimateRows(leaf), blocks: leaf.blocks }))
    const [rows, blocks] = [sum(known.map((leaf) => leaf.rows)), sum(known.map((leaf) => leaf.blocks))]
    const range: TableRange = { ...nameOf(table), only: false, start: null, end: null }
    return [partitionOf(range, { number: 1, url, rows, bytes: blocks === null ? null : blocks * blockBytes })]
  }
  const total = leaves.reduce((bytes, leaf) => bytes + (leaf.blocks ?? 0) * blockBytes, 0)
  const share = Math.min(Math.max(total / SHARES, LEAST_BYTES), MOST_BYTES)
  return leaves.flatMap((leaf) => {
    const blocks = leaf.blocks ?? 0
    const isRanged = leaf.blocks !== null && found.version >= HAS_TID_RANGES
    const count = isRanged ? Math.max(1, Math.round((blocks * blockBytes) / share)) : 1
    const rows = estimateRows(leaf)
    return Array.from({ length: count }, (_, i) => {
      const [start, end] = [Math.floor((blocks * i) / count), Math.floor((blocks * (i + 1)) / count)]
      const isLast = i === count - 1
      const range: TableRange = {
        ...nameOf(leaf),
        only: true,
        start: count === 1 ? null : start,
        end: isLast ? null : end,
      }
      return partitionOf(range, {
        number: i + 1,
        url,
        rows: rows === null || blocks === 0 ? rows : Math.round((rows * (end - start)) / blocks),
        bytes: leaf.blocks === null ? null : (end - start) * blockBytes,
      })
    })
  })
}

/** As the planner estimates: as many rows a block as when they were counted. */
function estimateRows({ blocks, countedRows, countedBlocks }: Leaf): number | null {
  if (blocks === 0) return 0
  if (countedRows < 0 || (countedRows === 0 && countedBlocks === 0)) return null
  return blocks === null || countedBlocks === 0 ? countedRows : Math.round((countedRows / countedBlocks) * blocks)
}

function sum(numbers: readonly (number | null)[]): number | null {
  return numbers.reduce((total, each) => (total === null || each === null ? null : total + each), 0)
}

function nameOf({ schema, name }: { readonly schema: string; readonly name: string }): {
  schema: string
  name: string
} {
  return { schema, name }
}

function partitionOf(
  range: TableRange,
  o: { number: number; url: string; rows: number | null; bytes: number | null },
): Partition {
  return {
    id: `${plainName(range)}/${String(o.number).padStart(4, '0')}`,
    url: o.url,
    bytes: o.bytes,
    rows: o.rows,
    state: { ...range } satisfies Json,
  }
}

/** `public.people`; in quotes where SQL wants them. */
export function plainName({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return [schema, name].map((part) => (/^[a-z_][a-z0-9_]*$/.test(part) ? part : quoteIdentifier(part))).join('.')
}

/** The SELECT that reads a range. `list`: expressions, in SQL. */
export function rangeSql(range: TableRange, list: readonly string[]): string {
  const bounds = [
    range.start === null ? '' : `ctid >= '(${range.start},0)'::tid`,
    range.end === null ? '' : `ctid < '(${range.end},0)'::tid`,
  ].filter(Boolean)
  const where = bounds.length === 0 ? '' : ` WHERE ${bounds.join(' AND ')}`
  return `SELECT ${list.join(', ')} FROM ${range.only ? 'ONLY ' : ''}${quoteTable(range)}${where}`
}
