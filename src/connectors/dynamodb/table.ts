import { setTimeout as delay } from 'node:timers/promises'
import { SluiceError, nullIfMissing } from '../../core/errors.ts'
import { shellQuote } from '../../core/shell-quote.ts'
import type { CopyOptions } from '../../core/options.ts'
import type { Abortable } from '../../core/ports.ts'
import type { NeutralType, Schema } from '../../core/schema.ts'
import { answerOf, type DynamoCalls } from './answer.ts'
import {
  indexKeysOf,
  type KeyAttribute,
  keysOf,
  type KeyType,
  parseTable,
  type TableIndex,
  type TableInfo,
  type Throughput,
} from './table-info.ts'

/** On-demand tables are there within seconds; a table that is not after this long has something wrong with it. */
const LONGEST_WAIT_MS = 10 * 60_000
const FIRST_LOOK_MS = 100
const LONGEST_PAUSE_MS = 5_000
/** DescribeTable is eventually consistent: right after CreateTable it may not know the table (AWS, DescribeTable). */
const LONGEST_UNKNOWN_MS = 20_000

const KEY_TYPES: Readonly<Record<KeyType, NeutralType>> = { S: 'string', N: 'number', B: 'binary' }

export interface TableKeys {
  readonly partitionKey: KeyAttribute
  readonly sortKey: KeyAttribute | null
}

/** A table to be made. */
export interface NewTable extends TableKeys {
  readonly table: string
  /** Write units a second that it bears at once; null: what a new table bears, 4,000 (AWS, "Understanding DynamoDB warm throughput"). */
  readonly warmWrites?: number | null
  /** Units a second that are paid for; null: on demand. */
  readonly provisioned?: { readonly readUnits: number; readonly writeUnits: number } | null
}

/**
 * A key as `--partition-key` and `--sort-key` spell it: `NAME:S`, `NAME:N`, `NAME:B`; S where no type is said.
 *
 * @throws SLUICE_USAGE
 */
export function parseKey(text: string, flag: string): KeyAttribute {
  const [, name = '', type = 'S'] = /^(.*?)(?::([^:]*))?$/s.exec(text) ?? []
  if (name === '' || (type !== 'S' && type !== 'N' && type !== 'B'))
    throw new SluiceError('SLUICE_USAGE', `${flag} ${text}: not a key`, {
      hint: `a name and S, N or B: ${flag} id:S`,
    })
  return { name, type }
}

/** The key that the options name; null where they name none. @throws SLUICE_USAGE */
export function wantedKeys(options: Pick<CopyOptions, 'partitionKey' | 'sortKey'>): TableKeys | null {
  if (options.partitionKey === undefined) {
    if (options.sortKey === undefined) return null
    throw new SluiceError('SLUICE_USAGE', '--sort-key without --partition-key', { hint: 'name the partition key too' })
  }
  const partitionKey = parseKey(options.partitionKey, '--partition-key')
  const sortKey = options.sortKey === undefined ? null : parseKey(options.sortKey, '--sort-key')
  if (sortKey?.name === partitionKey.name)
    throw new SluiceError('SLUICE_USAGE', `"${sortKey.name}" cannot be both keys`, { hint: 'name two attributes' })
  return { partitionKey, sortKey }
}

/** @throws SLUICE_NOT_FOUND, and what the client throws */
export async function describeTable(client: DynamoCalls, table: string, o: Abortable): Promise<TableInfo> {
  const answer = answerOf(await client.call('DescribeTable', { TableName: table }, o), 'table')
  return parseTable(answerOf(answer['Table'], 'table'))
}

/** The table, or null where there is none. */
export function findTable(client: DynamoCalls, table: string, o: Abortable): Promise<TableInfo | null> {
  return nullIfMissing(describeTable(client, table, o))
}

/**
 * Asks for a table, without secondary indexes. It is there once `waitActive` says so.
 *
 * @throws SLUICE_EXISTS, and what the client throws
 */
export async function createTable(client: DynamoCalls, wanted: NewTable, o: Abortable): Promise<void> {
  const keys = keysOf(wanted)
  const { warmWrites = null, provisioned = null } = wanted
  try {
    await client.call(
      'CreateTable',
      {
        TableName: wanted.table,
        ...(provisioned === null
          ? { BillingMode: 'PAY_PER_REQUEST' }
          : {
              BillingMode: 'PROVISIONED',
              ProvisionedThroughput: {
                ReadCapacityUnits: provisioned.readUnits,
                WriteCapacityUnits: provisioned.writeUnits,
              },
            }),
        ...(warmWrites === null ? {} : { WarmThroughput: { WriteUnitsPerSecond: warmWrites } }),
        AttributeDefinitions: keys.map((key) => ({ AttributeName: key.name, AttributeType: key.type })),
        KeySchema: keys.map((key, i) => ({ AttributeName: key.name, KeyType: i === 0 ? 'HASH' : 'RANGE' })),
      },
      o,
    )
  } catch (error) {
    // A lost answer makes the client ask twice, and the table is in use by our own first request.
    const there = await findTable(client, wanted.table, o).catch(() => null)
    if (there === null || there.status === 'DELETING') throw error
    if (there.status === 'CREATING' && sameKeys(there, wanted)) return
    throw new SluiceError('SLUICE_EXISTS', `the table ${wanted.table} is there already`, {
      hint: 'load into it as it is, or choose another name',
      cause: error,
    })
  }
}

