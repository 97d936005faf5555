import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions } from '../../src/index.ts'
import { type PostgresServer, startPostgres13 } from '../support/services.ts'

const ROWS = 5000

let server: PostgresServer
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-pg13-'))
  server = await startPostgres13()
  await server.psql(
    `CREATE TABLE t (id int PRIMARY KEY, n numeric(10,2), name text, at timestamptz, list int[], doc jsonb);
     INSERT INTO t SELECT i, i / 7.0, nullif('name ' || i % 10, 'name 3'), timestamptz '2020-01-01' + i * interval '1 min',
       ARRAY[i, NULL], jsonb_build_object('i', i) FROM generate_series(1, ${ROWS}) i;
     CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
     CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
     CREATE TABLE parts_2 PARTITION OF parts DEFAULT; INSERT INTO parts SELECT * FROM t`,
  )
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const run = (source: string, sink: string, options: CopyOptions = {}) =>
  copy({ source, sink, options, env: {}, stateDir: join(folder, 'state') })
const table = (name: string): string => `${server.url}?table=${name}`

describe('PostgreSQL 13, the oldest that is supported', () => {
  it.each(['csv', 'jsonl', 'parquet'])('a table to %s, and back as it was', async (format) => {
    const file = join(folder, `t.${format}`)
    for (const name of ['t', 'parts'])
      expect(await run(table(name), file, { ifExists: 'overwrite', singleFile: true })).toMatchObject({
        status: 'done',
        rowsWritten: ROWS,
      })
    await server.psql('DROP TABLE IF EXISTS back; CREATE TABLE back (LIKE t)')
    const options = format === 'parquet' ? { select: ['id', 'n', 'name', 'at', 'doc'] } : {}
    expect(await run(file, table('back'), options)).toMatchObject({ status: 'done', rowsWritten: ROWS })
    const columns = format === 'parquet' ? 'id, n, name, at, doc' : '*'
    expect(
      await server.psql(`SELECT count(*) FROM (SELECT ${columns} FROM t EXCEPT SELECT ${columns} FROM back) d`),
    ).toBe('0')
  })

  it('a query to a file; a load in the place of what was there, and one with a ledger', async () => {
    const file = join(folder, 'q.csv')
    const query = 'SELECT id, name FROM t WHERE id <= 100'
    expect(await run(server.url, file, { query })).toMatchObject({ status: 'done', rowsWritten: 100 })
    await server.psql(`CREATE TABLE kept (id int PRIMARY KEY, name text); INSERT INTO kept VALUES (1, 'old')`)
    expect(await run(file, table('kept'), { mode: 'truncate', yes: true })).toMatchObject({ status: 'done' })
    expect(await server.psql('SELECT count(*), min(name) FILTER (WHERE id = 1) FROM kept')).toBe('100|name 1')
    await server.psql('TRUNCATE kept')
    expect(await run(file, table('kept'), { commit: 'partition' })).toMatchObject({ status: 'done', rowsWritten: 100 })
    expect(await server.psql('SELECT count(*) FROM kept')).toBe('100')
  })
})
