// Whole commands against one another in interleaved rounds: wall, CPU and peak memory of each, by GNU time.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'

/** Runs a shell command, and fails where it does. @returns what it printed */
export function sh(command, env = process.env) {
  const done = spawnSync('bash', ['-c', command], { env, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (done.status !== 0)
    throw new Error(`${command}\nexit ${done.status}: ${done.stderr.slice(-2000)}${done.stdout.slice(-500)}`)
  return done.stdout.trim()
}

function timed(command, env) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-race-'))
  const report = join(folder, 'time')
  try {
    const done = spawnSync('/usr/bin/time', ['-f', '%e %U %S %M', '-o', report, 'bash', '-c', command], {
      env,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    })
    if (done.status !== 0) throw new Error(`${command}\nexit ${done.status}: ${done.stderr.slice(-2000)}`)
    const [wall, user, system, kilobytes] = readFileSync(report, 'utf8')
      .trim()
      .split('\n')
      .at(-1)
      .split(' ')
      .map(Number)
    return { wall, cpu: user + system, rss: kilobytes / 1024 }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {{ rounds: number, env: object, ways: { name: string, before?: () => void, command: string, check?: () => void }[], warm?: boolean }} o
 * @returns for each way its runs; the first round warms caches and is not counted, unless `warm` is false
 */
export function race({ rounds, env, ways, warm = true }) {
  const results = ways.map(({ name }) => ({ name, runs: [] }))
  for (let round = warm ? 0 : 1; round <= rounds; round += 1) {
    for (const [i, way] of ways.entries()) {
      way.before?.()
      const run = timed(way.command, env)
      way.check?.()
      process.stderr.write(`  ${round === 0 ? 'warm' : `${round}/${rounds}`} ${way.name}: ${run.wall.toFixed(2)} s\n`)
      if (round > 0) results[i].runs.push(run)
    }
  }
  return results
}

export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const median = sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  return { min: sorted[0], median, max: sorted.at(-1) }
}

/** Median of the ratios of two ways, round by round: what swings with the machine cancels out. */
export function ratio(results, a, b, of = (run) => run.wall) {
  const [x, y] = [a, b].map((name) => results.find((result) => result.name === name).runs.map(of))
  return spread(x.map((value, i) => value / y[i])).median
}

const three = ({ min, median, max }) => `${min.toFixed(2)} / ${median.toFixed(2)} / ${max.toFixed(2)}`

/** A table in Markdown. */
export function table(results) {
  const lines = results.map(({ name, runs }) => {
    const of = (key) => spread(runs.map((run) => run[key]))
    return `| ${name} | ${three(of('wall'))} | ${three(of('cpu'))} | ${of('rss').max.toFixed(0)} | ${runs.length} |`
  })
  return [
    '| way | wall s (min / median / max) | client CPU s | peak RSS MiB | rounds |',
    '|---|---|---|---|---|',
    ...lines,
  ].join('\n')
}

export function bars(list) {
  const lines = list.map(({ what, value, bar, unit = '×', atLeast = false }) => {
    const met = atLeast ? value >= bar : value <= bar
    return `| ${what} | ${value.toFixed(2)} ${unit} | ${atLeast ? '≥' : '≤'} ${bar} ${unit} | ${met ? 'met' : '**missed**'} |`
  })
  return ['| bar | measured | wanted | |', '|---|---|---|---|', ...lines].join('\n')
}

export function machine() {
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${sh('uname -r')}, Node ${process.versions.node}`
}
