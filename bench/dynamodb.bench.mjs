// CSV → DynamoDB: 1,770,724 rows into nullddb, which answers at once, so that what is timed is the client; beside ddbimport.
// Both are built from source by who runs the bench: NULLDDB and DDBIMPORT name the programs (docs: README.md here).
import { join } from 'node:path'
import { ENV, loads, startNullddb, TYPED } from './nullddb.mjs'
import { makePostcodes } from './postcodes.mjs'
import { bars, race, ratio, spread, table } from './race.mjs'
import { scratch } from './services.mjs'

const ROWS = Number(process.env.BENCH_ROWS ?? 1_770_724)
/** Puts a second, and how long an answer takes, of the server that has a limit. */
const [WCU, DELAY] = [40_000, '10ms']
/** --write-units that a load takes twenty seconds with: each item is one unit. */
const UNITS = Math.ceil(ROWS / 20)

export async function run({ rounds }) {
  const folder = scratch()
  const file = join(folder, 'postcodes.csv')
  const bytes = makePostcodes({ rows: ROWS, path: file })
  const quick = await startNullddb()
  const limited = await startNullddb(['-wcu', String(WCU), '-delay', DELAY])
  // Held up by nothing but the way: what threads are for.
  const far = await startNullddb(['-delay', DELAY])
  const refusing = await startNullddb(['-unprocessed', '0.2'])
  const { own, counted, before } = loads(folder, ROWS)
  const requests = []
  const ways = [
    { name: 'sluice', command: own(quick, TYPED), ...counted(quick) },
    {
      name: 'sluice, --select and --replace',
      command: own(
        quick,
        `${TYPED} --select postcode,latitude,longitude --replace 'postcode=/ //' --skip-if-empty latitude,longitude`,
      ),
      ...counted(quick),
    },
    ...(process.env.DDBIMPORT === undefined
      ? []
      : [
          {
            name: 'ddbimport',
            command: `DDB_ENDPOINT=${quick.endpoint} ${process.env.DDBIMPORT} -tableRegion eu-west-1 -tableName Postcodes -inputFile ${file} -numericFields latitude,longitude > /dev/null 2>&1`,
            ...counted(quick),
          },
        ]),
    { name: `sluice, ${DELAY} an answer, --workers 0`, command: own(far, `${TYPED} --workers 0`), ...counted(far) },
    { name: `sluice, ${DELAY} an answer, --workers 2`, command: own(far, `${TYPED} --workers 2`), ...counted(far) },
    { name: `sluice, ${WCU} puts/s, ${DELAY} an answer`, command: own(limited, TYPED), ...counted(limited) },
    { name: 'sluice, --write-units', command: own(quick, `--types string --write-units ${UNITS}`), ...counted(quick) },
    {
      name: 'sluice, a fifth unprocessed',
      command: own(refusing, TYPED),
      before: counted(refusing).before,
      check: () => {
        counted(refusing).check()
        requests.push(refusing.counts().requests - before().requests)
      },
    },
  ]
  const results = race({ rounds, env: ENV, ways })
  const runs = (name) => results.find((one) => one.name === name).runs
  const median = (name, key) => spread(runs(name).map((one) => one[key])).median
  const list = [
    ...(process.env.DDBIMPORT === undefined
      ? []
      : [
          { what: 'wall against ddbimport', value: ratio(results, 'sluice', 'ddbimport'), bar: 0.5 },
          { what: 'CPU against ddbimport', value: ratio(results, 'sluice', 'ddbimport', (one) => one.cpu), bar: 0.4 },
        ]),
    { what: 'CPU an item', value: (median('sluice', 'cpu') / ROWS) * 1e6, bar: 7, unit: 'µs' },
    {
      what: 'CPU an item, --select and --replace',
      value: (median('sluice, --select and --replace', 'cpu') / ROWS) * 1e6,
      bar: 7,
      unit: 'µs',
    },
    { what: 'memory', value: spread(runs('sluice').map((one) => one.rss)).max, bar: 200, unit: 'MiB' },
    {
      what: 'memory, --select and --replace',
      value: spread(runs('sluice, --select and --replace').map((one) => one.rss)).max,
      bar: 200,
      unit: 'MiB',
    },
    {
      what: `against rows / ${WCU} a second`,
      value: median(`sluice, ${WCU} puts/s, ${DELAY} an answer`, 'wall') / (ROWS / WCU),
      bar: 1.07,
    },
    // Within 5 % on both sides; the wall has the program's start, some 0.2 s, and a second's units may be saved by then.
    {
      what: '--write-units: seconds against units',
      value: median('sluice, --write-units', 'wall') / (ROWS / UNITS),
      bar: 1.05,
    },
    {
      what: '--write-units: seconds against units, at least',
      value: median('sluice, --write-units', 'wall') / (ROWS / UNITS),
      bar: 0.95,
      atLeast: true,
    },
    {
      what: 'requests against those needed, a fifth unprocessed',
      value: spread(requests).median / (ROWS / 25),
      bar: 1.35,
    },
  ]
  return `${ROWS} rows, ${bytes} bytes; each run is checked by the server's count of puts.\n\n${table(results)}\n\n${bars(list)}`
}
