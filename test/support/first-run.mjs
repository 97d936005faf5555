// Installs and builds what is missing or stale, quietly, so that `npm run demo` works alone on a fresh clone.
// Only Node's own modules: nothing is installed yet. `node first-run.mjs build` builds in any case.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const at = (...path) => join(root, ...path)
const PROGRAMS = ['dist/index.js', 'dist/cli/main.js']

function run(command, args) {
  const done = spawnSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  if (done.error !== undefined) throw new Error(`${command}: ${done.error.message}`)
  if (done.status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${done.stdout}${done.stderr}`)
}

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'))

/** Whether node_modules is what the lock file says: npm keeps what it installed in a lock file of its own there. */
function isInstalled() {
  const own = at('node_modules', '.package-lock.json')
  if (!existsSync(own)) return false
  const there = readJson(own).packages
  return Object.entries(readJson(at('package-lock.json')).packages).every(([path, wanted]) => {
    if (path === '') return true
    const got = there[path]
    if (got === undefined) return wanted.optional === true // for another platform
    return got.version === wanted.version && got.integrity === wanted.integrity
  })
}

/** Returns whether it had to. */
export function installIfNeeded(say) {
  if (isInstalled()) return false
  say('installing packages (once; about a minute)')
  run('npm', ['ci', '--no-audit', '--no-fund'])
  return true
}

function newestMs(folder) {
  let newest = 0
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    newest = Math.max(newest, entry.isDirectory() ? newestMs(path) : statSync(path).mtimeMs)
  }
  return newest
}

function isBuilt() {
  const builtMs = Math.min(...PROGRAMS.map((name) => (existsSync(at(name)) ? statSync(at(name)).mtimeMs : 0)))
  const inputs = ['tsconfig.json', 'tsconfig.build.json', 'package.json'].map((name) => statSync(at(name)).mtimeMs)
  return builtMs >= Math.max(newestMs(at('src')), ...inputs)
}

/** Builds beside dist/ and puts it in its place, so that nothing of an earlier build stays and nobody sees half of one. */
export function build() {
  const fresh = `dist.new-${process.pid}`
  const old = `dist.old-${process.pid}`
  try {
    run(process.execPath, [
      at('node_modules', 'typescript', 'bin', 'tsc'),
      '-p',
      'tsconfig.build.json',
      '--outDir',
      fresh,
    ])
    if (existsSync(at('dist'))) renameSync(at('dist'), at(old))
    renameSync(at(fresh), at('dist'))
  } finally {
    rmSync(at(fresh), { recursive: true, force: true })
    rmSync(at(old), { recursive: true, force: true })
  }
}

export function buildIfNeeded(say) {
  if (isBuilt()) return false
  say('building')
  build()
  return true
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const say = (line) => process.stderr.write(`sluice: ${line}\n`)
  try {
    installIfNeeded(say)
    if (process.argv[2] === 'build') build()
    else buildIfNeeded(say)
  } catch (error) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
