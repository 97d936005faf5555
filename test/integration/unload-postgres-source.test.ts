import { connect as netConnect, createServer, type AddressInfo, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresConnector } from '../../src/connectors/postgres/connector.ts'
import type { Batch, BatchForm, CsvBatch, RowsBatch } from '../../src/core/batch.ts'
import { rowCount } from '../../src/core/batch.ts'
import type { SluiceError } from '../../src/core/errors.ts'
import type { CopyOptions } from '../../src/core/options.ts'
import type { Source } from '../../src/core/ports.ts'
import { freshDatabase, type PostgresAddress, psql, sharedServices, startPostgres15 } from '../support/services.ts'

type Server = 'postgres15' | 'postgres18'
const SERVERS: readonly Server[] = ['postgres15', 'postgres18']
const signal = new AbortController().signal
const databases = {} as Record<Server, PostgresAddress & { drop(): Promise<void> }>
const opened: Source[] = []

beforeAll(async () => {
  for (const server of SERVERS) {
    databases[server] = await freshDatabase(sharedServices()[server], 'unload_source')
    await psql(databases[server], BIG)
  }
})
afterAll(async () => {
  await Promise.all(opened.map((source) => source.close()))
  for (const server of SERVERS) await databases[server].drop()
})

/** A tenth of each block is used, so that few rows make two ranges of ctids; and a table that takes a while to read. */
const BIG = `CREATE TABLE ranged (id int, pad text) WITH (fillfactor = 10);
  INSERT INTO ranged SELECT i, repeat('x', 40) FROM generate_series(1, 80000) i;
  CREATE TABLE slow (id int, pad text); INSERT INTO slow SELECT i, repeat('y', 200) FROM generate_series(1, 60000) i;
  ANALYZE ranged; ANALYZE slow`

interface Opened {
  readonly options?: CopyOptions
  readonly url?: string
  readonly retryForMs?: number
  readonly onRetry?: () => void
  readonly onWarning?: (message: string) => void
}

async function open(server: Server, table: string | null, o: Opened = {}): Promise<Source> {
  const base = o.url ?? databases[server].url
  const source = await postgresConnector.openSource?.({
    url: table === null ? base : `${base}${base.includes('?') ? '&' : '?'}table=${encodeURIComponent(table)}`,
    options: o.options ?? {},
    env: {},
    spoolDir: '/nonexistent',
    reporter: { warn: o.onWarning ?? (() => undefined), retried: o.onRetry ?? (() => undefined) },
    signal,
    retryForMs: o.retryForMs ?? 10_000,
  })
  if (source === undefined) throw new Error('no source')
  opened.push(source)
  return source
}

const query = (server: Server, sql: string, options: CopyOptions = {}): Promise<Source> =>
  open(server, null, { options: { ...options, query: sql } })

async function batches(source: Source, form: BatchForm): Promise<Batch[]> {
  const all: Batch[] = []
  for (const partition of await source.plan({ signal }))
    for await (const batch of source.read(partition, { form, signal })) all.push(batch)
  return all
}

async function csv(source: Source): Promise<string> {
  const all = (await batches(source, 'csv')) as CsvBatch[]
  return Buffer.concat(all.map((batch) => batch.bytes)).toString()
}

async function rows(source: Source): Promise<RowsBatch['rows']> {
  return ((await batches(source, 'rows')) as RowsBatch[]).flatMap((batch) => batch.rows)
}

async function failure(work: Promise<unknown>): Promise<SluiceError> {
  return work.then(
    () => {
      throw new Error('it went well')
    },
    (error: unknown) => error as SluiceError,
  )
}

const count = (all: readonly Batch[]): number => all.reduce((sum, batch) => sum + rowCount(batch), 0)

