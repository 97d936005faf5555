// The second experiment: an export whose parts go up while later ones are made, on a link where sending alone takes three times as long as producing.
import { join } from 'node:path'
import { makePeople } from './people.mjs'
import { bars, race, ratio, sh, spread, table } from './race.mjs'
import { scratch, sluice, startLink, startPostgres, startS3 } from './services.mjs'

/** Smallest that S3 takes; 208,888,910 bytes of CSV are 40 of them. */
const PART = '5MiB'

export async function run({ rounds }) {
  const folder = scratch()
  const pg = await startPostgres(folder)
  const s3 = await startS3(folder)
  const file = join(folder, 'people.csv')
  const bytes = makePeople({ rows: 10_000_000, path: file })
  sh(`chmod a+r ${file}`)
  pg.psql('CREATE TABLE people (id int, name varchar(20), age int)')
  pg.psql(`COPY people FROM '${file}' (FORMAT csv, HEADER)`)
  pg.psql('VACUUM (ANALYZE, FREEZE) people')
  const out = join(folder, 's3/bench/out.csv')
  const way = (name, parallelism) => ({
    name,
    before: () => sh(`rm -f ${out}`),
    command: `${sluice()} copy '${pg.url}?table=people' s3://bench/out.csv --part-size ${PART} --parallelism ${parallelism} --state-dir ${folder}/state --new-job -q`,
    check: () => {
      const lines = Number(sh(`wc -l < ${out}`))
      if (lines !== 10_000_001) throw new Error(`${lines} lines`)
    },
  })
  const [free] = race({ rounds: 3, env: s3.env, ways: [way('without the link', 3)] })
  const producing = spread(free.runs.map((one) => one.wall)).median
  const rate = Math.round(bytes / (3 * producing))
  const port = await startLink(s3.port, rate)
  const env = { ...s3.env, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}` }
  const ways = [0, 1, 2, 3].map((parallelism) => way(`--parallelism ${parallelism}`, parallelism))
  const results = race({ rounds, env, ways })
  const wall = spread(results[3].runs.map((one) => one.wall)).median
  const list = [
    {
      what: '0 against 3',
      value: ratio(results, '--parallelism 0', '--parallelism 3'),
      bar: 3.5,
      atLeast: true,
    },
    { what: '3 against the ideal (producing alone)', value: wall / producing, bar: 1.15 },
  ]
  return `${Math.ceil(bytes / (5 * 1024 * 1024))} parts of ${PART}, ${(rate / 1e6).toFixed(1)} MB/s a connection: sending alone takes three times as long as producing (${producing.toFixed(2)} s without the link).\n\n${table([free, ...results])}\n\n${bars(list)}`
}
