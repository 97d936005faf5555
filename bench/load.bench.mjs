// S3 → PostgreSQL: 10,000,000 rows into an empty table, beside psql, DuckDB, server-side COPYs (the limit) and s5cmd with \copy.
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePeople } from './people.mjs'
import { bars, race, ratio, sh, spread, table } from './race.mjs'
import { peerFolder, s5cmd, scratch, sluice, startPostgres, startS3 } from './services.mjs'

const ROWS = Number(process.env.BENCH_ROWS ?? 10_000_000)

export async function run({ rounds }) {
  const folder = scratch()
  const pg = await startPostgres(folder)
  const s3 = await startS3(folder)
  const file = join(folder, 's3/bench/people.csv')
  const bytes = makePeople({ rows: ROWS, path: file })
  sh(
    `head -n ${ROWS / 2 + 1} ${file} | tail -n +2 > ${folder}/half1.csv; tail -n +${ROWS / 2 + 2} ${file} > ${folder}/half2.csv; chmod -R a+rX ${folder}/half*.csv`,
  )
  pg.psql('CREATE TABLE people (id int, name varchar(20), age int)')
  const before = () => {
    pg.psql('TRUNCATE people')
    pg.psql('CHECKPOINT')
  }
  // Beside the count, the sum of a column: a row twice and another not at all would show.
  const check = () => {
    const found = pg.psql('SELECT count(*), sum(id::bigint) FROM people')
    if (found !== `${ROWS}|${(ROWS * (ROWS + 1)) / 2}`) throw new Error(`the table holds ${found}`)
  }
  const duck = join(folder, 'duck.py')
  writeFileSync(duck, duckScript({ venv: peerFolder(), s3, pg }))
  const table10 = `${pg.url}?table=people`
  const psqlCopy = (path) => `psql -X -q ${pg.url} -c "\\copy people from '${path}' with (format csv, header)"`
  const serverCopy = (half) => `psql -X -q ${pg.url} -c "COPY people FROM '${folder}/half${half}.csv' (FORMAT csv)"`
  const ways = [
    {
      name: 'sluice, S3 → table',
      command: `${sluice()} copy s3://bench/people.csv '${table10}' --state-dir ${folder}/state --new-job -q`,
    },
    { name: 'psql \\copy of a local file', command: psqlCopy(file) },
    { name: 'DuckDB httpfs → postgres', command: `${peerFolder()}/bin/python ${duck}` },
    { name: 'two server-side COPYs (the limit)', command: `${serverCopy(1)} & ${serverCopy(2)}; wait $!; wait` },
    ...(s5cmd() === null
      ? []
      : [
          {
            name: 's5cmd cp, then \\copy',
            command: `${s5cmd()} --endpoint-url ${s3.endpoint} cp s3://bench/people.csv ${folder}/down.csv > /dev/null && ${psqlCopy(`${folder}/down.csv`)}`,
          },
        ]),
  ].map((way) => ({ ...way, before, check }))
  const results = race({ rounds, env: s3.env, ways })
  const own = results[0].runs
  const list = [
    { what: 'wall against psql \\copy', value: ratio(results, ways[0].name, ways[1].name), bar: 0.75 },
    { what: 'wall against DuckDB', value: ratio(results, ways[0].name, ways[2].name), bar: 0.8 },
    { what: 'wall against two server-side COPYs', value: ratio(results, ways[0].name, ways[3].name), bar: 1.25 },
    { what: "sluice's CPU", value: spread(own.map((r) => r.cpu)).median, bar: 1.0, unit: 's' },
    { what: "sluice's memory", value: spread(own.map((r) => r.rss)).max, bar: 200, unit: 'MiB' },
  ]
  return `${ROWS} rows, ${bytes} bytes (${statSync(file).size} in the store), PostgreSQL ${pg.version} (fsync off), versitygw 1.8.0; each run is checked by count and sum.\n\n${table(results)}\n\n${bars(list)}`
}

function duckScript({ venv, s3, pg }) {
  return `
import duckdb, glob
e = glob.glob('${venv}/lib/python3*/site-packages/duckdb_ext/extensions/*/*/')[0]
c = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
c.execute(f"LOAD '{e}httpfs.duckdb_extension'; LOAD '{e}postgres_scanner.duckdb_extension'")
c.execute("CREATE SECRET (TYPE s3, KEY_ID 'bench', SECRET 'benchbench', ENDPOINT '127.0.0.1:${s3.port}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')")
c.execute("ATTACH '${pg.url}' AS pg (TYPE postgres)")
c.execute("INSERT INTO pg.people SELECT * FROM read_csv('s3://bench/people.csv')")
`
}