/** AWS, TableDescription, TableStatus: states that a table leaves by what somebody does, not by itself. */
const NEVER_ACTIVE: ReadonlySet<string> = new Set(['INACCESSIBLE_ENCRYPTION_CREDENTIALS', 'ARCHIVING', 'ARCHIVED'])

function neverActive({ name, status }: TableInfo): SluiceError {
  return new SluiceError('SLUICE_ACCESS_DENIED', `the table ${name} is ${status}, and takes no items`, {
    hint: 'let DynamoDB use the KMS key of the table again, or restore the table from its backup',
  })
}

/**
 * Waits until a table can be written: it and its indexes are ACTIVE (UPDATING can be written, too). Ten minutes at most.
 *
 * @throws SLUICE_SERVER (resumable) where it takes longer; SLUICE_NOT_FOUND; SLUICE_ACCESS_DENIED where waiting is of no use
 */
export async function waitActive(
  client: DynamoCalls,
  table: string,
  o: Abortable & { readonly longestMs?: number | undefined },
): Promise<TableInfo> {
  const mayBeUnknownUntilMs = performance.now() + LONGEST_UNKNOWN_MS
  const usable = async (): Promise<TableInfo | null> => {
    const found =
      performance.now() < mayBeUnknownUntilMs
        ? await findTable(client, table, o)
        : await describeTable(client, table, o)
    if (found !== null && NEVER_ACTIVE.has(found.status)) throw neverActive(found)
    return found?.status === 'ACTIVE' || found?.status === 'UPDATING' ? found : null
  }
  const found = await waitFor(usable, o)
  if (found === null) throw stillWaiting(table, 'ACTIVE', o.longestMs)
  return found
}

/**
 * Deletes a table and all that is in it, and waits until it is gone. Ten minutes at most.
 *
 * @throws SLUICE_NOT_FOUND, SLUICE_USAGE where it is protected from deletion, and what the client throws
 */
export async function deleteTable(
  client: DynamoCalls,
  table: string,
  o: Abortable & { readonly longestMs?: number | undefined },
): Promise<void> {
  const found = await describeTable(client, table, o)
  if (found.deletionProtection)
    throw new SluiceError('SLUICE_USAGE', `the table ${table} is protected from deletion`, {
      hint: 'take its deletion protection off first',
    })
  await client.call('DeleteTable', { TableName: table }, o).catch(async (error: unknown) => {
    // A lost answer makes the client ask twice, and the table is being deleted, or is gone, by our own first request.
    const there = await findTable(client, table, o)
    if (there !== null && there.status !== 'DELETING') throw error
  })
  const gone = await waitFor(async () => ((await findTable(client, table, o)) === null ? true : null), o)
  if (gone === null) throw stillWaiting(table, 'gone', o.longestMs)
}

type LoadOptions = Pick<CopyOptions, 'createTable' | 'partitionKey' | 'sortKey' | 'warmWrites'>

/**
 * The table that a load goes into as it is, or what `--create-table` would make of it. Nothing is made.
 *
 * @throws SLUICE_NOT_FOUND; SLUICE_USAGE where it has another key than the flags say, or has to be made and they say none
 */
export async function findLoadable(
  client: DynamoCalls,
  wanted: { readonly table: string; readonly options: LoadOptions },
  o: Abortable,
): Promise<{ readonly there: TableInfo } | { readonly make: NewTable }> {
  const { table, options } = wanted
  const keys = wantedKeys(options)
  if (options.warmWrites !== undefined && options.createTable !== true)
    throw new SluiceError('SLUICE_USAGE', '--warm-writes is for a table that is created', {
      hint: 'say --create-table',
    })
  const there = await findTable(client, table, o)
  if (there !== null && there.status !== 'DELETING') {
    if (keys !== null && !sameKeys(there, keys))
      throw new SluiceError('SLUICE_USAGE', `the key of ${table} is ${spell(there)}, not ${spell(keys)}`, {
        hint: 'leave out --partition-key and --sort-key, or choose another table',
      })
    return { there }
  }
  if (options.createTable !== true)
    throw new SluiceError('SLUICE_NOT_FOUND', `there is no table ${table}`, {
      hint: '--create-table --partition-key NAME:S makes it',
    })
  if (keys === null)
    throw new SluiceError('SLUICE_USAGE', '--create-table needs the key', { hint: '--partition-key NAME:S' })
  return { make: { table, ...keys, warmWrites: options.warmWrites ?? null } }
}

/** What a load wants of its table. */
interface LoadTarget {
  readonly table: string
  readonly options: LoadOptions
  /** Of the rows to come: a table whose key they lack is not made. */
  readonly schema?: Schema
  readonly warn?: (message: string) => void
}

