import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect, type PgConnection } from '../../src/connectors/postgres/connection/connection.ts'
import { CopyIn } from '../../src/connectors/postgres/load/copy-in.ts'
import { describeTable, type TableColumn } from '../../src/connectors/postgres/table/table.ts'
import { parsePostgresUrl } from '../../src/connectors/postgres/connection/url.ts'
import { createValueChecker } from '../../src/connectors/postgres/values/value-checks.ts'
import { freshDatabase, sharedServices } from '../support/services.ts'

/*
 * What the checks refuse is compared with what COPY does. For each type and value: where COPY takes the value, `altered` asks the
 * server itself, by a wider type that holds all of it, whether what is stored means the same; the check has to say so too, and nothing else.
 */

const shape = { delimiter: ',', quote: '"', escape: '"' }

interface TypeCase {
  readonly type: string
  /** SQL: true where `a` (stored) does not mean what `raw` (text) says. `try_text(sql)` is null where the server refuses. */
  readonly altered: string
  readonly values: readonly string[]
}

const sample = (arbitrary: fc.Arbitrary<string>, count: number): string[] => [
  ...new Set(fc.sample(arbitrary, { numRuns: count, seed: 42 })),
]
const join = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> => fc.tuple(...parts).map((all) => all.join(''))
const pick = (...texts: string[]): fc.Arbitrary<string> => fc.constantFrom(...texts)

const digits = (most: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...'0012345678900'), minLength: 0, maxLength: most })
const numbers = sample(
  join(
    pick('', '-', '+', ' '),
    digits(6),
    pick('', '.', '.'),
    digits(5),
    pick('', '', '', 'e1', 'e-2', 'E+3', 'e-12', ' '),
  ),
  400,
).concat('NaN', 'Infinity', '1.10', '1.105', '0.000', '1e-400', '.5', '5.', '1_000', '0x1F', '١')

const days = pick(
  '2020-01-31',
  '20200131',
  '1999-Jan-08',
  'Jan 8, 1999',
  '8 January 1999',
  '2020/1/31',
  '1999.008',
  'J2451187',
  'J2451187.5',
  '0044-03-15 BC',
  '99-01-08',
  'Mon 2020-01-06',
  '12020-01-01',
  '',
)
const clocks = pick(
  '',
  '10:11',
  '10:11:12',
  '00:00:00',
  '00:00',
  '23:59:60',
  '24:00:00',
  '101112',
  '1011',
  '04:05 PM',
  '12:00 AM',
  '10:11.5',
  'T10:11:12',
  't00:00:00',
  '00:00:60',
  '000000',
  'allballs',
)
const fractions = pick('', '', '.5', '.120000', '.123456', '.1234567', '.1234560', '.000', '.9999999', '.0000000', '.')
const zones = pick(
  '',
  '',
  '',
  'Z',
  '+02',
  '-05:30',
  ' +0200',
  ' UTC',
  ' EST',
  ' America/New_York',
  ' GMT+3',
  '-07:30:15',
  ' zulu',
  ' PST',
)
const times = sample(join(days, pick(' ', ' ', 'T', '  ', ' at '), clocks, fractions, zones), 500).concat(
  'now', 'today', 'tomorrow 10:00', 'yesterday', 'epoch', 'infinity', '-infinity', 'epoch 10:00', '2020-01-01', '10:00:00', '10:00:00.1234567',
  '2020-01-01 10:00:00.500', ' 2020-01-01 ', '2020-01-01T00:00:00.000Z', '2020-01-01 00:00:00.0000001', '040506', '04:05:06.789-8', '2020-001', 'y2020m01d02', '2020-01-01_10:00:00',
) // prettier-ignore

