// PostgreSQL → Parquet and CSV on S3: 10,000,000 rows, beside DuckDB with its postgres and httpfs extensions, and psql into s5cmd or aws-cli.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePeople } from './people.mjs'
import { bars, race, ratio, sh, spread, table } from './race.mjs'
import { peerFolder, s5cmd, scratch, sluice, startPostgres, startS3 } from './services.mjs'

const ROWS = Number(process.env.BENCH_ROWS ?? 10_000_000)

export async function run({ rounds }) {
  const folder = scratch()
  const pg = await startPostgres(folder, { tls: true })
  const s3 = await startS3(folder)
  const file = join(folder, 'people.csv')
  const bytes = makePeople({ rows: ROWS, path: file })
  sh(`chmod a+r ${file}`)
  pg.psql('CREATE TABLE people (id int, name varchar(20), age int)')
  pg.psql(`COPY people FROM '${file}' (FORMAT csv, HEADER)`)
  pg.psql('VACUUM (ANALYZE, FREEZE) people')
  const expected = pg.psql('SELECT count(*), sum(id::bigint), sum(age::bigint), sum(length(name)) FROM people')
  const python = `${peerFolder()}/bin/python`
  const [duck, judge] = [join(folder, 'duck.py'), join(folder, 'judge.py')]
  writeFileSync(duck, duckScript({ s3, pg }))
  writeFileSync(judge, judgeScript)
  const check = (name) => () => {
    const found = sh(`${python} ${judge} ${folder}/s3/bench/${name}`)
    if (found !== expected) throw new Error(`${name} holds ${found}, the table ${expected}`)
    sh(`rm -f ${folder}/s3/bench/${name}`)
  }
  const own = (name, url = pg.url) =>
    `${sluice()} copy '${url}&table=people' s3://bench/${name} --state-dir ${folder}/state --new-job -q`
  const send =
    s5cmd() === null
      ? `${peerFolder()}/bin/aws s3 cp --quiet - s3://bench/psql.csv`
      : `${s5cmd()} --endpoint-url ${s3.endpoint} pipe s3://bench/psql.csv > /dev/null`
  const tls = pg.url.replace('sslmode=disable', 'sslmode=require')
  const ways = [
    { name: 'sluice → Parquet', command: own('sluice.parquet'), check: check('sluice.parquet') },
    { name: 'DuckDB → Parquet', command: `${python} ${duck}`, check: check('duck.parquet') },
    { name: 'sluice → CSV', command: own('sluice.csv'), check: check('sluice.csv') },
    {
      name: 'psql to a pipe → CSV',
      command: `psql -X -q '${pg.url}' -c 'copy people to stdout (format csv, header)' | ${send}`,
      check: check('psql.csv'),
    },
    { name: 'sluice → Parquet, over TLS', command: own('tls.parquet', tls), check: check('tls.parquet') },
    { name: 'sluice → CSV, over TLS', command: own('tls.csv', tls), check: check('tls.csv') },
  ]
  const results = race({ rounds, env: s3.env, ways })
  const list = [
    { what: '→ Parquet, against DuckDB', value: ratio(results, 'sluice → Parquet', 'DuckDB → Parquet'), bar: 1.05 },
    { what: '→ Parquet, memory', value: spread(results[0].runs.map((r) => r.rss)).max, bar: 450, unit: 'MiB' },
    { what: '→ CSV, against psql', value: ratio(results, 'sluice → CSV', 'psql to a pipe → CSV'), bar: 0.8 },
    {
      what: '→ Parquet, TLS against none',
      value: ratio(results, 'sluice → Parquet, over TLS', 'sluice → Parquet'),
      bar: 1.3,
    },
    { what: '→ CSV, TLS against none', value: ratio(results, 'sluice → CSV, over TLS', 'sluice → CSV'), bar: 1.3 },
  ]
  return `${ROWS} rows (${bytes} bytes as CSV), PostgreSQL ${pg.version}, versitygw 1.8.0; snappy, row groups of 122,880 rows; psql's pipe ends in ${s5cmd() === null ? 'aws-cli' : 's5cmd'}. DuckDB counts and sums each output.\n\n${table(results)}\n\n${bars(list)}`
}

function duckScript({ s3, pg }) {
  return `
import duckdb, glob
e = glob.glob('${peerFolder()}/lib/python3*/site-packages/duckdb_ext/extensions/*/*/')[0]
c = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
c.execute(f"LOAD '{e}httpfs.duckdb_extension'; LOAD '{e}postgres_scanner.duckdb_extension'")
c.execute("CREATE SECRET (TYPE s3, KEY_ID 'bench', SECRET 'benchbench', ENDPOINT '127.0.0.1:${s3.port}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')")
c.execute("ATTACH '${pg.url}' AS pg (TYPE postgres, READ_ONLY)")
c.execute("COPY (SELECT * FROM pg.people) TO 's3://bench/duck.parquet' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 122880)")
`
}

const judgeScript = `
import duckdb, sys
row = duckdb.sql(f"SELECT count(*), sum(id::bigint), sum(age::bigint), sum(length(name)) FROM '{sys.argv[1]}'").fetchone()
print('|'.join(str(value) for value in row))
`
