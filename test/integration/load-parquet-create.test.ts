import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { copy, verify } from '../../src/index.ts'
import { type LoadPlace, makeLoadPlace } from '../support/load-place.ts'

let place: LoadPlace
beforeAll(async () => {
  place = await makeLoadPlace('postgres15', 'parquet_create')
})
afterAll(() => place.close())

const TYPES = [
  ...['boolean', 'smallint', 'integer', 'bigint', 'real', 'double precision', 'text', 'date', 'time without time zone'],
  ...[
    'timestamp without time zone',
    'timestamp with time zone',
    'numeric(10,2)',
    'uuid',
    'jsonb',
    'bytea',
    'integer[]',
    'text[]',
  ],
  ...['numeric(5,1)[]', 'bytea[]', 'timestamp with time zone[]', 'jsonb[]'],
]
const VALUES = `true, -1, 2, 3, 1.5, -0.1, 'x', '2020-02-29', '12:34:56.789', '2020-01-01 00:00:00.000001', '2020-01-01 00:00:00+02', 12345678.90,
  '00000000-0000-0000-0000-00000000000a', '{"a": [1, null]}', '\\x00ff', '{1,NULL}', '{"a,b",NULL,""}', '{1.5}', '{"\\\\x5c00"}', '{"2020-01-01 00:00:00+02"}', '{"{\\"a\\": 1}","null",NULL}'`

it('a table is created from a Parquet file with types that hold its values: what was unloaded comes back as it was', async () => {
  await place.sql(
    `CREATE TABLE of (${TYPES.map((type, i) => `c${i} ${type}`).join(', ')}); INSERT INTO of VALUES (${VALUES}); INSERT INTO of DEFAULT VALUES`,
  )
  const o = { options: {}, env: {}, stateDir: join(place.folder, 'state') }
  const file = join(place.folder, 'of.parquet')
  const made = `${place.db.url}?table=made`
  expect((await copy({ source: `${place.db.url}?table=of`, sink: file, ...o })).status).toBe('done')
  const loaded = await copy({ ...o, source: file, sink: made, options: { create: true } })
  expect(loaded.error).toBeUndefined()
  const types = await place.sql(
    "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0 ORDER BY attnum",
  )
  expect(types.trim().split('\n')).toEqual(TYPES)
  expect(await place.sql('TABLE made EXCEPT ALL TABLE of')).toBe('')
  expect((await verify(file, made, o)).same).toBe(true)
})