describe.each(SERVERS)('%s', (server) => {
  const sql = (text: string): Promise<string> => psql(databases[server], text)

  it('reads ranges of ctids side by side, each row once', async () => {
    const source = await open(server, 'ranged')
    const plan = await source.plan({ signal })
    expect(plan.map((partition) => partition.id)).toEqual(['public.ranged/0001', 'public.ranged/0002'])
    expect(plan.reduce((sum, partition) => sum + (partition.rows ?? 0), 0)).toBe(80_000)
    const seen = new Set<string>()
    await Promise.all(
      plan.map(async (partition) => {
        for await (const batch of source.read(partition, { form: 'rows', signal }))
          if (batch.form === 'rows') for (const [id] of batch.rows) seen.add(JSON.stringify(id))
      }),
    )
    expect(seen.size).toBe(80_000)
    expect(source).toMatchObject({ unordered: true, restarts: true, replayable: true })
  })

  it('shows one snapshot: nothing that is changed, deleted or added meanwhile, and no TRUNCATE comes between', async () => {
    await sql('CREATE TABLE moving AS SELECT i AS id FROM generate_series(1, 20000) i')
    const source = await open(server, 'moving')
    const plan = await source.plan({ signal })
    await sql(
      'UPDATE moving SET id = -id WHERE id <= 100; DELETE FROM moving WHERE id > 19000; INSERT INTO moving VALUES (0)',
    )
    await expect(sql("SET lock_timeout = '100ms'; TRUNCATE moving")).rejects.toThrow(/lock/)
    const text = await csv(source)
    expect(plan).toHaveLength(1)
    expect(text.trim().split('\n').map(Number)).toEqual(Array.from({ length: 20_000 }, (_, i) => i + 1))
  })

  it('reads an empty table, one row, and names that want quotes', async () => {
    await sql(
      'CREATE SCHEMA "S.1"; CREATE TABLE "S.1"."Mixed ""Case""" ("Col,1" text, "select" int); CREATE TABLE nothing (a int)',
    )
    const source = await open(server, '"S.1"."Mixed ""Case"""')
    expect(await batches(source, 'csv')).toEqual([])
    await sql(`INSERT INTO "S.1"."Mixed ""Case""" VALUES ('x', 1)`)
    const later = await open(server, '"S.1"."Mixed ""Case"""')
    expect((await later.describe({ signal })).columns.map((column) => column.name)).toEqual(['Col,1', 'select'])
    expect(await csv(later)).toBe('x,1\n')
    expect((await later.plan({ signal }))[0]?.id).toBe('"S.1"."Mixed ""Case"""/0001')
    expect(await rows(await open(server, 'nothing'))).toEqual([])
  })

  it('reads partitions, children, views and materialized views, each row once', async () => {
    await sql(`CREATE TABLE parts (k int, v text) PARTITION BY LIST (k);
      CREATE TABLE parts1 (v text, k int); ALTER TABLE parts ATTACH PARTITION parts1 FOR VALUES IN (1);
      CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2) PARTITION BY LIST (v);
      CREATE TABLE parts2a PARTITION OF parts2 FOR VALUES IN ('a'); INSERT INTO parts VALUES (1, 'x'), (2, 'a');
      CREATE TABLE above (k int); CREATE TABLE left_child () INHERITS (above); CREATE TABLE right_child () INHERITS (above);
      CREATE TABLE grandchild () INHERITS (left_child, right_child);
      INSERT INTO above VALUES (1); INSERT INTO left_child VALUES (2); INSERT INTO grandchild VALUES (3);
      CREATE VIEW seen AS SELECT k * 10 AS ten FROM above ORDER BY k DESC; CREATE MATERIALIZED VIEW kept AS SELECT * FROM seen`)
    const parts = await open(server, 'parts')
    expect((await parts.plan({ signal })).map((p) => p.id)).toEqual(['public.parts1/0001', 'public.parts2a/0001'])
    expect(await csv(parts)).toBe('1,x\n2,a\n')
    expect((await csv(await open(server, 'above'))).trim().split('\n').toSorted()).toEqual(['1', '2', '3'])
    const view = await open(server, 'seen')
    expect(await csv(view)).toBe('30\n20\n10\n')
    expect(view.unordered).toBe(false)
    expect((await csv(await open(server, 'kept'))).trim().split('\n')).toHaveLength(3)
  })

  it('lets a DROP of a leaf that is still to be read wait', async () => {
    await sql(`CREATE TABLE dropped (k int) PARTITION BY LIST (k); CREATE TABLE dropped1 PARTITION OF dropped FOR VALUES IN (1);
      CREATE TABLE dropped2 PARTITION OF dropped FOR VALUES IN (2); INSERT INTO dropped VALUES (1), (2)`)
    const source = await open(server, 'dropped')
    const [first, second] = await source.plan({ signal })
    if (first === undefined || second === undefined) throw new Error('no partitions')
    for await (const batch of source.read(first, { form: 'csv', signal })) expect(rowCount(batch)).toBe(1)
    const dropping = sql('DROP TABLE dropped2')
    await expect
      .poll(() =>
        sql(
          'SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())',
        ),
      )
      .toBe('1')
    for await (const batch of source.read(second, { form: 'csv', signal })) expect(rowCount(batch)).toBe(1)
    await source.close()
    await dropping
  })

  it('gives values in types, exact', async () => {
    const values = `SELECT true AS b, 9007199254740993::bigint AS i, 1.10::numeric AS n, 'NaN'::float8 AS nan, '-Infinity'::float4 AS inf, 1e20::float8 AS f,
      E'{"a":\\n 1}'::json AS j, '[1, 2]'::jsonb AS jb, ARRAY[1.50, NULL]::numeric[] AS na, ARRAY['a,b', 'NULL', E'q"\\\\'] AS ta, '{{1,2},{3,4}}'::int[] AS ii,
      '\\x00ff'::bytea AS y, '2020-01-02 03:04:05.123'::timestamp AS ts, '2020-01-02 03:04:05+02'::timestamptz AS tz, '2020-01-02'::date AS d,
      'infinity'::timestamp AS never, E'tab\\there\\nline \\\\ back' AS t, '' AS e, NULL::int AS nothing, '\\N' AS n2, ARRAY[true] AS ba, '{}'::int[] AS none`
    const source = await query(server, values)
    const [row] = await rows(source)
    const { columns } = await source.describe({ signal })
    const number = (text: string): object => ({ kind: 'number', text })
    const json = (text: string): object => ({ kind: 'json', text })
    expect(Object.fromEntries(columns.map((column, i) => [column.name, row?.[i]]))).toEqual({
      b: true, i: number('9007199254740993'), n: number('1.10'), nan: 'NaN', inf: '-Infinity', f: number('1e+20'), j: json('{"a": 1}'), jb: json('[1, 2]'),
      na: json('[1.50,null]'), ta: json('["a,b","NULL","q\\"\\\\"]'), ii: json('[[1,2],[3,4]]'), y: new Uint8Array([0, 255]), ts: '2020-01-02T03:04:05.123',
      tz: '2020-01-02T01:04:05Z', d: '2020-01-02', never: 'infinity', t: 'tab\there\nline \\ back', e: '', nothing: null, n2: '\\N', ba: json('[true]'),
      none: json('[]'),
    }) // prettier-ignore
    expect(columns.find((column) => column.name === 'na')).toMatchObject({ type: 'list', nativeType: 'numeric[]' })
    expect(columns.find((column) => column.name === 'i')).toMatchObject({ type: 'integer', nativeType: 'bigint' })
  })

  it('gives columns, in batches of as many rows as were asked for, from any row on', async () => {
    const text = `SELECT i AS id, nullif('n' || i, 'n2') AS name, i * 1.5 AS free FROM generate_series(1, 1000) i`
    const warnings: string[] = []
    const source = await open(server, null, {
      options: { query: text, rowGroupRows: 300 },
      onWarning: (message) => warnings.push(message),
    })
    const { columns } = await source.describe({ signal })
    expect(columns.map((column) => column.layout)).toEqual([{ kind: 'int32' }, { kind: 'utf8' }, { kind: 'utf8' }])
    expect(warnings).toEqual([])
    const [partition] = await source.plan({ signal })
    if (partition === undefined) throw new Error('no partition')
    const ids = async (from?: Batch['end'], until?: Batch['end']): Promise<{ ids: number[]; ends: Batch['end'][] }> => {
      const found: { ids: number[]; ends: Batch['end'][] } = { ids: [], ends: [] }
      for await (const batch of source.read(partition, { form: 'columns', signal, from, until })) {
        if (batch.form !== 'columns') continue
        const [id] = batch.vectors
        if (id !== undefined) found.ids.push(...new Int32Array(id.values.buffer, id.values.byteOffset, batch.rows))
        found.ends.push(batch.end)
      }
      return found
    }
    const all = await ids()
    expect(all.ids).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1))
    expect(all.ends.map((end) => end.row)).toEqual([300, 600, 900, 1000])
    expect((await ids(all.ends[0], all.ends[1])).ids).toEqual(all.ids.slice(300, 600))
    expect((await ids(all.ends[2])).ids).toEqual(all.ids.slice(900))
    expect((await ids(all.ends[3])).ids).toEqual([])
    expect(warnings).toEqual([expect.stringContaining('free')])
    expect(await batches(await query(server, 'SELECT 1 AS a WHERE false'), 'columns')).toEqual([])
  })

  it('promises what CSV batches must hold', async () => {
    const all = await batches(await query(server, `SELECT E'\\\\.' UNION ALL SELECT NULL UNION ALL SELECT ''`), 'csv')
    expect(Buffer.from((all[0] as CsvBatch).bytes).toString()).toBe('"\\."\n\n""\n')
    expect(all).toMatchObject([{ rows: 3, quoted: true }])
    const plain = await batches(await query(server, `SELECT 1, 'a,b'`, { delimiter: '\t' }), 'csv')
    expect(plain).toMatchObject([{ quoted: false, csv: { delimiter: '\t', quote: '"', escape: '"' } }])
    expect(Buffer.from((plain[0] as CsvBatch).bytes).toString()).toBe('1\ta,b\n')
  })

  it("counts the bytes of a table's rows as read, and its pages as done", async () => {
    await sql(`CREATE TABLE paged AS SELECT i AS id, repeat('x', i % 100) AS v FROM generate_series(1, 5000) i`)
    const source = await open(server, 'paged')
    const [partition] = await source.plan({ signal })
    const text = await csv(source)
    expect(source.bytesRead()).toBe(Buffer.byteLength(text))
    expect(source.bytesDone?.()).toBe(partition?.bytes)
    expect(partition?.bytes).toBeGreaterThan(source.bytesRead())
  })

  it('reads 1,600 columns, a value of 50 MB, and a long one between short ones', async () => {
    const names = Array.from({ length: 1600 }, (_, i) => `c${i}`)
    await sql(
      `CREATE TABLE wide (${names.map((name) => `${name} bool`).join(', ')}); INSERT INTO wide (c0, c1599) VALUES (true, false)`,
    )
    expect(await csv(await open(server, 'wide'))).toBe(`t${','.repeat(1599)}f\n`)
    const huge = (await batches(await query(server, `SELECT 1 AS id, repeat('z', 50000000) AS v`), 'csv')) as CsvBatch[]
    expect(huge.map((batch) => batch.bytes.byteLength)).toEqual([50_000_003])
    const mixed = await query(
      server,
      `SELECT i, repeat('m', CASE WHEN i % 50 = 0 THEN 300000 ELSE i END) FROM generate_series(1, 200) i`,
    )
    const text = await csv(mixed)
    expect(text).toBe(
      Array.from({ length: 200 }, (_, i) => `${i + 1},${'m'.repeat((i + 1) % 50 === 0 ? 300_000 : i + 1)}\n`).join(''),
    )
  })

  it.each([
    ['a semicolon and comments', "/* a /* nested */ one; */ SELECT ';' AS s -- and; this\n ; -- the end", ';\n'],
    ['dollar quotes and escapes', "SELECT $x$;$$'$x$ || E'\\';' || \";\" FROM (SELECT '!' AS \";\") q;", ";$$'';!\n"],
    ['VALUES', 'VALUES (1), (2)', '1\n2\n'],
    ['WITH', 'WITH a AS (SELECT 3) TABLE a', '3\n'],
    ['two columns of one name', 'SELECT 1 AS a, 2 AS a', '1,2\n'],
  ])('a query with %s', async (_, text, expected) => {
    expect(await csv(await query(server, text))).toBe(expected)
  })

  it.each([
    ['a syntax error', 'SELECT 1\nFORM t', 'SLUICE_SQL', /line 2, column \d+.*42601/],
    ['a table that is missing', 'SELECT * FROM nonesuch', 'SLUICE_NOT_FOUND', /nonesuch/],
    ['an INSERT', 'INSERT INTO slow VALUES (1) RETURNING id', 'SLUICE_USAGE', /no SELECT/],
    ['a writing WITH', 'WITH d AS (DELETE FROM slow RETURNING id) SELECT * FROM d', 'SLUICE_USAGE', /no SELECT/],
    ['a SHOW', 'SHOW work_mem', 'SLUICE_USAGE', /no SELECT/],
    ['DDL', 'CREATE TABLE made (a int)', 'SLUICE_USAGE', /no SELECT/],
    ['a parameter', 'SELECT $1::int', 'SLUICE_SQL', /parameter/],
    ['what breaks out of parentheses', 'SELECT 1) TO STDOUT; DROP TABLE slow; --', 'SLUICE_USAGE', /more than one/],
  ])('refuses before any row a query with %s', async (_, text, code, message) => {
    const error = await failure((async () => (await query(server, text)).describe({ signal }))())
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string })
    expect(error.exitClass(false)).toBe('usage')
  })

  it('refuses two columns of one name where they are keys', async () => {
    const error = await failure(rows(await query(server, 'SELECT 1 AS a, 2 AS a')))
    expect(error).toMatchObject({ code: 'SLUICE_USAGE', where: { column: 'a' } })
  })

  it('names the nearest table, and the GRANT that is missing', async () => {
    const missing = await failure((await open(server, 'slwo')).describe({ signal }))
    expect(missing).toMatchObject({ code: 'SLUICE_NOT_FOUND', hint: expect.stringContaining('slow') as string })
    const role = `unload_${server}_${process.pid}`
    await sql(`CREATE ROLE ${role} LOGIN PASSWORD 'pw'; CREATE TABLE half (a int, b int); INSERT INTO half VALUES (7, 8); GRANT SELECT (a) ON half TO ${role};
      CREATE TABLE shown (a int) PARTITION BY LIST (a); CREATE TABLE shown1 PARTITION OF shown FOR VALUES IN (1, 2); INSERT INTO shown VALUES (1), (2);
      ALTER TABLE shown ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON shown USING (a = 1); GRANT SELECT ON shown TO ${role}`)
    try {
      const url = databases[server].url.replace(/\/\/[^@]*@/, `//${role}:pw@`)
      const denied = await failure((await open(server, 'half', { url })).describe({ signal }))
      expect(denied).toMatchObject({
        code: 'SLUICE_ACCESS_DENIED',
        message: expect.stringContaining('column b of') as string,
        hint: expect.stringMatching(/GRANT SELECT \("b"\) ON .*half.*--select a/) as string,
      })
      expect(await csv(await open(server, 'half', { url, options: { select: ['a'] } }))).toBe('7\n')
      const error = await failure(
        (await open(server, null, { url, options: { query: 'TABLE half' } })).describe({ signal }),
      )
      expect(error).toMatchObject({
        code: 'SLUICE_ACCESS_DENIED',
        hint: expect.stringMatching(/GRANT SELECT/) as string,
      })
      const warnings: string[] = []
      const onWarning = (message: string): void => void warnings.push(message)
      expect(await csv(await open(server, 'shown', { url, onWarning }))).toBe('1\n')
      expect(warnings).toEqual([expect.stringMatching(/^row-level security of .*shown applies to role unload_/)])
    } finally {
      await Promise.all(opened.splice(0).map((source) => source.close()))
      await sql(`DROP TABLE half, shown; DROP OWNED BY ${role}; DROP ROLE ${role}`)
    }
  })

  it('goes on where it was when the backend of a reader is ended, under the same snapshot', async () => {
    let retries = 0
    const source = await open(server, 'slow', { onRetry: () => (retries += 1) })
    const [partition] = await source.plan({ signal })
    const ids: string[] = []
    let ended = false
    if (partition !== undefined)
      for await (const batch of source.read(partition, { form: 'rows', signal })) {
        if (batch.form === 'rows') for (const [id] of batch.rows) ids.push(JSON.stringify(id))
        if (ended) continue
        ended = true
        await sql(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND datname = current_database()`,
        )
        await sql('UPDATE slow SET id = -id')
      }
    expect(retries).toBeGreaterThanOrEqual(1)
    expect(ids).toHaveLength(60_000)
    expect(new Set(ids).size).toBe(60_000)
    expect(ids.some((id) => id.includes('-'))).toBe(false)
    await sql('UPDATE slow SET id = -id')
  })

  it.each<BatchForm>(['csv', 'columns'])(
    'does not join rows of two runs of a query that gives others each time: %s',
    async (form) => {
      const limits = { rowGroupRows: 5000 }
      const source = await query(
        server,
        `SELECT i, random(), repeat('r', 500) FROM generate_series(1, 50000) i`,
        limits,
      )
      const [partition] = await source.plan({ signal })
      if (partition === undefined) throw new Error('no partition')
      let ended = false
      const reading = failure(
        (async () => {
          for await (const batch of source.read(partition, { form, signal })) {
            if (ended || rowCount(batch) === 0) continue
            ended = true
            await sql(
              `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%random%' AND datname = current_database()`,
            )
          }
        })(),
      )
      expect(await reading).toMatchObject({ code: 'SLUICE_SOURCE_CHANGED' })
    },
  )

  it('tells a cancelled statement with its SQLSTATE', async () => {
    const source = await query(server, 'SELECT pg_sleep(60)')
    const reading = failure(csv(source))
    await expect
      .poll(() =>
        sql(
          `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT pg_sleep%' AND datname = current_database()`,
        ),
      )
      .toBe('t')
    expect(await reading).toMatchObject({ code: 'SLUICE_SERVER', message: expect.stringContaining('57014') as string })
  })

  it('tells an error of the server in mid-COPY with its SQLSTATE', async () => {
    const source = await query(server, 'SELECT 1 / (100000 - i) FROM generate_series(1, 200000) i')
    expect(await failure(csv(source))).toMatchObject({
      code: 'SLUICE_SQL',
      message: expect.stringContaining('22012') as string,
    })
  })

  it('says that the snapshot is lost where the connection that holds it is', async () => {
    const source = await open(server, 'slow')
    const [partition] = await source.plan({ signal })
    await sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%' AND application_name = 'sluice' AND datname = current_database()`,
    )
    if (partition === undefined) throw new Error('no partition')
    const reading = (async () => {
      for await (const batch of source.read(partition, { form: 'csv', signal })) void batch
    })()
    const error = await failure(reading)
    expect(error).toMatchObject({ code: 'SLUICE_SERVER_GONE', retryable: false })
    expect(error.exitClass(true)).toBe('resumable')
  })

  it('is stopped by its signal while the server computes, and leaves no session', async () => {
    const controller = new AbortController()
    const source = await query(server, 'SELECT pg_sleep(60)')
    const [partition] = await source.plan({ signal })
    if (partition === undefined) throw new Error('no partition')
    const reading = failure(
      (async () => {
        for await (const batch of source.read(partition, { form: 'csv', signal: controller.signal })) void batch
      })(),
    )
    const sessions = (): Promise<string> =>
      sql(
        `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT pg_sleep%' AND datname = current_database()`,
      )
    await expect.poll(sessions).toBe('1')
    const reason = new Error('enough')
    controller.abort(reason)
    expect(await reading).toBe(reason)
    await source.close()
    await expect.poll(sessions, { timeout: 10_000 }).toBe('0')
  })
})