/**
 * The table that a load goes into: as it is, or made by `--create-table` and waited for. `created` says which. Warns where `--warm-writes` did nothing.
 *
 * @throws what `findLoadable` and `createTable` throw; SLUICE_COLUMN_MISSING
 */
export async function loadableTable(
  client: DynamoCalls,
  wanted: LoadTarget,
  o: Abortable,
): Promise<{ readonly table: TableInfo; readonly created: boolean }> {
  const { warn = () => undefined, options } = wanted
  const found = await findLoadable(client, wanted, o)
  if ('there' in found) {
    const { there } = found
    if (options.warmWrites !== undefined)
      warn(`the table ${there.name} is there already: --warm-writes is for one that is created, and did nothing`)
    return { table: there.status === 'ACTIVE' ? there : await waitActive(client, wanted.table, o), created: false }
  }
  if (wanted.schema !== undefined) schemaWithKeys(found.make, wanted.schema)
  try {
    await createTable(client, found.make, o)
  } catch (error) {
    // Somebody else was quicker, or our own first request was, whose answer was lost.
    const isThere = error instanceof SluiceError && error.code === 'SLUICE_EXISTS'
    const there = isThere ? await findLoadable(client, wanted, o) : found
    if (!('there' in there)) throw error
    return { table: await waitActive(client, wanted.table, o), created: false }
  }
  const table = await waitActive(client, wanted.table, o)
  const missed = notWarm(table.warm, options.warmWrites)
  if (missed !== null) warn(missed)
  return { table, created: true }
}

/** Says that a table bears fewer writes at once than were asked for; null where it bears them, or none were asked for. */
export function notWarm(warm: Throughput | null, wanted: number | undefined): string | null {
  const units = warm?.writeUnits ?? null
  if (wanted === undefined || (units !== null && units >= wanted)) return null
  return units === null
    ? `--warm-writes ${wanted}: the server does not say what the table bears at once`
    : `--warm-writes ${wanted}: the table bears ${units} writes a second at once so far`
}

/** What keys of a table and its indexes say of the columns: their types. @throws SLUICE_COLUMN_MISSING, unless values carry types of their own */
export function schemaWithKeys(
  table: TableKeys & { readonly indexes?: readonly TableIndex[] },
  schema: Schema,
): Schema {
  // JSON's first row need not have all keys; each row is looked at by itself.
  if (schema.typed !== true) checkKeys(table, schema)
  const keys = [...keysOf(table), ...indexKeysOf({ indexes: [], ...table })]
  const columns = schema.columns.map((column) => {
    const key = keys.find((one) => one.name === column.name)
    return key === undefined || column.type !== undefined ? column : { ...column, type: KEY_TYPES[key.type] }
  })
  return { ...schema, columns }
}

/** A key as the flags spell it: `sensor:S, time:N`. */
export function spell(keys: TableKeys): string {
  return keysOf(keys)
    .map(({ name, type }) => `${name}:${type}`)
    .join(', ')
}

/**
 * Checks before any row is read that rows of this schema can have the table's key.
 *
 * @throws SLUICE_COLUMN_MISSING, which names the key attribute
 */
export function checkKeys(table: TableKeys, schema: Schema): void {
  const names = schema.columns.map((column) => column.name)
  // A source without a row has no columns either.
  if (names.length === 0) return
  for (const [i, key] of keysOf(table).entries()) {
    if (names.includes(key.name)) continue
    const close = names.find((name) => name.toLowerCase() === key.name.toLowerCase())
    const rename = close ?? names[0] ?? 'old'
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `the source has no column "${key.name}", the table's ${i === 0 ? 'partition' : 'sort'} key`,
      {
        where: { column: key.name },
        hint: schema.named
          ? `${shellQuote(['--rename', `${rename}=${key.name}`])}; its columns are ${names.slice(0, 30).join(', ')}${names.length > 30 ? ', …' : ''}`
          : `the columns have no names: --columns ${key.name},…`,
      },
    )
  }
}

function sameKeys(a: TableKeys, b: TableKeys): boolean {
  const text = (keys: TableKeys): string => JSON.stringify(keysOf(keys).map(({ name, type }) => [name, type]))
  return text(a) === text(b)
}

/** What `look` finds at last; null where it finds nothing in time. */
async function waitFor<T>(
  look: () => Promise<T | null>,
  o: Abortable & { readonly longestMs?: number | undefined },
): Promise<T | null> {
  const untilMs = performance.now() + (o.longestMs ?? LONGEST_WAIT_MS)
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    const found = await look()
    if (found !== null) return found
    if (performance.now() + pauseMs > untilMs) return null
    await delay(pauseMs, undefined, { signal: o.signal }).catch(() => o.signal.throwIfAborted())
  }
}

function stillWaiting(table: string, wanted: string, longestMs = LONGEST_WAIT_MS): SluiceError {
  return new SluiceError('SLUICE_SERVER', `the table ${table} is not ${wanted} after ${Math.round(longestMs / 1000)} s`)
}
