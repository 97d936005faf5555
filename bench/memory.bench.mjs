// Peak memory does not grow with the file: the people ten times over.
import { join } from 'node:path'
import { makePeople } from './people.mjs'
import { bars, race, spread, table } from './race.mjs'
import { scratch, sluice, startPostgres, startS3 } from './services.mjs'

export async function run({ rounds }) {
  const folder = scratch()
  const pg = await startPostgres(folder)
  const s3 = await startS3(folder)
  const sizes = [10_000_000, 95_000_000].map((rows) => ({
    rows,
    bytes: makePeople({ rows, path: join(folder, `s3/bench/${rows}.csv`) }),
  }))
  pg.psql('CREATE UNLOGGED TABLE people (id int, name varchar(20), age int)')
  const load = ({ rows, bytes }) => ({
    name: `load of ${(bytes / 1e6).toFixed(0)} MB`,
    before: () => pg.psql('TRUNCATE people'),
    command: `${sluice()} copy s3://bench/${rows}.csv '${pg.url}?table=people' --state-dir ${folder}/state --new-job -q`,
    check: () => {
      const found = pg.psql('SELECT count(*) FROM people')
      if (found !== String(rows)) throw new Error(`the table holds ${found}`)
    },
  })
  const send = ({ rows, bytes }) => ({
    name: `S3 → S3 of ${(bytes / 1e6).toFixed(0)} MB`,
    command: `${sluice()} copy s3://bench/${rows}.csv s3://bench/copy.csv --if-exists overwrite --state-dir ${folder}/state --new-job -q`,
  })
  const ways = [...sizes.map(load), ...sizes.map(send)]
  const results = race({ rounds: Math.min(rounds, 2), env: s3.env, ways })
  const peak = (i) => spread(results[i].runs.map((r) => r.rss)).max
  return `${table(results)}\n\n${bars([
    { what: 'load: memory of the large file against the small one', value: peak(1) / peak(0), bar: 1.1 },
    { what: 'S3 → S3: the same', value: peak(3) / peak(2), bar: 1.1 },
  ])}`
}
