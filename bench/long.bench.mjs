// Memory of a long export: 100,000,000 rows of a query, one stream, into Parquet and into CSV on S3. Seconds are counted by /proc, not by GNU time: what is
// looked at is not the peak but whether there is growth.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bars, sh, spread } from './race.mjs'
import { peerFolder, scratch, startPostgres, startS3 } from './services.mjs'

const ROWS = Number(process.env.BENCH_ROWS ?? 100_000_000)
/** From when on memory is to be flat; seconds. A run that is over before twice this is looked at from its half on. */
const SETTLED_S = 60
const EVERY_MS = 1000
/** In the target list the function is a stream; in FROM its rows would lie in a file of the server first. */
const QUERY = `select id, 'name' || id % 65536 as name, id % 90 + 10 as age from (select generate_series(1, ${ROWS}) as id) g`

/** @returns resident MiB, second by second */
async function watch(args, env) {
  const program = new URL('../dist/cli/main.js', import.meta.url).pathname
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'close')
  let said = ''
  child.stderr.on('data', (text) => (said += text))
  const samples = []
  const began = performance.now()
  const timer = setInterval(() => {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    const resident = /^VmRSS:\s+(\d+)/m.exec(status)?.[1]
    if (resident !== undefined) samples.push({ at: (performance.now() - began) / 1000, mib: Number(resident) / 1024 })
  }, EVERY_MS)
  const [code] = await ended
  clearInterval(timer)
  if (code !== 0) throw new Error(`exit ${code}: ${said.slice(-2000)}`)
  return { samples, wall: (performance.now() - began) / 1000 }
}

export async function run() {
  const folder = scratch()
  const pg = await startPostgres(folder)
  const s3 = await startS3(folder)
  const judge = join(folder, 'judge.py')
  writeFileSync(judge, judgeScript)
  const lines = []
  const list = []
  for (const name of ['long.parquet', 'long.csv']) {
    const args = ['copy', pg.url, `s3://bench/${name}`, '--query', QUERY, '--state-dir', join(folder, 'state'), '-q']
    const { samples, wall } = await watch(args, s3.env)
    const object = join(s3.data, 'bench', name)
    process.stderr.write(`  ${name}: ${wall.toFixed(0)} s, ${samples.map(({ mib }) => mib.toFixed(0)).join(' ')}\n`)
    const rows = sh(`${peerFolder()}/bin/python ${judge} ${object}`)
    if (rows !== String(ROWS)) throw new Error(`${name} holds ${rows} rows`)
    sh(`rm -f ${object}`)
    const from = wall > 2 * SETTLED_S ? SETTLED_S : wall / 2
    const later = samples.filter(({ at }) => at >= from).map(({ mib }) => mib)
    const most = spread(later).max
    const at = (s) => samples.findLast((one) => one.at <= s)?.mib ?? 0
    lines.push(
      `| ${name} | ${wall.toFixed(1)} | ${at(10).toFixed(0)} | ${at(30).toFixed(0)} | ${at(from).toFixed(0)} (${from.toFixed(0)} s) | ${most.toFixed(0)} | ${later.at(-1).toFixed(0)} |`,
    )
    list.push({ what: `${name}: most after ${from.toFixed(0)} s against then`, value: most / later[0], bar: 1.1 })
    // What is resident swings with collections; growth shows in medians.
    const half = Math.max(1, later.length >> 1)
    const medians = [later.slice(0, half), later.slice(-half)].map((some) => spread(some).median)
    list.push({
      what: `${name}: median of the second half of that time against the first`,
      value: medians[1] / medians[0],
      bar: 1.1,
    })
  }
  return `${ROWS} rows of generate_series through \`--query\`, PostgreSQL ${pg.version}, versitygw; DuckDB counts the rows of each output.\n\n| output | wall s | MiB at 10 s | at 30 s | when it is to be flat | most afterwards | last |\n|---|---|---|---|---|---|---|\n${lines.join('\n')}\n\n${bars(list)}`
}

const judgeScript = `
import duckdb, sys
duckdb.sql("SET enable_progress_bar = false")
print(duckdb.sql(f"SELECT count(*) FROM '{sys.argv[1]}'").fetchone()[0])
`
