import { SluiceError } from '../../../core/errors.ts'
import type { ErrorCode, ErrorPlace } from '../../../core/errors.ts'
import { locateRecord } from '../../../formats/csv/locate.ts'
import { beginSql } from '../connection/begin-sql.ts'
import type { PgConnection } from '../connection/connection.ts'
import { CopyIn } from './copy-in.ts'
import { placeOfRow, sentRecords } from './copy-run.ts'
import type { CopyRun, SentRecord } from './copy-run.ts'
import { sqlState } from '../errors.ts'

/** Classes of SQLSTATE that a row is to blame for: data, constraints, a trigger's own refusal. */
const ROW_CLASSES = ['22', '23', 'P0', '44']

/** What a SQLSTATE means in a statement, and not where it comes from a value. */
const NOT_OF_A_VALUE: readonly ErrorCode[] = ['SLUICE_USAGE', 'SLUICE_SQL', 'SLUICE_NOT_FOUND', 'SLUICE_COLUMN_MISSING']

/**
 * Fills in the row and column that COPY objected to: by the line number of its context; where there is none (foreign keys, deferred
 * triggers), by trying prefixes of the extent in transactions that are rolled back, about log2(rows) of them.
 * The client's own transaction must be over (failed).
 */
export async function locateError(
  error: SluiceError,
  run: CopyRun,
  o: { readonly connection: PgConnection; readonly bisect: boolean },
): Promise<SluiceError> {
  const context = contextOf(error)
  const line = context === null ? null : lineOf(context, run)
  let found: SentRecord | null = null
  if (line !== null) for (const record of sentRecords(run)) if (record.line >= line && found === null) found = record
  const state = sqlState(error) ?? ''
  if (found === null && o.bisect && ROW_CLASSES.includes(state.slice(0, 2)))
    found = await bisect(run, state, o.connection).catch(() => null)
  if (found === null) return error
  const column = columnOf(context, run)
  return blamedOnValue(error, column).at({ ...placeOf(found), column })
}

/** What extensions' input functions raise by elog, of a value as of their own faults: hstore ("Unexpected end of string"), PostGIS ("parse error - invalid geometry"). */
export const INTERNAL_ERROR = 'XX000'

/** Input functions have SQLSTATEs of other classes, too (22023, 42601, 42P01, XX000 …): what COPY says of a column is about a value of it. */
function blamedOnValue(error: SluiceError, column: string | undefined): SluiceError {
  const ofValue = NOT_OF_A_VALUE.includes(error.code) || sqlState(error) === INTERNAL_ERROR
  if (column === undefined || !ofValue) return error
  return new SluiceError('SLUICE_VALUE', error.message, { where: error.where, cause: error.cause })
}

/** A record's place in its source. */
export function placeOf(record: Pick<SentRecord, 'sent' | 'index'>): ErrorPlace {
  const { batch } = record.sent
  return batch.form === 'csv' ? locateRecord(batch, record.index) : placeOfRow(batch, record.index)
}

function contextOf(error: SluiceError): string | null {
  const { cause } = error
  return typeof cause === 'object' && cause !== null && 'where' in cause && typeof cause.where === 'string'
    ? cause.where
    : null
}

/** `COPY people, line 3, column age: "x"`, in any language: the first number after the table's name; of several lines, the one about COPY. */
function lineOf(context: string, run: CopyRun): number | null {
  for (const line of context.split('\n')) {
    const match = /^COPY .*?, \D*(\d+)(?:,|$|:)/.exec(line.replace(tableName(run), 'TABLE'))
    if (match !== null) return Number(match[1])
  }
  return null
}

function tableName(run: CopyRun): string {
  return /"((?:[^"]|"")+)" \(/.exec(run.statement)?.[1]?.replaceAll('""', '"') ?? ''
}

function columnOf(context: string | null, run: CopyRun): string | undefined {
  if (context === null) return undefined
  const named = /, \D*\d+, (.*?)(?:: |$)/.exec(context.split('\n').find((line) => line.startsWith('COPY ')) ?? '')?.[1]
  return named === undefined
    ? undefined
    : run.columns
        .filter((column) => named === column || named.endsWith(` ${column}`))
        .reduce<string | undefined>(
          (longest, column) => (column.length > (longest?.length ?? 0) ? column : longest),
          undefined,
        )
}

/** A lock of another session is waited for no longer; then the row is not looked for. */
const LOCK_TIMEOUT_MS = 2000

/** The record that ends the shortest prefix to which the server objects in the same way. */
async function bisect(run: CopyRun, state: string, connection: PgConnection): Promise<SentRecord | null> {
  const records = [...sentRecords(run)]
  let [good, bad] = [0, records.length]
  if (!(await objects(run, records.slice(0, bad), { connection, state }))) return null
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    if (await objects(run, records.slice(0, middle), { connection, state })) bad = middle
    else good = middle
  }
  return records[bad - 1] ?? null
}

async function objects(
  run: CopyRun,
  records: readonly SentRecord[],
  { connection, state }: { readonly connection: PgConnection; readonly state: string },
): Promise<boolean> {
  const { client } = connection
  await client.query('ROLLBACK')
  await connection.begin(beginSql(LOCK_TIMEOUT_MS))
  try {
    const copy = await CopyIn.start(client, run.statement, 'looking for the row')
    for (const record of records) await copy.write(record.sent.bytes.subarray(record.start, record.end))
    await copy.end()
    await client.query('SET CONSTRAINTS ALL IMMEDIATE')
    return false
  } catch (error) {
    if (sqlState(error) === state) return true
    throw error
  } finally {
    await client.query('ROLLBACK')
  }
}
