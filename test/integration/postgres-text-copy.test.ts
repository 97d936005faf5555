import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect, type PgConnection } from '../../src/connectors/postgres/connection/connection.ts'
import { parsePostgresUrl } from '../../src/connectors/postgres/connection/url.ts'
import { CopyIn } from '../../src/connectors/postgres/load/copy-in.ts'
import { type CopyFormat, copyStatement, readsAsText } from '../../src/connectors/postgres/load/copy-statement.ts'
import { freshDatabase, sharedServices } from '../support/services.ts'

const FIELDS = [
  '',
  ' ',
  'a',
  'NULL',
  'null',
  'é',
  '漢字',
  '\u0001',
  '\u0008',
  "it's",
  '.',
  'x y ',
  '\u2028',
  '\u00a0',
  '{a}',
  '#',
  '--',
]

describe.each([15, 18] as const)('COPY of PostgreSQL %i, as text and as CSV', (version) => {
  let connection: PgConnection
  let drop: (() => Promise<void>) | undefined

  beforeAll(async () => {
    const services = sharedServices()
    const database = await freshDatabase(version === 15 ? services.postgres15 : services.postgres18, 'textcopy')
    drop = database.drop
    connection = await connect(parsePostgresUrl(database.url, {}), {
      signal: new AbortController().signal,
      applicationName: 'test',
    })
    await connection.query('CREATE TABLE one (x text); CREATE TABLE three (a text, b text, c text)')
  })

  afterAll(async () => {
    await connection?.close()
    await drop?.()
  })

  /** The rows, or what the server objects to, in which line of the COPY. */
  async function loaded(bytes: Buffer, table: string, o: { delimiter: string; format: CopyFormat }): Promise<unknown> {
    const shape = { delimiter: o.delimiter, quote: '"', escape: '"' }
    await connection.query(`TRUNCATE ${table}`)
    try {
      const statement = copyStatement({ table, columns: table === 'one' ? ['x'] : ['a', 'b', 'c'] }, shape, o.format)
      const copy = await CopyIn.start(connection.client, statement, 'copying')
      await copy.write(bytes)
      await copy.end()
    } catch (thrown) {
      const { cause } = thrown as { cause: { message: string; where: string } }
      return [cause.message, cause.where]
    }
    return connection.query(`SELECT array_agg(t ORDER BY ctid)::text AS all FROM ${table} t`)
  }

  it('is the same, where readsAsText says so', async () => {
    const field = fc.array(fc.constantFrom(...FIELDS), { maxLength: 3 }).map((parts) => parts.join(''))
    const record = fc.oneof(
      { weight: 9, arbitrary: fc.array(field, { minLength: 3, maxLength: 3 }) },
      { weight: 1, arbitrary: fc.array(field, { minLength: 1, maxLength: 5 }) },
    )
    const file = fc.record({
      records: fc.array(record, { maxLength: 6 }),
      delimiter: fc.constantFrom(',', '\t', ';', '|', '~', ':'),
      end: fc.constantFrom('\n', '\r\n'),
      lastEnd: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(file, async ({ records, delimiter, end, lastEnd }) => {
        const text = records.map((fields) => fields.join(delimiter)).join(end) + (lastEnd ? end : '')
        const bytes = Buffer.from(text)
        for (const table of ['one', 'three']) {
          expect(readsAsText(bytes, { delimiter, quote: '"', escape: '"' }, true)).toBe(true)
          expect(await loaded(bytes, table, { delimiter, format: 'text' })).toEqual(
            await loaded(bytes, table, { delimiter, format: 'csv' }),
          )
        }
      }),
      { numRuns: 80 },
    )
  })
})
