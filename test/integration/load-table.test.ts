import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, plan, type JobResult } from '../../src/index.ts'
import { done, failed, makeLoadPlace, type LoadPlace } from '../support/load-place.ts'

/** All that a job could leave: relations, schemas, types, functions and settings of the database. */
const CATALOG = `SELECT (SELECT string_agg(oid::regclass::text || ':' || relkind::text, ',' ORDER BY oid::regclass::text) FROM pg_class
    WHERE relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)),
  (SELECT string_agg(nspname, ',' ORDER BY nspname) FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_t%'),
  (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_type), (SELECT count(*) FROM pg_db_role_setting)`
/** About 20 MB in four extents and more. */
const ROWS = 600_000
const long = `id,name\n${Array.from({ length: ROWS }, (_, i) => `${i},name of the row number ${i}\n`).join('')}`

describe.each(['postgres15', 'postgres18'] as const)('the table in %s', (server) => {
  let place: LoadPlace
  let file = ''
  beforeAll(async () => {
    place = await makeLoadPlace(server, 'load_table')
    file = place.file('long.csv', long)
  })
  afterAll(() => place.close())

  describe('--create', () => {
    const TYPES = `SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
      FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0`

    it('infers types from every row, and loads', async () => {
      await place.sql('DROP TABLE IF EXISTS t')
      const text = [
        'id,big,code,price,on,at,moment,flag,name,nothing',
        '1,2147483648,01569,1.5,2026-01-31,2026-01-31 10:00:00,2026-01-31T10:00:00Z,true,Ada,',
        '2,-1,7,22.125,2026-02-28,2026-02-28 11:30:00,2026-02-28T10:00:00Z,false,"x, y",',
      ].join('\n')
      const source = place.file('infer.csv', `${text}\n`)
      const { result } = await place.run(source, { options: { create: true } })
      expect(result).toMatchObject(done(2))
      expect(await place.sql(TYPES)).toBe(
        'id integer, big bigint, code text, price numeric, on date, at timestamp without time zone, ' +
          'moment timestamp with time zone, flag boolean, name text, nothing text',
      )
      expect(await place.sql('SELECT code, price, name, "on" FROM t ORDER BY id')).toBe(
        '01569|1.5|Ada|2026-01-31\n7|22.125|x, y|2026-02-28',
      )
    })

    it('--type stands above what the values look like', async () => {
      await place.sql('DROP TABLE IF EXISTS t')
      const source = place.file('typed.csv', 'id,zip\n1,12345\n')
      const { result } = await place.run(source, { options: { create: true, type: ['zip=text'] } })
      expect(result).toMatchObject(done(1))
      expect(await place.sql(TYPES)).toBe('id integer, zip text')
    })

    it('takes the table that is there', async () => {
      await place.table('id bigint, name text')
      const { result, rows } = await place.run(place.file('there.csv', 'id,name\n1,Ada\n'), {
        options: { create: true },
      })
      expect(result).toMatchObject(done(1))
      expect([rows, await place.sql(TYPES)]).toEqual(['1|Ada', 'id bigint, name text'])
    })

    it.each(['job', 'partition'] as const)('of a load that fails leaves no table: --commit %s', async (commit) => {
      await place.sql('DROP SCHEMA IF EXISTS sluice CASCADE; DROP TABLE IF EXISTS t')
      const source = place.file('bad.csv', 'id,name\n1,Ada\n2,"Grace\n')
      const { result, rows } = await place.run(source, { options: { create: true, commit }, newJob: true })
      expect(result).toMatchObject({ status: 'failed' })
      expect(rows).toBe('no table')
    })

    it('without it a table that is missing is named, before a row is read', async () => {
      await place.sql('DROP TABLE IF EXISTS t')
      const { result, rows } = await place.run(place.file('none.csv', 'id\n1\n'))
      expect([result, rows]).toMatchObject([{ ...failed('SLUICE_NOT_FOUND'), rowsRead: 0 }, 'no table'])
      expect(result.error?.hint).toContain('--create')
    })

    it('shows in a plan the DDL and makes nothing', async () => {
      await place.sql('DROP TABLE IF EXISTS t')
      const source = place.file('plan.csv', 'id,name\n1,Ada\n')
      const planned = await plan({
        source,
        sink: `${place.db.url}?table=t`,
        options: { create: true },
        env: {},
        stateDir: `${place.folder}/plan-state`,
      })
      expect(planned.sql.join('\n')).toMatch(/CREATE TABLE "public"\."t"[^;]*"id" integer[^;]*"name" text/)
      expect(await place.sql("SELECT to_regclass('t') IS NULL")).toBe('t')
    })
  })

  describe.each(['job', 'partition'] as const)('--commit %s', (commit) => {
    beforeAll(async () => {
      await place.sql('DROP SCHEMA IF EXISTS sluice CASCADE')
    })

    it('--mode truncate puts the new rows in place of the old', async () => {
      await place.table('id int PRIMARY KEY, name text')
      await place.sql(`INSERT INTO t SELECT i, 'old' FROM generate_series(1, 1000) i`)
      const { result, rows } = await place.run(file, {
        options: { mode: 'truncate', commit, yes: true },
        query: `SELECT count(*), count(*) FILTER (WHERE name = 'old') FROM t`,
      })
      expect([result, rows]).toMatchObject([done(ROWS), `${ROWS}|0`])
    })

    it('appends to the rows that are there', async () => {
      await place.table('id int, name text')
      await place.sql(`INSERT INTO t VALUES (-1, 'old')`)
      const query = 'SELECT count(*), sum(id::bigint), count(DISTINCT id) FROM t'
      const { result, rows } = await place.run(file, { options: { commit, concurrency: 3 }, query, newJob: true })
      const sum = (ROWS * (ROWS - 1)) / 2 - 1
      expect([result, rows]).toMatchObject([done(ROWS), `${ROWS + 1}|${sum}|${ROWS + 1}`])
    })

    it('--before-sql and --after-sql run once each, in order', async () => {
      await place.table('id int, name text')
      await place.sql('DROP TABLE IF EXISTS told; CREATE TABLE told (n serial, what text, rows bigint)')
      const tell = (what: string): string => `INSERT INTO told (what, rows) SELECT '${what}', count(*) FROM t`
      const options = { commit, beforeSql: [tell('before')], afterSql: ['VACUUM t', tell('after')] }
      const { result, rows } = await place.run(place.file('short.csv', 'id,name\n1,Ada\n2,Bob\n'), {
        options,
        query: 'SELECT what, rows FROM told ORDER BY n',
        newJob: true,
      })
      expect([result, rows]).toMatchObject([done(2), 'before|0\nafter|2'])
    })

    it('a --before-sql that fails ends the job before a row is read', async () => {
      await place.table('id int, name text')
      const { result, rows } = await place.run(place.file('sql.csv', 'id,name\n1,Ada\n'), {
        options: { commit, beforeSql: ['SELECT nonesuch()'] },
        newJob: true,
      })
      expect([result, rows]).toMatchObject([{ status: 'failed', rowsRead: 0, rowsWritten: 0 }, ''])
      expect(result.error?.message).toContain('nonesuch')
    })
  })

  it('--mode truncate that fails leaves the old rows', async () => {
    await place.table('id int, name text')
    await place.sql(`INSERT INTO t VALUES (7, 'old')`)
    const bad = place.file('bad-truncate.csv', `${long}x,y\n`)
    const { result, rows } = await place.run(bad, { options: { mode: 'truncate', yes: true }, newJob: true })
    expect([result, rows]).toMatchObject([{ ...failed('SLUICE_VALUE'), rowsWritten: 0 }, '7|old'])
    expect(result.error?.where).toContain(
      `bad-truncate.csv row ${ROWS + 1} (line ${ROWS + 2}, byte ${long.length}), column id`,
    )
  })

  describe('what is left in the database', () => {
    it('--commit job leaves nothing, done or failed', async () => {
      await place.table('id int, name text')
      const before = await place.sql(CATALOG)
      const good = await place.run(file, { options: { concurrency: 3 }, newJob: true, query: 'SELECT count(*) FROM t' })
      expect(good).toMatchObject({ result: done(ROWS), rows: String(ROWS) })
      expect(await place.sql(CATALOG)).toBe(before)
      const bad = place.file('bad-left.csv', `${long}x,y\n`)
      const again = await place.run(bad, { options: { concurrency: 3 }, newJob: true, query: 'SELECT count(*) FROM t' })
      expect(again).toMatchObject({ result: { status: 'failed' }, rows: String(ROWS) })
      expect(await place.sql(CATALOG)).toBe(before)
    })

    it('--commit partition keeps its ledger in the schema of --ledger-schema', async () => {
      // First: the user is named sluice, so that a schema of that name would take the table.
      await place.sql('DROP SCHEMA IF EXISTS sluice CASCADE; DROP SCHEMA IF EXISTS "my Ledger" CASCADE')
      await place.table('id int, name text')
      const options = { commit: 'partition', ledgerSchema: 'my Ledger' } as const
      const { result } = await place.run(file, { options, newJob: true, query: 'SELECT count(*) FROM t' })
      expect(result).toMatchObject(done(ROWS))
      expect(
        await place.sql(`SELECT to_regnamespace('sluice') IS NULL, to_regnamespace('"my Ledger"') IS NOT NULL`),
      ).toBe('t|t')
    })

    it('--commit partition of another table is not gone on with in another snapshot', async () => {
      const big = 300_000
      await place.sql(
        `DROP TABLE IF EXISTS there; CREATE TABLE there AS SELECT g AS id, repeat('x', 40) AS name FROM generate_series(1, ${big}) g`,
      )
      await place.table(`id int CHECK (id < ${big}), name text`)
      const load = (resume: boolean): Promise<JobResult> =>
        copy({
          source: `${place.db.url}?table=there`,
          sink: `${place.db.url}?table=t`,
          options: { commit: 'partition', concurrency: 1 },
          env: {},
          stateDir: join(place.folder, 'state'),
          jobId: `mixed-${server}`,
          resume,
        })
      expect(await load(false)).toMatchObject(failed('SLUICE_CONSTRAINT'))
      const committed = Number(await place.sql('SELECT count(*) FROM t'))
      expect(committed).toBeGreaterThan(0)
      expect(committed).toBeLessThan(big)
      await place.sql('ALTER TABLE t DROP CONSTRAINT t_id_check')
      expect(await load(true)).toMatchObject(failed('SLUICE_SOURCE_CHANGED'))
      expect(Number(await place.sql('SELECT count(*) FROM t'))).toBe(committed)
    })

    it('a role that may not create the ledger is told the GRANT, and nothing is loaded', async () => {
      await place.sql('DROP SCHEMA IF EXISTS sluice CASCADE')
      await place.table('id int, name text')
      const role = `loader_${server}_${process.pid}`
      await place.sql(`CREATE ROLE ${role} LOGIN PASSWORD 'pw'; GRANT SELECT, INSERT ON t TO ${role}`)
      try {
        const sink = `${place.db.url.replace(/\/\/[^@]*@/, `//${role}:pw@`)}?table=t`
        const refused = await place.run(file, { sink, options: { commit: 'partition' }, newJob: true })
        expect(refused).toMatchObject({ result: failed('SLUICE_ACCESS_DENIED'), rows: '' })
        expect(refused.result.error?.hint).toMatch(/GRANT CREATE.*--ledger-schema/s)
        const taken = await place.run(file, { sink, newJob: true, query: 'SELECT count(*) FROM t' })
        expect(taken).toMatchObject({ result: done(ROWS), rows: String(ROWS) })
      } finally {
        await place.sql(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
      }
    })
  })
})