const blanks = sample(
  join(pick('', ' '), fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' '), maxLength: 6 }), pick('', ' ', '   ')),
  300,
)
const intervals = sample(
  join(
    pick('', '1 year ', '1.5 years ', '1.33 years ', '2 mons ', '1.5 mons ', '0.123 mons ', '1-2 '),
    pick('', '3 days ', '0.5 day ', '2 weeks ', '1.3 weeks ', '0.0000001 day '),
    pick(
      '',
      '4 hours ',
      '1.5 hours ',
      '04:05:06',
      '04:05',
      '04:05:06.789',
      '1:2:3.1234567',
      '5 minutes 6 seconds',
      '6.5 sec',
      '100 ms',
      '1234.5 us',
      '7',
      '7.25',
    ),
    pick('', '', ' ago'),
  ),
  500,
).concat('P1Y2M3DT4H5M6S', 'P1Y', 'PT1.5H', 'PT0.1234567S', 'P1.5Y', 'P0.33Y', '@ 1 minute', '1 2:03:04', '3 4:05', '')

/** True where the text brings a zone of its own: then two settings of TimeZone give one instant. */
const HAS_ZONE = (type: string) =>
  `instant(raw, '${type}', 'Pacific/Kiritimati') = instant(raw, '${type}', 'Pacific/Pago_Pago') AND raw !~ 'epoch|infinity'`
const RELATIVE = `raw ~* '(now|today|tomorrow|yesterday)'`
const WORD_AND_MORE = `(raw ~* '(epoch|infinity)' AND raw !~* '^[-+ ]*(epoch|infinity) *$')`
const SIXTY = `(raw ~ ':60' AND raw !~ '60:') OR raw ~ '(^|[^.\\d])\\d{4}60(\\D|$)'`
/** More digits, not zeros, than microseconds (or the precision) hold. */
const TOO_FINE = (precision: number) => `raw ~ '(:\\d+|(^|[^\\d])(?!1999)\\d{4,6})\\.\\d{${precision}}\\d*[1-9]'`
const timeCase = (type: string, altered: readonly string[]): TypeCase => ({
  type,
  values: times,
  altered: altered.map((one) => `coalesce(${one}, false)`).join(' OR '),
})

