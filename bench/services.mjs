// Servers and peers of the benches; everything on loopback, started here and ended here.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { debianPostgresFolder, versitygwProgram } from '../test/support/tools.mjs'
import { sh } from './race.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const cleanups = []

export function sluice() {
  return `node ${join(root, 'dist/cli/main.js')}`
}

export function scratch() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  sh(`chmod 755 ${folder}`)
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** PostgreSQL 15 with Debian's defaults, save for fsync, which measures the disk. */
export async function startPostgres(folder, { tls = false } = {}) {
  const bin = debianPostgresFolder()
  const port = await freePort()
  const data = join(folder, 'pg')
  mkdirSync(data)
  sh(`chown postgres ${data}`)
  sh(`su postgres -c "${bin}/initdb -D ${data} -U postgres -A trust --locale=C.UTF-8"`)
  if (tls) {
    sh(
      `openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout ${data}/server.key -out ${data}/server.crt 2>/dev/null; chmod 600 ${data}/server.key; chown postgres ${data}/server.*`,
    )
  }
  const settings = `${tls ? '-c ssl=on ' : ''}-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_wal_size=8GB -c shared_buffers=512MB`
  sh(`su postgres -c "${bin}/pg_ctl -D ${data} -o '${settings}' -l ${data}/log -w start" >/dev/null`)
  cleanups.push(() => sh(`su postgres -c "${bin}/pg_ctl -D ${data} -m immediate stop" >/dev/null`))
  const url = `postgres://postgres@127.0.0.1:${port}/postgres${tls ? '?sslmode=disable' : ''}`
  return {
    url,
    port,
    psql: (sql) => sh(`psql -X -q -At -v ON_ERROR_STOP=1 '${url}' -c "${sql}"`),
    data,
    version: sh(`psql -X -At '${url}' -c 'show server_version'`),
  }
}

export async function startS3(folder) {
  const port = await freePort()
  const data = join(folder, 's3')
  mkdirSync(join(data, 'bench'), { recursive: true })
  run(versitygwProgram(), ['--port', `127.0.0.1:${port}`, 'posix', data], {
    ROOT_ACCESS_KEY: 'bench',
    ROOT_SECRET_KEY: 'benchbench',
  })
  const env = {
    ...process.env,
    AWS_ACCESS_KEY_ID: 'bench',
    AWS_SECRET_ACCESS_KEY: 'benchbench',
    AWS_REGION: 'us-east-1',
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
  }
  await answers(`http://127.0.0.1:${port}/`)
  return { port, env, data, endpoint: `http://127.0.0.1:${port}` }
}

/** A link that gives each connection its own rate. */
export async function startLink(targetPort, bytesPerSecond) {
  const port = await freePort()
  run(process.execPath, [join(root, 'bench/link.mjs'), String(port), String(targetPort), String(bytesPerSecond)])
  await answers(`http://127.0.0.1:${port}/`)
  return port
}

/** Something to be done when the bench is over. */
export function onStop(cleanup) {
  cleanups.push(cleanup)
}

export function stopAll() {
  for (const cleanup of cleanups.splice(0).toReversed()) cleanup()
}

function run(program, args, env = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: 'ignore' })
  cleanups.push(() => child.kill('SIGKILL'))
}

async function answers(url) {
  for (let i = 0; i < 200; i += 1) {
    const there = await fetch(url).then(
      () => true,
      () => false,
    )
    if (there) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`nothing answers at ${url}`)
}

/** Python with DuckDB and aws-cli, in .tools. */
export function peerFolder() {
  const folder = join(root, '.tools', 'bench-venv')
  if (!existsSync(join(folder, 'bin/duckdb-ready'))) {
    sh(
      `python3 -m venv ${folder} && ${folder}/bin/pip -q install duckdb==1.4.4 duckdb-ext-httpfs==1.4.4.20260205 duckdb-ext-postgres awscli`,
    )
    sh(`touch ${folder}/bin/duckdb-ready`)
  }
  return folder
}

/** s5cmd has no package: built from source by who runs the bench, and named by S5CMD; else aws-cli is raced alone. */
export function s5cmd() {
  return process.env.S5CMD ?? null
}
