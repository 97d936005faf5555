// The same CSV in a zip over HTTP and as a local file → DynamoDB (nullddb). Their walls swing more than they differ: pairs, one right after the other, the
// first of a pair by turns; at least five of them, and one that warms caches. Half of the usual rows, so that it takes a minute or two.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { ENV, loads, startNullddb, TYPED } from './nullddb.mjs'
import { makePostcodes } from './postcodes.mjs'
import { bars, race, sh, spread, table } from './race.mjs'
import { onStop, scratch } from './services.mjs'

const ROWS = Number(process.env.BENCH_ROWS ?? 885_362)
const LEAST_PAIRS = 5

/** The file in a zip, served by a process of its own with the demo's web server. @returns its address */
async function serveZip(file, zip) {
  sh(`python3 -m zipfile -c ${zip} ${file}`)
  const script = `const { serveFile } = await import('${new URL('../dist/cli/demo/server.js', import.meta.url)}')
console.log((await serveFile('${zip}', 'postcodes.zip')).url)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  onStop(() => child.kill('SIGKILL'))
  const [said] = await once(child.stdout, 'data')
  return String(said).trim()
}

export async function run({ rounds: wanted }) {
  const rounds = Math.max(LEAST_PAIRS, wanted)
  const folder = scratch()
  const quick = await startNullddb()
  const { own, counted } = loads(folder, ROWS)
  const file = join(folder, 'postcodes.csv')
  const bytes = makePostcodes({ rows: ROWS, path: file })
  const zip = await serveZip(file, join(folder, 'postcodes.zip'))
  const way = (name, source) => ({ name, command: own(quick, TYPED, source), ...counted(quick) })
  const ways = [way('local CSV', file), way('the same in a zip over HTTP', zip)]
  const results = ways.map(({ name }) => ({ name, runs: [] }))
  for (let pair = 0; pair <= rounds; pair += 1) {
    const order = pair % 2 === 0 ? [0, 1] : [1, 0]
    for (const i of order) {
      const [{ runs }] = race({ rounds: 1, env: ENV, ways: [ways[i]], warm: false })
      if (pair > 0) results[i].runs.push(...runs)
    }
  }
  const [csv, zipped] = results.map(({ runs }) => runs)
  const ratios = (of) => spread(zipped.map((run, i) => of(run) / of(csv[i])))
  const medians = (of) => spread(zipped.map(of)).median / spread(csv.map(of)).median
  const [walls, cpus] = [(run) => run.wall, (run) => run.cpu]
  const said = ({ min, median, max }) => `${min.toFixed(2)} / ${median.toFixed(2)} / ${max.toFixed(2)}`
  const list = [
    { what: 'wall: median of the ratios, pair by pair', value: ratios(walls).median, bar: 1.1 },
    { what: 'wall: ratio of the medians', value: medians(walls), bar: 1.1 },
  ]
  return `${ROWS} rows, ${bytes} bytes; each run is checked by the server's count of puts.\n\n${table(results)}\n\nZip against CSV, pair by pair (min / median / max): wall ${said(ratios(walls))}, CPU ${said(ratios(cpus))}.\n\n${bars(list)}`
}
