// What the look at values that COPY would alter costs: the people with a numeric(10,2) and a timestamp column more, with it and without.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makePeople } from './people.mjs'
import { bars, race, ratio, table } from './race.mjs'
import { scratch, sluice, startPostgres, startS3 } from './services.mjs'

const ROWS = Number(process.env.BENCH_ROWS ?? 10_000_000)

export async function run({ rounds }) {
  const folder = scratch()
  const pg = await startPostgres(folder)
  const s3 = await startS3(folder)
  const bytes = makePeople({ rows: ROWS, path: join(folder, 's3/bench/wide.csv'), wide: true })
  pg.psql('CREATE TABLE wide (id int, name varchar(20), age int, amount numeric(10,2), seen timestamp)')
  const before = () => {
    pg.psql('TRUNCATE wide')
    pg.psql('CHECKPOINT')
  }
  const check = () => {
    const found = pg.psql('SELECT count(*), sum(id::bigint) FROM wide')
    if (found !== `${ROWS}|${(ROWS * (ROWS + 1)) / 2}`) throw new Error(`the table holds ${found}`)
  }
  const copy = `copy s3://bench/wide.csv '${pg.url}?table=wide' --state-dir ${folder}/state --new-job -q`
  const bare = sluice().replace(/^node /, `node --import ${fileURLToPath(new URL('no-checks.mjs', import.meta.url))} `)
  const ways = [
    { name: 'with the checks', command: `${sluice()} ${copy}`, before, check },
    { name: 'without', command: `${bare} ${copy}`, before, check },
  ]
  const results = race({ rounds, env: s3.env, ways })
  return `${ROWS} rows, ${bytes} bytes.\n\n${table(results)}\n\n${bars([{ what: 'wall with the checks', value: ratio(results, ways[0].name, ways[1].name), bar: 1.1 }])}`
}