it('reads over TLS, and waits with the socket while nobody takes batches', async () => {
  const server = await startPostgres15({ tls: true, tlsOnly: true })
  try {
    await server.psql(`CREATE TABLE t AS SELECT i AS id, repeat('x', 500) AS pad FROM generate_series(1, 40000) i`)
    const source = await open('postgres15', 't', {
      url: `${server.url}?sslmode=verify-full&sslrootcert=${server.caFile}`,
    })
    expect(count(await batches(source, 'csv'))).toBe(40_000)
    await source.close()
  } finally {
    await server.stop()
  }
})

it('takes no more from the server than a few blocks ahead, and goes on after a cut', async () => {
  const { host, port } = databases.postgres15
  const sockets: Socket[] = []
  let received = 0
  const proxy = createServer((near) => {
    const far = netConnect(port, host)
    sockets.push(near)
    far.on('data', (chunk) => (received += chunk.length))
    near.pipe(far).pipe(near)
    for (const [one, other] of [[near, far], [far, near]] as const)
      one.on('error', () => undefined).on('close', () => other.destroy()) // prettier-ignore
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const url = databases.postgres15.url.replace(/@[^/]*\//, `@127.0.0.1:${(proxy.address() as AddressInfo).port}/`)
  try {
    const sql = `SELECT i, repeat('b', 1000) FROM generate_series(1, 60000) i`
    const source = await open('postgres15', null, { url, options: { query: sql } })
    const [partition] = await source.plan({ signal })
    if (partition === undefined) throw new Error('no partition')
    let [total, cut] = [0, false]
    for await (const batch of source.read(partition, { form: 'csv', signal })) {
      total += rowCount(batch)
      if (cut) continue
      cut = true
      let before = -1
      // Until nothing comes any more: the kernel's buffers are full, too.
      while (before !== received) {
        before = received
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      expect(received).toBeLessThan(30_000_000)
      sockets.at(-1)?.resetAndDestroy()
    }
    expect(total).toBe(60_000)
    await source.close()
  } finally {
    proxy.close()
  }
})
