// `npm test`: everything that CI runs, alone on a fresh clone. Ends with the line "N passed, N failed".
// What can't be started, a suite that crashes, and a test that is skipped all count as failed.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runChecks } from './check.mjs'
import { buildIfNeeded, installIfNeeded } from './first-run.mjs'
import { nodeProgram, prepareTools } from './tools.mjs'
import { countReport } from './vitest-report.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-run-tests-'))
const total = { passed: 0, failed: 0 }
const children = new Set()

/** At most this long for one run of vitest, before it is ended and counts as failed. */
const LIMIT_MS = 20 * 60_000
/** The Nodes, beside the one that runs this, under which the unit tests must pass too. */
const OTHER_NODES = [22, 24].filter((major) => major !== Number(process.versions.node.split('.')[0]))

const say = (line) => process.stdout.write(`${line}\n`)

function count(passed, failed) {
  total.passed += passed
  total.failed += failed
}

/** One stage: what it throws is told and counts as one failure. */
async function stage(name, work) {
  const beganMs = performance.now()
  say(`\n== ${name}`)
  try {
    await work()
  } catch (error) {
    say(`FAIL ${name}: ${error.message}`)
    count(0, 1)
  }
  say(`== ${name}: ${((performance.now() - beganMs) / 1000).toFixed(1)} s`)
}

/** The environment without what would lead tests to the services and accounts of whoever runs them. */
function cleanEnvironment() {
  const kept = Object.entries(process.env).filter(([name]) => !/^(AWS_|PG|SLUICE_|VITEST|NODE_OPTIONS$)/.test(name))
  return { ...Object.fromEntries(kept), CI: '1', NO_COLOR: '1' }
}

function runVitest(node, args) {
  const report = join(folder, `report-${Math.random().toString(36).slice(2)}.json`)
  const child = spawn(
    node,
    [
      join(root, 'node_modules', 'vitest', 'vitest.mjs'),
      'run',
      ...args,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
    ],
    {
      cwd: root,
      env: cleanEnvironment(),
      stdio: ['ignore', 'inherit', 'inherit'],
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    },
  )
  children.add(child)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      children.delete(child)
      resolve({ report, code, signal })
    })
  })
}

async function testStage(node, args) {
  const { passed, failed, notes } = countReport(await runVitest(node, args))
  for (const note of notes) say(`FAIL ${note}`)
  count(passed, failed)
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    for (const child of children) child.kill(signal)
    rmSync(folder, { recursive: true, force: true })
    process.exit(signal === 'SIGINT' ? 130 : 143)
  })
}

let ready = true
await stage('packages and build', () => {
  ready = false
  installIfNeeded(say)
  ready = true
  buildIfNeeded(say)
})
if (ready) {
  await stage('check', async () => {
    const { passed, failed } = await runChecks(say)
    count(passed, failed)
  })
  await stage('tools and services', () => {
    const missing = prepareTools(say)
    if (missing.length > 0) throw new Error(`missing: ${missing.join(', ')}`)
  })
  await stage(`tests, Node ${process.versions.node}`, () => testStage(process.execPath, []))
  for (const major of OTHER_NODES) {
    await stage(`unit tests, Node ${major}`, () => testStage(nodeProgram(major), ['--project', 'unit']))
  }
}
rmSync(folder, { recursive: true, force: true })
const ok = total.failed === 0 && total.passed > 0
process.exitCode = ok ? 0 : 1
say(`\n${total.passed} passed, ${total.failed} failed`)
