import { afterAll } from 'vitest'
import { postgresConnector } from '../../src/connectors/postgres/connector.ts'
import type { BatchForm } from '../../src/core/batch.ts'
import type { CopyOptions } from '../../src/core/options.ts'
import type { Source } from '../../src/core/ports.ts'
import { freshDatabase, psql, sharedServices } from '../support/services.ts'
import { describeSource, rowText, type SourceUnderTest } from './source-suite.ts'

const COLUMNS = ['id', 'name', 'note']
/** Rows of the leaves of the partitioned table `t`: one has none. */
const LEAVES = [
  { from: 0, to: 6000 },
  { from: 6000, to: 6001 },
  { from: 6001, to: 15_000 },
]
const EMPTY_LEAF = 1

/** Rows of many lengths, some quoted, some over two lines, some NULL, some empty; as the SQL below makes them. */
function rowsOf(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => {
    const id = from + i
    const name = id % 11 === 0 ? null : id % 13 === 0 ? '' : `näme ${'x'.repeat(id % 40)}`
    return rowText([String(id), name, id % 17 === 0 ? `two\nlines, "quoted" ${id}` : `note ${id}`])
  })
}

const FILL = `INSERT INTO t SELECT i, CASE WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN '' ELSE 'näme ' || repeat('x', i % 40) END,
  CASE WHEN i % 17 = 0 THEN E'two\\nlines, "quoted" ' || i ELSE 'note ' || i END FROM generate_series(0, 14999) i WHERE i <> 6000`

type Server = 'postgres15' | 'postgres18'
const databases = new Map<Server, Promise<Awaited<ReturnType<typeof freshDatabase>>>>()

async function makeDatabase(server: Server): Promise<Awaited<ReturnType<typeof freshDatabase>>> {
  const db = await freshDatabase(sharedServices()[server], 'conformance_source')
  const leaves = LEAVES.map(
    ({ from, to }, i) => `CREATE TABLE t${i} PARTITION OF t FOR VALUES FROM (${from}) TO (${to}); `,
  )
  await psql(db, `CREATE TABLE t (id int, name text, note text) PARTITION BY RANGE (id); ${leaves.join('')}${FILL}`)
  // In order of the id: an INSERT fills gaps of earlier blocks.
  for (const i of LEAVES.keys()) await psql(db, `CREATE UNIQUE INDEX u${i} ON t${i} (id); CLUSTER t${i} USING u${i}`)
  await psql(db, 'ANALYZE t')
  return db
}

afterAll(async () => {
  for (const made of databases.values()) await (await made).drop()
})

interface Kind {
  readonly server: Server
  readonly form: BatchForm
  readonly query?: boolean
}

async function subjectOf({ server, form, query = false }: Kind): Promise<SourceUnderTest> {
  const made = databases.get(server) ?? makeDatabase(server)
  databases.set(server, made)
  const { url } = await made
  const options: CopyOptions = query ? { query: 'SELECT * FROM t WHERE id < 6000 ORDER BY id; -- all of it' } : {}
  const tables = LEAVES.map(({ from, to }, i) => (i === EMPTY_LEAF ? [] : rowsOf(from, to)))
  return {
    form,
    columns: COLUMNS,
    expected: query ? [rowsOf(0, 6000)] : tables,
    open: async (): Promise<Source> => {
      const source = await postgresConnector.openSource?.({
        url: query ? url : `${url}?table=t`,
        options,
        env: {},
        spoolDir: '/nonexistent',
        reporter: { warn: () => undefined, retried: () => undefined },
        signal: new AbortController().signal,
        retryForMs: 10_000,
      })
      if (source === undefined) throw new Error('no source')
      return source
    },
    change: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

const KINDS: readonly Kind[] = [
  { server: 'postgres15', form: 'csv' },
  { server: 'postgres15', form: 'rows', query: true },
  { server: 'postgres18', form: 'rows' },
  { server: 'postgres18', form: 'csv', query: true },
]
for (const kind of KINDS) {
  const name = `${kind.query === true ? 'a query' : 'a table'} of ${kind.server} as ${kind.form}`
  describeSource(name, () => subjectOf(kind), { unpinned: true })
}