const CASES: readonly TypeCase[] = [
  ...['numeric(5,2)', 'numeric(10,0)', 'numeric(4,-2)', 'numeric(3,3)', 'money2'].map((type) => ({
    type,
    values: numbers,
    altered: `try_text(format('SELECT %L::numeric', raw))::numeric <> a::numeric`,
  })),
  { type: 'numeric', values: numbers, altered: 'false' },
  { type: 'double precision', values: numbers, altered: 'false' },
  { type: 'integer', values: numbers, altered: 'false' },
  { type: 'oid', values: numbers.concat('-1', '4294967295', ' 7 ', '-0'), altered: `raw::numeric <> a::text::numeric OR raw ~ '^ *[+-]?0\\d'` },
  { type: 'varchar(3)', values: blanks, altered: `length(raw) > 3` },
  { type: 'char(3)', values: blanks, altered: `length(raw) > 3` },
  { type: 'varchar', values: blanks, altered: 'false' },
  { type: 'text', values: blanks, altered: 'false' },
  { type: 'name', values: blanks.concat('x'.repeat(63), 'x'.repeat(64), 'é'.repeat(32), 'é'.repeat(31)), altered: `raw <> a::text` },
  { type: '"char"', values: ['a', 'ab', '', '1'], altered: `raw <> a::text` },
  timeCase('timestamp', [HAS_ZONE('timestamptz'), TOO_FINE(6), SIXTY, RELATIVE, WORD_AND_MORE]),
  timeCase('timestamp(0)', [HAS_ZONE('timestamptz'), TOO_FINE(0), SIXTY, RELATIVE, WORD_AND_MORE, `raw ~ 'J\\d+\\.5'`]),
  timeCase('timestamptz', [TOO_FINE(6), SIXTY, RELATIVE, WORD_AND_MORE]),
  timeCase('timestamptz(3)', [TOO_FINE(3), SIXTY, RELATIVE, WORD_AND_MORE]),
  timeCase('date', [HAS_ZONE('timestamptz'), `try_text(format('SELECT %L::timestamp', raw))::timestamp <> a::timestamp`, SIXTY, RELATIVE, WORD_AND_MORE, TOO_FINE(6)]),
  timeCase('time', [HAS_ZONE('timetz'), `raw !~ '^\\s*\\d{4,6}(\\.\\d*)?\\s*$' AND try_text(format('SELECT %L::timestamp', raw)) IS NOT NULL`, `raw ~ '^[^:]*\\d{4}-\\d{3}|J\\d'`, TOO_FINE(6), SIXTY, RELATIVE]),
  timeCase('timetz(2)', [`raw !~ '^\\s*\\d{4,6}(\\.\\d*)?\\s*$' AND try_text(format('SELECT %L::timestamp', raw)) IS NOT NULL`, `raw ~ '^[^:]*\\d{4}-\\d{3}|J\\d'`, TOO_FINE(2), SIXTY, RELATIVE]),
  ...['interval', 'interval(2)', 'interval year', 'interval year to month', 'interval day', 'interval day to hour', 'interval minute to second', 'interval second(1)'].map((type) => ({
    type,
    // A bare number's unit is the type's finest field, and m:s may be meant by h:m: the wide type reads both differently.
    values: type.includes(' ') ? intervals.filter((text) => !/7(\.25)?( ago)?$|\b0?4:05\b(?!:)/.test(text)) : intervals,
    altered: `try_text(format('SELECT %L::interval', raw))::interval <> a OR raw ~ '\\.1234567|1\\.33 y|0\\.33Y|1234\\.5 us'`,
  })),
  { type: 'numeric(5,2)[]', values: ['{}', '{1.25,NULL,"3.10"}', '{{1.255},{2}}', '{"1.255"}', '[0:1]={1,2.005}', '{1.2500, 7 }'], altered: `a <> raw::numeric[]` },
  { type: 'varchar(2)[]', values: ['{ab,"a  ","b"}', '{ab  ,c}', '{"a b"}', '{"ab "}'], altered: `a::text[] <> raw::text[]` },
  { type: 'timestamp[]', values: ['{2020-01-01}', '{"2020-01-01 10:00:00+02"}', '{2020-01-01T10:00:00}'], altered: `raw LIKE '%+%'` },
  { type: 'daterange', values: ['[2020-01-01,2020-02-01)', '["2020-01-01 10:00",2020-02-01)', 'empty', '(,2020-01-01]'], altered: `raw LIKE '%:%'` },
  { type: 'tsrange', values: ['[2020-01-01 10:00,2020-02-01)', '["2020-01-01 10:00Z",)', 'empty'], altered: `raw LIKE '%Z%'` },
  { type: 'datemultirange', values: ['{[2020-01-01,2020-02-01)}', '{["2020-01-01 10:00",2020-02-01)}', '{}'], altered: `raw LIKE '%:%'` },
  { type: 'pair', values: ['(a,1.25)', '("a  ",1.25)', '("abcd ",1.25)', '(ab,1.255)', '(,)', '("a,b",2)'], altered: `raw IN ('("abcd ",1.25)', '(ab,1.255)')` },
  { type: 'cents', values: numbers, altered: `try_text(format('SELECT %L::numeric', raw))::numeric <> a::numeric` },
] // prettier-ignore

const SETUP = `
  CREATE DOMAIN cents AS numeric(8,2);
  CREATE DOMAIN money2 AS cents;
  CREATE TYPE pair AS (word varchar(4), amount numeric(5,2));
  CREATE FUNCTION try_text(statement text) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE first text;
  BEGIN
    EXECUTE statement INTO first; RETURN first;
    EXCEPTION WHEN others THEN RETURN NULL;
  END $$;
  CREATE FUNCTION instant(raw text, type text, zone text) RETURNS numeric LANGUAGE plpgsql SET TimeZone = 'UTC' AS $$
  DECLARE seconds numeric;
  BEGIN
    PERFORM set_config('TimeZone', zone, true);
    EXECUTE format('SELECT extract(epoch FROM %L::%s)', raw, type) INTO seconds;
    RETURN seconds;
  EXCEPTION WHEN others THEN RETURN NULL;
  END $$;`

