import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { freshDatabase, type PostgresAddress, psql, sharedServices } from '../support/services.ts'

let folder = ''
let files = 0
let db: PostgresAddress & { drop(): Promise<void> }
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-constraints-'))
  db = await freshDatabase(sharedServices().postgres15, 'load_constraints')
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await db.drop()
})

/** `before` makes the table `t`; `rows` is its count afterwards. */
async function load(
  text: string,
  before: string,
  options: CopyOptions = {},
): Promise<JobResult & { at: string; rows: number }> {
  const source = join(folder, `${(files += 1)}.csv`)
  writeFileSync(source, text)
  await psql(db, `DROP TABLE IF EXISTS t CASCADE; ${before}`)
  const result = await copy({ source, sink: `${db.url}?table=t`, options, env: {}, stateDir: join(folder, 'state') })
  rmSync(source)
  const at = (result.error?.where ?? '').replace(/^\S+ ?/, '')
  return { ...result, at, rows: Number(await psql(db, 'SELECT count(*) FROM t')) }
}

const PAD = 'x'.repeat(200)
/** 12 MB: three extents. `of` gives a row's fields from its number, from 1. */
const ROWS = 60_000
const manyRows = (head: string, of: (row: number) => string): string =>
  `${head}\n${Array.from({ length: ROWS }, (_, i) => `${of(i + 1)}\n`).join('')}`
const placeOf = (text: string, row: number): string => {
  let byte = 0
  for (let line = 0; line < row; line += 1) byte = text.indexOf('\n', byte) + 1
  return `row ${row} (line ${row + 1}, byte ${byte})`
}

describe('a constraint that one row breaks ends the load with its place, and nothing is in the table', () => {
  const PARENTS = `DROP TABLE IF EXISTS parent CASCADE; CREATE TABLE parent (id int PRIMARY KEY);
    INSERT INTO parent SELECT generate_series(1, 100);`
  const TRIGGER = `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN IF NEW.v = 777 THEN RAISE EXCEPTION 'no seven'; END IF; RETURN NEW; END $$;`

  it.each<[string, string, string, RegExp]>([
    ['check', 'CREATE TABLE t (id int, v int CHECK (v <> 777), p text)', 'SLUICE_CONSTRAINT', /t_v_check/],
    ['not null', 'CREATE TABLE t (id int, v int NOT NULL, p text)', 'SLUICE_CONSTRAINT', /not-null/],
    [
      'foreign key',
      `${PARENTS} CREATE TABLE t (id int, v int REFERENCES parent, p text)`,
      'SLUICE_CONSTRAINT',
      /\(v\)=\(777\)/,
    ],
    [
      'deferred foreign key',
      `${PARENTS} CREATE TABLE t (id int, v int REFERENCES parent DEFERRABLE INITIALLY DEFERRED, p text)`,
      'SLUICE_CONSTRAINT',
      /\(v\)=\(777\)/,
    ],
    [
      'trigger before each row',
      `CREATE TABLE t (id int, v int, p text); ${TRIGGER}
       CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()`,
      'SLUICE_CONSTRAINT',
      /no seven/,
    ],
    [
      'trigger after each row',
      `CREATE TABLE t (id int, v int, p text); ${TRIGGER}
       CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()`,
      'SLUICE_CONSTRAINT',
      /no seven/,
    ],
    [
      'no partition',
      `CREATE TABLE t (id int, v int, p text) PARTITION BY RANGE (v);
       CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (50); CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (50) TO (200)`,
      'SLUICE_CONSTRAINT',
      /no partition/,
    ],
    [
      'unique against rows that are there',
      `CREATE TABLE other (v int UNIQUE); CREATE TABLE t (id int UNIQUE, v int, p text); DROP TABLE other;`,
      'SLUICE_DUPLICATE_KEY',
      /\(id\)=\(7\)/,
    ],
  ])('%s, the row in the last of three extents', async (name, before, code, message) => {
    const bad = 59_000
    const text = manyRows('id,v,p', (row) => {
      if (row !== bad) return `${row},${row % 100 || 100},${PAD}`
      if (name.startsWith('unique')) return `7,1,${PAD}`
      return `${row},${name === 'not null' ? '' : '777'},${PAD}`
    })
    const result = await load(text, before, { concurrency: 1 })
    expect(result.error).toMatchObject({ code, message: expect.stringMatching(message) as string })
    // What is deferred is checked once the rows are gone: the key in the message is what there is.
    expect(result.at.replace(/, column .*/, '')).toBe(name.startsWith('deferred') ? '' : placeOf(text, bad))
    expect(result.rows).toBe(0)
  })

  it.each([1, 2, 4])('names the row whose key is in the table already, with %d lanes', async (concurrency) => {
    const text = manyRows('id,p', (row) => `${row},${PAD}`)
    const result = await load(text, 'CREATE TABLE t (id int PRIMARY KEY, p text); INSERT INTO t VALUES (51234)', {
      concurrency,
    })
    expect(result.error).toMatchObject({ code: 'SLUICE_DUPLICATE_KEY' })
    expect(result.at).toBe(placeOf(text, 51_234))
    expect(result.rows).toBe(1)
  })

  it('says what a constraint trigger says at the end', async () => {
    const result = await load(
      'id\n1\n2\n3\n',
      `CREATE TABLE t (id int);
       CREATE OR REPLACE FUNCTION few() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN IF (SELECT count(*) FROM t) > 2 THEN RAISE EXCEPTION 'too many rows'; END IF; RETURN NULL; END $$;
       CREATE CONSTRAINT TRIGGER few AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION few()`,
    )
    expect(result.error).toMatchObject({
      code: 'SLUICE_CONSTRAINT',
      message: expect.stringContaining('too many rows') as string,
    })
    expect(result.rows).toBe(0)
  })

  it('says what the server says where only earlier extents make a row wrong', async () => {
    const result = await load(
      manyRows('id,p', (row) => `${row},${PAD}`),
      `CREATE TABLE t (id int, p text);
       CREATE OR REPLACE FUNCTION most() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN IF (SELECT count(*) FROM t) > 55000 THEN RAISE EXCEPTION 'more than 55000'; END IF; RETURN NULL; END $$;
       CREATE TRIGGER most AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION most()`,
      { concurrency: 1 },
    )
    expect(result.error).toMatchObject({
      code: 'SLUICE_CONSTRAINT',
      message: expect.stringContaining('more than 55000') as string,
    })
    expect(result.rows).toBe(0)
  })
})

