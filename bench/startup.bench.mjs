// Start-up: beside a Node that does nothing.
import { bars, race, spread, table } from './race.mjs'
import { sluice } from './services.mjs'

export async function run({ rounds }) {
  const times = (command) => `for i in 1 2 3 4 5 6 7 8 9 10; do ${command} > /dev/null; done`
  const ways = [
    { name: 'node -e 0, ten times', command: times('node -e 0') },
    { name: 'sluice --version, ten times', command: times(`${sluice()} --version`) },
    { name: 'sluice copy --help, ten times', command: times(`${sluice()} copy --help`) },
  ]
  const results = race({ rounds, env: process.env, ways })
  const more = (i) => spread(results[i].runs.map((r, at) => (r.wall - results[0].runs[at].wall) * 100)).median
  return `${table(results)}\n\n${bars([
    { what: '--version above bare Node', value: more(1), bar: 40, unit: 'ms' },
    { what: 'copy --help above bare Node', value: more(2), bar: 90, unit: 'ms' },
  ])}`
}
