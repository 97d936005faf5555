import type { Connection } from 'pg'
import { SluiceError } from '../../../core/errors.ts'
import type { PgConnection } from '../connection/connection.ts'
import { sqlState, whileReading } from '../errors.ts'

/** A column of what a query gives, as RowDescription has it: the type is that under its domains. */
export interface QueryColumn {
  readonly name: string
  readonly typeOid: number
  readonly typmod: number
}

/**
 * The one statement of a text, without the `;` and what comments stand behind it.
 *
 * @throws SLUICE_USAGE where there is none, or more than one
 */
export function onlyStatement(text: string): string {
  const sql = text.replace(/^\uFEFF/, '')
  let [begin, end]: [number | null, number | null] = [null, null]
  for (const { kind, start } of tokens(sql)) {
    if (kind === 'semicolon') end ??= begin === null ? null : start
    else if (end === null) begin ??= start
    else
      throw new SluiceError('SLUICE_USAGE', 'the query is more than one statement', {
        hint: 'give one SELECT; --before-sql and --after-sql run others, at a sink',
      })
  }
  if (begin === null) throw new SluiceError('SLUICE_USAGE', 'the query is empty', { hint: "--query 'SELECT …'" })
  // Lines and columns stay as they are, for errors.
  return sql.slice(0, begin).replaceAll(';', ' ') + sql.slice(begin, end ?? undefined)
}

/** Skipped, or what a semicolon is not looked for in (PostgreSQL documentation, "Lexical Structure"); sticky, tried in this order. */
const BLANK = /(?:\s+|--[^\n\r]*)/y
const TOKENS = [
  /[eE]'[^'\\]*(?:(?:''|\\[^])[^'\\]*)*'?/y,
  /'[^']*(?:''[^']*)*'?/y,
  /"[^"]*(?:""[^"]*)*"?/y,
  /\$((?:[\p{L}_][\p{L}\p{N}_]*)?)\$[^]*?(?:\$\1\$|$)/uy,
  /[\p{L}_][\p{L}\p{N}_$]*/uy,
  /[^]/y,
]

/** Significant pieces of a text. Commands that psql would understand are the server's to refuse. */
function* tokens(sql: string): Generator<{ kind: 'semicolon' | 'other'; start: number }> {
  let at = 0
  while (at < sql.length) {
    const blank = matchAt(BLANK, sql, at) || commentAt(sql, at)
    if (blank > 0) {
      at += blank
      continue
    }
    yield { kind: sql[at] === ';' ? 'semicolon' : 'other', start: at }
    const pattern = TOKENS.find((one) => matchAt(one, sql, at) > 0)
    at += pattern === undefined ? 1 : matchAt(pattern, sql, at)
  }
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0].length ?? 0
}

/** Length of a comment with stars, which may hold others; 0 where there is none. */
function commentAt(sql: string, start: number): number {
  if (!sql.startsWith('/*', start)) return 0
  let depth = 0
  for (let at = start; at < sql.length; at += 1) {
    const pair = sql.slice(at, at + 2)
    if (pair === '/*') depth += 1
    else if (pair === '*/') depth -= 1
    else continue
    at += 1
    if (depth === 0) return at + 1 - start
  }
  return sql.length - start
}

/**
 * What the statement gives. It is parsed and planned by the server and not run; it must be a SELECT, VALUES or TABLE, and write nothing. The relations that it
 * reads stay locked (ACCESS SHARE) until the transaction ends. The transaction is void where this throws.
 *
 * @throws SLUICE_USAGE, SLUICE_SQL with the place in the text; whatever names it gets wrong
 */
export async function describeQuery(connection: PgConnection, sql: string): Promise<readonly QueryColumn[]> {
  const fields = await describeStatement(connection, sql).catch((error: unknown) => {
    throw located(error, sql)
  })
  if (fields === null) throw noSelect()
  try {
    await connection.query(`DECLARE sluice_query NO SCROLL CURSOR FOR\n${sql}\n`)
    await connection.query('CLOSE sluice_query')
  } catch (error) {
    const state = sqlState(error)
    if (state === '42601' || state === '0A000' || state === '25006') throw noSelect(error)
    throw whileReading(error, 'the query')
  }
  return fields
}

function noSelect(cause?: unknown): SluiceError {
  return new SluiceError('SLUICE_USAGE', 'the query is no SELECT that only reads', {
    hint: 'SELECT, VALUES, TABLE, or WITH before one of them',
    cause,
  })
}

/** With the line and the column, from 1, that the server points to. */
function located(error: unknown, sql: string): SluiceError {
  const place = Number(Reflect.get(Object(error), 'position'))
  if (!(place > 0)) return whileReading(error, 'the query')
  // The server counts characters, JavaScript's strings UTF-16 units.
  const before = [...sql]
    .slice(0, place - 1)
    .join('')
    .split('\n')
  const column = [...(before.at(-1) ?? '')].length + 1
  return whileReading(error, `the query, line ${before.length}, column ${column}`)
}

interface RowDescription {
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number; readonly dataTypeModifier: number }[]
}

/** Parse, Describe and Sync, which `pg` has no call for (PostgreSQL documentation, "Extended Query"). Null: it gives no rows. */
function describeStatement(connection: PgConnection, text: string): Promise<readonly QueryColumn[] | null> {
  return new Promise((resolve, reject) => {
    let columns: QueryColumn[] | null = null
    const handlers = {
      handleError: reject,
      handleRowDescription: ({ fields }: RowDescription) => {
        columns = fields.map((field) => ({
          name: field.name,
          typeOid: field.dataTypeID,
          typmod: field.dataTypeModifier,
        }))
      },
      handleReadyForQuery: () => resolve(columns),
    }
    const submit = (wire: Connection): void => {
      wire.parse({ name: '', text, types: [] }, false)
      wire.describe({ type: 'S', name: '' }, false)
      wire.sync()
    }
    connection.client.query(Object.assign({ submit }, handlers))
  })
}
