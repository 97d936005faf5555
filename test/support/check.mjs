// `npm run check`: types, lint, format, dead code, package. What passes says one line; what fails says all.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildIfNeeded, installIfNeeded } from './first-run.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const bin = (...path) => join(root, 'node_modules', ...path)

/** Folders that are there; a path that is not would be an error to the linter. */
const linted = ['src', 'test', 'bench', 'examples', 'vitest.config.ts'].filter((path) => existsSync(join(root, path)))

/** The longest first: two run at a time. */
const CHECKS = [
  { name: 'format', program: bin('prettier', 'bin', 'prettier.cjs'), args: ['--check', '--log-level', 'warn', '.'] },
  { name: 'types', program: bin('typescript', 'bin', 'tsc'), args: ['-p', 'tsconfig.json', '--noEmit'] },
  {
    name: 'lint',
    program: bin('oxlint', 'bin', 'oxlint'),
    args: ['--type-aware', '--deny-warnings', '-f', 'unix', ...linted],
  },
  { name: 'dead code', program: bin('knip', 'bin', 'knip.js'), args: ['--no-progress'] },
  { name: 'package', program: bin('publint', 'src', 'cli.js'), args: ['--strict'] },
]

/** At most this long for one check, before it is ended and counts as failed. */
const LIMIT_MS = 300_000

function runOne({ program, args }) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, ...args], { cwd: root, timeout: LIMIT_MS, killSignal: 'SIGKILL' })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', (error) => resolve({ ok: false, output: String(error) }))
    child.on('close', (code) => resolve({ ok: code === 0, output }))
  })
}

/** How many checks run at the same time: each of them is one process that keeps a processor busy. */
const AT_ONCE = 2

/** Runs all of them; returns how many passed and failed. */
export async function runChecks(say) {
  const counts = { passed: 0, failed: 0 }
  const left = CHECKS.values()
  const runSome = async () => {
    // Both take from the same iterator, so that each check runs once.
    for (const check of left) {
      const beganMs = performance.now()
      const { ok, output } = await runOne(check)
      counts[ok ? 'passed' : 'failed'] += 1
      say(`${ok ? 'ok  ' : 'FAIL'} ${check.name} (${((performance.now() - beganMs) / 1000).toFixed(1)} s)`)
      if (!ok) say(output.trimEnd())
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, runSome))
  return counts
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const say = (line) => process.stdout.write(`${line}\n`)
  installIfNeeded(say)
  try {
    buildIfNeeded(say)
  } catch {
    say('dist/ could not be built; the types say why')
  }
  const { failed } = await runChecks(say)
  process.exitCode = failed === 0 ? 0 : 1
}
