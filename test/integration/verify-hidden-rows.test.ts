import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { copy, verify, type EventListener } from '../../src/index.ts'
import { type LoadPlace, makeLoadPlace } from '../support/load-place.ts'

let place: LoadPlace
beforeAll(async () => {
  place = await makeLoadPlace('postgres15', 'verify_hidden')
})
afterAll(() => place.close())

it('verify tells why rows that policies hide seem to be missing', async () => {
  const role = `verify_${process.pid}`
  const file = place.file('two.csv', 'id,name\n1,Ada\n2,Grace\n')
  await place.table('id int, name text')
  await place.sql(`INSERT INTO t VALUES (1, 'Ada'), (2, 'Grace'); CREATE ROLE ${role} LOGIN PASSWORD 'pw'; GRANT SELECT ON t TO ${role};
    ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON t USING (id = 1)`)
  try {
    const own = `${place.db.url}?table=t`
    const limited = own.replace(/\/\/[^@]*@/, `//${role}:pw@`)
    const compared = async (
      source: string,
      sink: string,
      options = {},
    ): Promise<{ same: boolean; warnings: string[] }> => {
      const warnings: string[] = []
      const onEvent: EventListener = (event) => {
        if (event.kind === 'warning') warnings.push(event.message)
      }
      const { same } = await verify(source, sink, { options, env: {}, stateDir: join(place.folder, 's'), onEvent })
      return { same, warnings }
    }
    const warning = `row-level security of public.t applies to role ${role}: only rows that its policies show are read`
    expect(await compared(file, limited)).toEqual({ same: false, warnings: [warning] })
    expect(await compared(limited, file)).toEqual({ same: false, warnings: [warning] })
    expect(await compared(file, own)).toEqual({ same: true, warnings: [] })
    const [database = ''] = limited.split('?')
    const query = { query: 'WITH all_of AS (SELECT * FROM t) SELECT * FROM all_of;' }
    const ofQuery = warning.replace('public.t', 'what the query reads')
    expect(await compared(file, database, query)).toEqual({ same: false, warnings: [ofQuery] })
    expect(await compared(database, file, query)).toEqual({ same: false, warnings: [ofQuery] })
    expect(await compared(file, own.replace('?table=t', ''), query)).toEqual({ same: true, warnings: [] })
    // A view reads with its owner's rights, from whom no policy hides anything here.
    await place.sql(`CREATE VIEW seen AS SELECT * FROM t; GRANT SELECT ON seen TO ${role}`)
    expect(await compared(file, limited.replace('=t', '=seen'))).toEqual({ same: true, warnings: [] })
    await place.sql(`ALTER VIEW seen SET (security_invoker)`)
    const ofView = warning.replace('public.t', 'what public.seen reads')
    expect(await compared(file, limited.replace('=t', '=seen'))).toEqual({ same: false, warnings: [ofView] })
    expect(await compared(limited.replace('=t', '=seen'), file)).toEqual({ same: false, warnings: [ofView] })
  } finally {
    await place.sql(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  }
})

it('verify takes json for the same whatever its line ends are, which JSON Lines has no room for', async () => {
  await place.sql(String.raw`DROP TABLE IF EXISTS t CASCADE; CREATE TABLE t (id int, j json, l json[]);
    INSERT INTO t VALUES (1, E'{"a":\n1, "b":" x  "} \t', ARRAY[E'{\r\n  "a":1}', ' 2']::json[]), (2, NULL, NULL), (3, '[]', '{NULL}'), (4, '4', '{}')`)
  const table = `${place.db.url}?table=t`
  const o = { options: {}, env: {}, stateDir: join(place.folder, 's') }
  for (const name of ['j.jsonl', 'j.parquet', 'j.csv']) {
    const file = join(place.folder, name)
    expect((await copy({ source: table, sink: file, ...o })).status, name).toBe('done')
    expect((await verify(table, file, o)).same, name).toBe(true)
  }
  const file = join(place.folder, 'j.jsonl')
  for (const change of [`j = '{"a": 1, "b":" x "}'`, `l = ARRAY['{ "a":1}']::json[]`]) {
    await place.sql(`UPDATE t SET ${change} WHERE id = 1`)
    expect((await verify(table, file, o)).same, change).toBe(false)
  }
})

it('verify needs no more than a temporary table, where transactions are read-only unless they say otherwise', async () => {
  const file = place.file('one.csv', 'id,name\n1,Ada\n')
  await place.sql(`DROP TABLE IF EXISTS t CASCADE; CREATE TABLE t (id int, name text); INSERT INTO t VALUES (1, 'Ada')`)
  await place.sql(
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`,
  )
  const o = { options: {}, env: {}, stateDir: join(place.folder, 's') }
  expect((await verify(`${place.db.url}?table=t`, file, o)).same).toBe(true)
  expect((await verify(file, `${place.db.url}?table=t`, o)).same).toBe(true)
})
