import type { Connection } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ColumnsBuilder, planColumns, type ColumnsPlan } from '../../src/connectors/postgres/columns/binary-columns.ts'
import { connect, type PgConnection } from '../../src/connectors/postgres/connection/connection.ts'
import { postgresConnector } from '../../src/connectors/postgres/connector.ts'
import { describeTable } from '../../src/connectors/postgres/table/table.ts'
import { parsePostgresUrl } from '../../src/connectors/postgres/connection/url.ts'
import { SluiceError } from '../../src/core/errors.ts'
import { freshDatabase, type PostgresAddress, sharedServices } from '../support/services.ts'
import { vectorValues } from '../support/vector-values.ts'

const signal = new AbortController().signal

/** Payloads of a binary COPY, as they come. */
function copyOut(connection: PgConnection, sql: string, onPayload: (bytes: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let failure: unknown = null
    const query = {
      submit: (wire: Connection): void => wire.query(sql),
      handleCopyData: ({ chunk }: { chunk: Buffer }): void => {
        if (failure !== null) return
        try {
          onPayload(chunk)
        } catch (error) {
          failure = error
        }
      },
      handleError: reject,
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => (failure === null ? resolve() : reject(failure as Error)),
    }
    connection.client.query(query as never)
  })
}

describe.each(['postgres15', 'postgres18'] as const)('types of %s as columns', (server) => {
  let db: PostgresAddress & { drop(): Promise<void> }
  let connection: PgConnection
  beforeAll(async () => {
    db = await freshDatabase(sharedServices()[server], 'unload_types')
    connection = await connect(parsePostgresUrl(db.url, {}), { signal, applicationName: 'sluice test' })
    await connection.query(`SET TimeZone = 'UTC'`)
  })
  afterAll(async () => {
    await connection.close()
    await db.drop()
  })

  type PlanWish = { onSpecial?: 'error' | 'null' | 'text'; numeric?: string }
  interface Read {
    readonly plan: ColumnsPlan
    readonly values: Readonly<Record<string, unknown[]>>
    readonly specials: ReadonlyMap<string, number>
    readonly warnings: readonly string[]
  }

  async function readTable(table: string, o: PlanWish = {}, order = ''): Promise<Read> {
    const { columns } = await describeTable(connection, {
      schema: null,
      table: { name: table, literal: true },
    })
    const warnings: string[] = []
    const specials = new Map<string, number>()
    const plan = planColumns(columns, { ...o, warn: (message) => warnings.push(message) })
    const builder = new ColumnsBuilder(plan, { rows: 700, bytes: 1 << 20 })
    const values: Record<string, unknown[]> = Object.fromEntries(plan.columns.map(({ name }) => [name, []]))
    const take = (): void => {
      const { vectors, specials: counts } = builder.take()
      for (const [name, count] of counts) specials.set(name, (specials.get(name) ?? 0) + count)
      for (const [i, vector] of vectors.entries()) values[plan.columns[i]?.name ?? '']?.push(...vectorValues(vector))
    }
    const sql = `COPY (SELECT ${plan.select.join(', ')} FROM ${table} ${order}) TO STDOUT (FORMAT binary)`
    await copyOut(connection, sql, (bytes) => {
      builder.append(bytes, 0, bytes.length)
      if (builder.full) take()
    })
    expect(builder.ended).toBe(true)
    take()
    return { plan, values, specials, warnings }
  }

  async function make(table: string, ddl: string, inserts: string): Promise<void> {
    await connection.query(`DROP TABLE IF EXISTS ${table} CASCADE`)
    await connection.query(`CREATE TABLE ${table} (${ddl})`)
    await connection.query(`INSERT INTO ${table} ${inserts}`)
  }

  async function failure(run: Promise<unknown>): Promise<SluiceError> {
    const error: unknown = await run.then(
      () => null,
      (thrown: unknown) => thrown,
    )
    if (error instanceof SluiceError) return error
    throw new Error('no SluiceError', { cause: error })
  }

  /** A type, SQL values, and what they come out as; NULL is added to each. */
  it.each<readonly [string, readonly string[], readonly unknown[]]>([
    ['smallint', ['-32768', '32767', '0'], [-32768n, 32767n, 0n]],
    ['integer', ['-2147483648', '2147483647'], [-(2n ** 31n), 2n ** 31n - 1n]],
    ['bigint', ["'-9223372036854775808'", '9223372036854775807'], [-(2n ** 63n), 2n ** 63n - 1n]],
    ['real', ['1.5', "'NaN'", "'-Infinity'"], [1.5, NaN, -Infinity]],
    ['double precision', ['0.1', "'-0'", "'Infinity'", '5e-324'], [0.1, -0, Infinity, 5e-324]],
    ['boolean', ['true', 'false'], [true, false]],
    ['text', ["''", "'naïve 🚀'", "repeat('x', 100000)"], ['', 'naïve 🚀', 'x'.repeat(100_000)]],
    ['varchar(5)', ["'a  '"], ['a  ']],
    ['char(5)', ["'ab'"], ['ab   ']],
    ['"char"', ["'q'"], ['q']],
    ['name', ["'pg_class'"], ['pg_class']],
    ['oid', ['4294967295'], ['4294967295']],
    ['xml', ["'<a>b</a>'"], ['<a>b</a>']],
    ['date', ["'0001-01-01'", "'1969-12-31'", "'9999-12-31'"], [-719_162n, -1n, 2_932_896n]],
    ['time', ["'00:00'", "'23:59:59.999999'"], [0n, 86_399_999_999n]],
    [
      'timestamp',
      ["'0001-01-01'", "'1970-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"],
      [-62_135_596_800_000_000n, 1n, 253_402_300_799_999_999n],
    ],
    ['timestamptz', ["'1970-01-01 02:00+02'", "'1969-12-31 23:59:59.5+00'"], [0n, -500_000n]],
    ['timetz', ["'10:00+02'"], ['10:00:00+02']],
    ['interval', ["'1 day 02:00'"], ['1 day 02:00:00']],
    ['numeric(10,2)', ['12345678.9', '-0.01', '0', '100'], [1_234_567_890n, -1n, 0n, 10_000n]],
    ['numeric(38,10)', [`'${'9'.repeat(28)}.0000000001'`], [BigInt(`${'9'.repeat(28)}0000000001`)]],
    ['numeric(2,-3)', ['12345'], [12_000n]],
    ['numeric(3,5)', ['0.00123'], [123n]],
    ['numeric', ['1.10', "'NaN'", '1e40'], ['1.10', 'NaN', `1${'0'.repeat(40)}`]],
    ['uuid', ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"], ['a0eebc999c0b4ef8bb6d6bb9bd380a11']],
    ['bytea', ["'\\x00ff10'", "''"], ['00ff10', '']],
    ['json', [`'{"a": 1 , "a":2}'`], ['{"a": 1 , "a":2}']],
    ['jsonb', [`'{"b":[1,null]}'`], ['{"b": [1, null]}']],
    ['inet', ["'10.0.0.1'", "'10.0.0.0/8'", "'::1'"], ['10.0.0.1', '10.0.0.0/8', '::1']],
    ['cidr', ["'10.0.0.0/8'"], ['10.0.0.0/8']],
    ['int4range', ["'[1,5)'"], ['[1,5)']],
    ['point', ["'(1,2)'"], ['(1,2)']],
    ['bit(3)', ["'101'"], ['101']],
    ['tsvector', ["'b a'"], ["'a' 'b'"]],
    ['int[]', ["'{1,NULL,3}'", "'{}'", "'[1:2]={7,8}'"], [[1n, null, 3n], [], [7n, 8n]]],
    ['text[]', [`'{"a,b",NULL,"NULL",""}'`], [['a,b', null, 'NULL', '']]],
    ['char(3)[]', ["'{a,b}'"], [['a  ', 'b  ']]],
    ['boolean[]', ["'{t,f,NULL}'"], [[true, false, null]]],
    ['numeric(6,3)[]', ["'{1.5,-2,NULL}'"], [[1500n, -2000n, null]]],
    ['timestamptz[]', ["'{1970-01-01 00:00:01+00}'"], [[1_000_000n]]],
    ['uuid[]', ["'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'"], [['a0eebc999c0b4ef8bb6d6bb9bd380a11']]],
    ['bytea[]', [`ARRAY['\\x00'::bytea, NULL]`], [['00', null]]],
    ['jsonb[]', [`ARRAY['{"a":1}'::jsonb]`], [['{"a": 1}']]],
    ['inet[]', ["'{10.0.0.1,NULL}'"], [['10.0.0.1', null]]],
    ['interval[]', ["'{1 day,02:00}'"], [['1 day', '02:00:00']]],
    ['box[]', ["'{(1,1),(0,0);(2,2),(1,1)}'"], [['(1,1),(0,0)', '(2,2),(1,1)']]],
    ['int2vector', ["'1 2'"], ['1 2']],
    ['oidvector', ["'1 2'"], ['1 2']],
  ])('%s', async (type, sql, expected) => {
    const rows = [...sql, 'NULL'].map((value, i) => `(${i}, ${value})`).join(', ')
    // VALUES of its own for each row: a literal's type comes from the column.
    await make('one', `i int, v ${type}`, `VALUES ${rows}`)
    expect((await readTable('one', {}, 'ORDER BY i')).values).toEqual({
      i: [...sql.keys(), sql.length].map(BigInt),
      v: [...expected, null],
    })
  })

  it('domains are their base types; enums and composite types their text', async () => {
    await connection.query(`CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, b text)`)
    await connection.query(`CREATE DOMAIN price AS numeric(8,2) NOT NULL; CREATE DOMAIN fine AS price CHECK (VALUE > 0);
      CREATE DOMAIN days AS date[]; CREATE DOMAIN code AS char(3)`)
    await make(
      'own',
      'f fine, fs fine[], d days, c code, m mood, ms mood[], p pair, ps pair[]',
      `VALUES (1.5, '{2,3.25}', '{1970-01-02}', 'x', 'ok', '{sad,NULL}', ROW(1, 'a,b'), ARRAY[ROW(2, NULL)::pair])`,
    )
    const { values, plan } = await readTable('own')
    expect(values).toEqual({
      f: [150n],
      fs: [[200n, 325n]],
      d: [[1n]],
      c: ['x  '],
      m: ['ok'],
      ms: [['sad', null]],
      p: ['(1,"a,b")'],
      ps: [['(2,)']],
    })
    expect(plan.columns.map((one) => one.nullable)).toEqual([false, true, true, true, true, true, true, true])
  })

  it('thousands of rows agree with what the server computes', async () => {
    await make(
      'many',
      'i int, d date, t time, ts timestamp, tz timestamptz, n numeric(30,12), small numeric(12,4), b bigint, s text',
      `SELECT i, CASE WHEN i % 7 > 0 THEN date '0001-01-01' + (random() * 3652058)::int END, time '00:00' + random() * interval '86399 s',
         timestamp '2000-01-01' + (random() - 0.5) * interval '3900 years', timestamptz '2000-01-01' + (random() - 0.5) * interval '60 years',
         ((random() - 0.5) * 1e12)::numeric * (random() * 1e6)::numeric, ((random() - 0.5) * 1e8)::numeric, ((random() - 0.5) * 1e18)::bigint,
         CASE WHEN i % 5 > 0 THEN repeat(md5(i::text), i % 4) END
         FROM generate_series(1, 3000) i`,
    )
    const { values } = await readTable('many', {}, 'ORDER BY i')
    const rows = await connection.query<
      Record<string, string | null>
    >(`SELECT i::text, (d - date '1970-01-01')::text AS d,
        trunc(extract(epoch FROM t) * 1000000)::text AS t, trunc(extract(epoch FROM ts) * 1000000)::text AS ts,
        trunc(extract(epoch FROM tz) * 1000000)::text AS tz, trunc(n * 1000000000000)::text AS n, trunc(small * 10000)::text AS small,
        b::text, s FROM many ORDER BY many.i`)
    for (const name of Object.keys(values)) {
      const expected = rows.map((row) => row[name] ?? null)
      expect(values[name]?.map((value) => (typeof value === 'bigint' ? String(value) : value))).toEqual(expected)
    }
  })

  it('special values: an error with row and column, NULL and a count, or text', async () => {
    const specials = `VALUES (1, date '2026-01-31', timestamp '2026-01-31 10:00', time '10:00', 1.5::numeric(4,1), '{1}'::int[]),
      (2, 'infinity', '-infinity', '24:00', 'NaN', '{{1,2},{3,4}}'), (3, '0044-03-15 BC', '10000-01-01', '00:00', 0, '{}'),
      (4, '2026-01-31', NULL, NULL, NULL, '[0:1]={1,2}')`
    await make('special', 'i int NOT NULL, d date NOT NULL, ts timestamp, t time, n numeric(4,1), a int[]', specials)
    const error = await failure(readTable('special', {}, 'ORDER BY i'))
    expect(error).toMatchObject({ code: 'SLUICE_VALUE', where: { row: 2, column: 'd' } })
    expect(error.message).toBe('infinity is no date of the years 1 to 9999')

    const asNull = await readTable('special', { onSpecial: 'null' }, 'ORDER BY i')
    expect(asNull.values).toEqual({
      i: [1n, 2n, 3n, 4n],
      d: [20_484n, null, null, 20_484n],
      ts: [1_769_853_600_000_000n, null, null, null],
      t: [36_000_000_000n, null, 0n, null],
      n: [15n, null, 0n, null],
      a: [[1n], null, [], null],
    })
    expect(Object.fromEntries(asNull.specials)).toEqual({ d: 2, ts: 2, t: 1, n: 1, a: 2 })
    expect(asNull.plan.columns.map((one) => one.nullable)).toEqual([false, true, true, true, true, true])

    expect((await readTable('special', { onSpecial: 'text' }, 'ORDER BY i')).values).toEqual({
      i: [1n, 2n, 3n, 4n],
      d: ['2026-01-31', 'infinity', '0044-03-15 BC', '2026-01-31'],
      ts: ['2026-01-31 10:00:00', '-infinity', '10000-01-01 00:00:00', null],
      t: ['10:00:00', '24:00:00', '00:00:00', null],
      n: ['1.5', 'NaN', '0.0', null],
      a: ['{1}', '{{1,2},{3,4}}', '{}', '[0:1]={1,2}'],
    })
  })

  it('an array that counts from another number than 1 is special, with its row', async () => {
    await make('counted', 'a text[], v int2vector', `VALUES ('{x}', '1 2'), ('[5:5]={y}', '3')`)
    const error = await failure(readTable('counted'))
    expect(error).toMatchObject({ code: 'SLUICE_VALUE', where: { row: 2, column: 'a' } })
    expect(error.message).toBe('an array whose first index is 5 is no list')
    expect((await readTable('counted', { onSpecial: 'null' })).values).toEqual({ a: [['x'], null], v: ['1 2', '3'] })
  })

  it('the source tells once, at its end, what became NULL, and what numerics became text', async () => {
    await make('told', 'd date, n numeric, a int[]', `VALUES ('infinity', 1, '{{1}}'), ('-infinity', 2.5, '{1}')`)
    const warnings: string[] = []
    const source = await postgresConnector.openSource?.({
      url: db.url,
      options: { onSpecial: 'null', query: 'SELECT d, n, n::numeric(6,2) AS small, a FROM told ORDER BY n;' },
      env: {},
      spoolDir: '/nonexistent',
      reporter: { warn: (message) => warnings.push(message), retried: () => undefined },
      signal,
      retryForMs: 1_000,
    })
    const batches: unknown[][] = []
    for (const partition of (await source?.plan({ signal })) ?? [])
      for await (const batch of source?.read(partition, { signal, form: 'columns' }) ?? [])
        if (batch.form === 'columns') batches.push(batch.vectors.map(vectorValues))
    await source?.close()
    expect(batches).toEqual([
      [
        [null, null],
        ['1', '2.5'],
        [100n, 250n],
        [null, [1n]],
      ],
    ])
    expect(warnings).toEqual([
      expect.stringContaining('numeric column n has'),
      '3 special values became NULL (--on-special null): d (2), a (1)',
    ])
  })

  it('--numeric makes decimals of numerics without precision, exactly or not at all', async () => {
    await make('loose', 'n numeric', `VALUES (1.5), (-12345678901234567890.123456), (NULL)`)
    expect(await readTable('loose', { numeric: 'decimal(38,6)' })).toMatchObject({
      values: { n: [1_500_000n, -12345678901234567890123456n, null] },
      warnings: [],
    })
    const error = await failure(readTable('loose', { numeric: 'decimal(38,5)' }))
    expect(error).toMatchObject({ code: 'SLUICE_VALUE', where: { row: 2, column: 'n' } })
    expect(error.message).toBe('-12345678901234567890.123456 is no decimal(38,5)')
    expect((await readTable('loose')).warnings).toEqual([expect.stringContaining('numeric column n has')])
  })

  it('an empty table, one without columns, and 1,600 columns', async () => {
    await make('none', 'i int, a text[]', 'SELECT 1 WHERE false')
    expect((await readTable('none')).values).toEqual({ i: [], a: [] })
    await connection.query('CREATE TABLE bare (); INSERT INTO bare DEFAULT VALUES')
    expect((await readTable('bare')).values).toEqual({})
    const names = Array.from({ length: 1600 }, (_, i) => `c${i}`)
    await make('wide', names.map((name) => `${name} smallint`).join(', '), `(c7, c1599) VALUES (7, 1599), (NULL, NULL)`)
    const { values } = await readTable('wide')
    expect([values.c0, values.c7, values.c1599]).toEqual([
      [null, null],
      [7n, null],
      [1599n, null],
    ])
  })
})
