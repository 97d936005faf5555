import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import type { JobResult } from '../../src/core/job.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { type PostgresServer, startPostgres15 } from '../support/services.ts'
import { lastJson, until } from './bytes-place.ts'
import { type CliOptions, cli, ended, type Ended, startCli } from './cli-process.ts'

/** About 42 MB: ten extents and more, so that three lanes have work. */
export const ROWS = 1_200_000
/** Of id and name; the same on both sides. */
const SUMS = `SELECT count(*), count(DISTINCT id), sum(hashtext(id || name)::bigint) FROM t`
/** Bytes a second through the proxy: slow enough that a load lasts seconds. */
const SLOW = 12_000_000

/** Loads of one file into table t of a server of their own, through a proxy; the table is empty before each test. */
export interface LoadHarness {
  readonly server: PostgresServer
  readonly proxy: FaultProxy
  /** The file, with a header. */
  readonly file: string
  /** A folder of the test's own, that has its state folder. */
  readonly place: string
  /** With the password in the environment. */
  options(): { cwd: string; env: Record<string, string> }
  sink(): string
  load(...more: string[]): string[]
  run(words: readonly string[], o?: CliOptions): Promise<Ended & { result: JobResult }>
  /** Starts a slowed load, and resolves once rows of it have reached the server. */
  startSlow(
    words: readonly string[],
    o?: CliOptions,
  ): Promise<{ child: ReturnType<typeof startCli>; end: Promise<Ended> }>
  /** Kills a load when rows of it have reached the server; what it had said by then, and its id. */
  killInMidLoad(words: readonly string[], o?: CliOptions): Promise<Ended & { id: string }>
  /** Id of the one job of the state folder; empty where none began. */
  onlyJob(): Promise<string>
  /** Waits until no backend of ours is left: what it did is decided. */
  settled(): Promise<void>
  expectOnce(): Promise<void>
  resumeIsWhole(id: string, o?: CliOptions): Promise<JobResult>
}

/** Registers the hooks of a test file. */
export function loadHarness(): LoadHarness {
  let server: PostgresServer
  let proxy: FaultProxy
  let folder = ''
  let place = ''
  let expected = ''

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-load-'))
    const rows = Array.from({ length: ROWS }, (_, i) => `${i},name of the row ${(i * 7919) % ROWS}\n`)
    writeFileSync(join(folder, 'in.csv'), `id,name\n${rows.join('')}`)
    server = await startPostgres15()
    proxy = await startFaultProxy(server)
    await server.psql('CREATE TABLE t (id int, name text)')
    await server.psql(
      `INSERT INTO t SELECT i, 'name of the row ' || (i::bigint * 7919) % ${ROWS} FROM generate_series(0, ${ROWS - 1}) i`,
    )
    expected = await server.psql(SUMS)
  })
  afterAll(async () => {
    await proxy.stop()
    await server.stop()
    rmSync(folder, { recursive: true })
  })
  beforeEach(async () => {
    place = mkdtempSync(join(folder, 'place-'))
    await server.psql('TRUNCATE t')
    await server.psql('DROP SCHEMA IF EXISTS sluice CASCADE')
  })
  afterEach(async () => {
    await proxy.accept()
    proxy.clear()
    proxy.setRate(null)
    rmSync(place, { recursive: true })
  })

  const harness: LoadHarness = {
    get server() {
      return server
    },
    get proxy() {
      return proxy
    },
    get file() {
      return join(folder, 'in.csv')
    },
    get place() {
      return place
    },
    options: () => ({ cwd: place, env: { XDG_STATE_HOME: join(place, 'state'), PGPASSWORD: server.password } }),
    sink: () => `postgres://${server.user}@127.0.0.1:${proxy.port}/postgres?sslmode=disable&table=t`,
    load: (...more) => ['copy', harness.file, harness.sink(), '--concurrency', '3', '--json', ...more],
    run: async (words, o = harness.options()) => {
      const end = await cli(words, o)
      return { ...end, result: end.stdout.trimEnd().endsWith('}') ? lastJson(end.stdout) : ({} as JobResult) }
    },
    startSlow: async (words, o = harness.options()) => {
      proxy.setRate(SLOW)
      const seen = proxy.counters.bytesFromClient
      const child = startCli(words, o)
      const end = ended(child)
      let over = false
      void end.then(() => (over = true))
      await until(() => over || proxy.counters.bytesFromClient > seen + 10_000_000)
      if (over) throw new Error(`ended by itself: ${(await end).stderr}`)
      return { child, end }
    },
    killInMidLoad: async (words, o) => {
      const { child, end } = await harness.startSlow(words, o)
      child.kill('SIGKILL')
      const said = await end
      proxy.cutAll()
      proxy.setRate(null)
      await harness.settled()
      return { ...said, id: await harness.onlyJob() }
    },
    onlyJob: async () => {
      const { stdout } = await cli(['jobs', '--json'], harness.options())
      const { jobs } = JSON.parse(stdout) as { jobs: { jobId: string }[] }
      expect(jobs.length).toBeLessThan(2)
      return jobs[0]?.jobId ?? ''
    },
    settled: async () => {
      const ours = `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sluice %'`
      await until(async () => (await server.psql(ours)) === '0')
    },
    expectOnce: async () => expect(await server.psql(SUMS)).toBe(expected),
    resumeIsWhole: async (id, o) => {
      const { code, result, stderr } = await harness.run(['resume', id, '--json'], o)
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
      await harness.expectOnce()
      expect(result).toMatchObject({ status: 'done', rowsRead: ROWS, rowsWritten: ROWS, runs: 2 })
      return result
    },
  }
  return harness
}