describe('two rows that exclude each other', () => {
  const table = (constraint: string): string => `CREATE TABLE t (id int, p text, ${constraint})`
  const kinds: [string, string, string][] = [
    ['unique', 'UNIQUE (id)', 'SLUICE_DUPLICATE_KEY'],
    ['deferrable unique', 'UNIQUE (id) DEFERRABLE', 'SLUICE_DUPLICATE_KEY'],
    ['deferred unique', 'UNIQUE (id) DEFERRABLE INITIALLY DEFERRED', 'SLUICE_DUPLICATE_KEY'],
    ['exclusion', `EXCLUDE USING btree (id WITH =)`, 'SLUICE_CONSTRAINT'],
    ['exclusion of ranges', `EXCLUDE USING gist (int4range(id, id + 1) WITH &&)`, 'SLUICE_CONSTRAINT'],
    ['deferred exclusion', `EXCLUDE USING btree (id WITH =) DEFERRABLE INITIALLY DEFERRED`, 'SLUICE_CONSTRAINT'],
  ]

  it.each(kinds)('in one extent: %s', async (name, constraint, code) => {
    const text = 'id,p\n1,a\n2,b\n1,c\n4,d\n'
    const result = await load(text, table(constraint))
    expect(result.error).toMatchObject({ code, message: expect.stringMatching(/\(1\)|\[1,2\)/) as string })
    expect(result.at).toBe(name.startsWith('deferred') ? '' : placeOf(text, 3))
    expect(result.rows).toBe(0)
  })

  it.each(kinds)(
    'across two lanes, within seconds: %s',
    async (name, constraint) => {
      const text = manyRows('id,p', (row) => `${row === ROWS ? 1 : row},${PAD}`)
      const result = await load(text, table(constraint), { concurrency: 2, retryFor: 60_000 })
      expect(['SLUICE_DUPLICATE_KEY', 'SLUICE_CONSTRAINT']).toContain(result.error?.code)
      if (!name.startsWith('deferr')) expect(result.at).toMatch(/^row \d+ \(line \d+, byte \d+\)$/)
      expect(result.rows).toBe(0)
    },
    20_000,
  )
})

describe('a table that refers to itself', () => {
  const TREE = 'CREATE TABLE t (id int PRIMARY KEY, parent int REFERENCES t, p text)'

  it('takes children that come extents before their parents', async () => {
    const text = manyRows('id,parent,p', (row) => `${row},${row === ROWS ? '' : ROWS - (row % 7 === 0 ? 0 : 1)},${PAD}`)
    const result = await load(text.replace(`\n${ROWS - 1},${ROWS - 1},`, `\n${ROWS - 1},${ROWS},`), TREE)
    expect(result).toMatchObject({ status: 'done', rowsWritten: ROWS, rows: ROWS })
  })

  it('refuses a child whose parent never comes, and names what the server says', async () => {
    const text = manyRows('id,parent,p', (row) => `${row},${row === 30_000 ? 999_999 : ''},${PAD}`)
    const result = await load(text, TREE)
    expect(result.error).toMatchObject({
      code: 'SLUICE_CONSTRAINT',
      message: expect.stringContaining('(parent)=(999999)') as string,
    })
    expect(result.rows).toBe(0)
  })
})

describe('a partitioned table', () => {
  it('takes rows of all its partitions', async () => {
    const text = manyRows('id,p', (row) => `${row},${PAD}`)
    const result = await load(
      text,
      `CREATE TABLE t (id int PRIMARY KEY, p text) PARTITION BY HASH (id);
       CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
       CREATE TABLE t2 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1)`,
      { concurrency: 2 },
    )
    expect(result).toMatchObject({ status: 'done', rowsWritten: ROWS, rows: ROWS })
  })
})
