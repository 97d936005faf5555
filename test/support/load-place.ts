import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copy, type CopyOptions, type CopyRequest, type JobResult } from '../../src/index.ts'
import { freshDatabase, type PostgresAddress, psql, sharedServices } from './services.ts'

/** A load that is over, and what is in the table. */
export interface Loaded {
  readonly result: Omit<JobResult, 'error'> & { readonly error: JobResult['error'] | undefined }
  /** psql's lines: fields parted by `|`, NULL as `~`. */
  readonly rows: string
}

export interface LoadRequest {
  /** Rows of the table; default `SELECT * FROM t ORDER BY 1`. */
  readonly query?: string
  readonly options?: CopyOptions
  readonly stdin?: CopyRequest['stdin']
  readonly env?: CopyRequest['env']
  /** SINK in place of the table `t`. */
  readonly sink?: string
  readonly newJob?: boolean
}

/** A database and a folder of a test's own, to load files into the table `t`. */
export interface LoadPlace {
  readonly db: PostgresAddress
  readonly folder: string
  /** Writes a file; its path. */
  file(name: string, content: string | Uint8Array): string
  /** Drops `t` and makes it anew. */
  table(ddl: string): Promise<void>
  sql(text: string): Promise<string>
  /** Copies a source into `t`, which must be there or be created. */
  run(source: string, o?: LoadRequest): Promise<Loaded>
  /** The text as a file, into a new table `t`. */
  text(text: string | Uint8Array, ddl: string, options?: CopyOptions): Promise<Loaded>
  close(): Promise<void>
}

export async function makeLoadPlace(server: 'postgres15' | 'postgres18', name: string): Promise<LoadPlace> {
  const db = await freshDatabase(sharedServices()[server], name)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-load-'))
  let files = 0
  const sql = (text: string, flags: readonly string[] = []): Promise<string> => psql(db, text, flags)
  const file = (path: string, content: string | Uint8Array): string => {
    writeFileSync(join(folder, path), content)
    return join(folder, path)
  }
  const table = async (ddl: string): Promise<void> => {
    await sql(`DROP TABLE IF EXISTS t; CREATE TABLE t (${ddl})`)
  }
  const run = async (source: string, o: LoadRequest = {}): Promise<Loaded> => {
    const ended = await copy({
      source,
      sink: o.sink ?? `${db.url}?table=t`,
      options: o.options ?? {},
      env: o.env ?? {},
      stateDir: join(folder, 'state'),
      stdin: o.stdin,
      newJob: o.newJob,
    })
    // With its key in any case, so that what failed shows why.
    const result = { ...ended, error: ended.error }
    const there = (await sql("SELECT to_regclass('t') IS NOT NULL")) === 't'
    const rows = there ? await sql(o.query ?? 'SELECT * FROM t ORDER BY 1', ['-P', 'null=~']) : 'no table'
    return { result, rows }
  }
  return {
    db,
    folder,
    file,
    table,
    sql,
    run,
    text: async (text, ddl, options) => {
      await table(ddl)
      return run(file(`${(files += 1)}.csv`, text), options === undefined ? {} : { options })
    },
    close: async () => {
      rmSync(folder, { recursive: true })
      await db.drop()
    },
  }
}

/** What a job that did its work says: so many rows in, none rejected, some left out. */
export function done(rowsWritten: number, rowsSkipped = 0): object {
  return {
    status: 'done',
    rowsRead: rowsWritten + rowsSkipped,
    rowsWritten,
    rowsSkipped,
    rowsRejected: 0,
    error: undefined,
    ...(rowsSkipped === 0 ? {} : { skipped: { filtered: rowsSkipped, superseded: 0, existing: 0 } }),
  }
}

/** How a job ends that left nothing behind. */
export function failed(code: string): object {
  return { status: 'failed', error: { code } }
}