describe.each([15, 18] as const)('on PostgreSQL %i', (version) => {
  let connection: PgConnection
  let drop: () => Promise<void>

  beforeAll(async () => {
    const services = sharedServices()
    const database = await freshDatabase(version === 15 ? services.postgres15 : services.postgres18, 'types')
    drop = database.drop
    connection = await connect(parsePostgresUrl(database.url, {}), {
      signal: new AbortController().signal,
      applicationName: 'test',
    })
    await connection.query(SETUP)
  })

  afterAll(async () => {
    await connection?.close()
    await drop?.()
  })

  /** Loads each value by COPY, under a savepoint; gives those that the server took. */
  async function copyAll(values: readonly string[]): Promise<boolean[]> {
    const taken: boolean[] = []
    await connection.query('BEGIN')
    for (const [index, value] of values.entries()) {
      await connection.query('SAVEPOINT one')
      try {
        const copy = await CopyIn.start(connection.client, 'COPY values_of FROM STDIN WITH (FORMAT csv)', 'copying')
        const quoted = quote(value)
        await copy.write(Buffer.from(`${index},${quoted},${quoted}\n`))
        await copy.end()
        taken.push(true)
      } catch {
        await connection.query('ROLLBACK TO one')
        taken.push(false)
      }
      await connection.query('RELEASE one')
    }
    await connection.query('COMMIT')
    return taken
  }

  it.each(CASES)(
    '$type: refused is what COPY alters, and sure errors are errors',
    async ({ type, values, altered }) => {
      await connection.query('DROP TABLE IF EXISTS values_of')
      await connection.query(`CREATE TABLE values_of (i int, raw text, a ${type})`)
      const table = await describeTable(connection, { schema: null, table: { name: 'values_of', literal: true } })
      const column = table.columns[2] as TableColumn
      const checker = createValueChecker([column], { shape, timeZone: 'UTC' })
      const taken = await copyAll(values)
      const rows = await connection.query<{ i: number; altered: boolean }>(
        `SELECT i, coalesce(${altered}, false) AS altered FROM values_of`,
      )
      const alteredAt = new Map(rows.map((row) => [row.i, row.altered]))
      const wrong: string[] = []
      for (const [index, value] of values.entries()) {
        const refused = checker?.checkRow([value]) ?? null
        const asCsv = (quoted: boolean) =>
          checker?.checkCsv({
            bytes: Buffer.from(`${quoted ? quote(value) : value}\n${'x'.repeat(60)}\n`),
            quoted,
            csv: shape,
          }) ?? null
        const fromCsv = asCsv(true)
        // Text that a bare field can hold has to be judged the same by the fast look.
        const plain = value !== '' && !/[",\n]/.test(value) ? asCsv(false) : fromCsv
        if ((refused === null) !== (fromCsv?.recordIndex !== 0))
          wrong.push(`${value}: as a row and as quoted CSV judged differently`)
        if ((refused === null) !== (plain?.recordIndex !== 0))
          wrong.push(`${value}: as a row and as bare CSV judged differently`)
        if (!taken[index]) continue
        if (alteredAt.get(index) === true && refused === null) wrong.push(`${value}: altered, not refused`)
        if (alteredAt.get(index) !== true && refused !== null)
          wrong.push(`${value}: refused (${refused.reason}), yet stored as it is`)
      }
      expect(wrong).toEqual([])
      expect(taken).toContain(true)
    },
  )
})

function quote(value: string): string {
  return `"${value.replaceAll('"', '""')}"`
}
