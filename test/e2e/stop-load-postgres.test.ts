import { appendFileSync, copyFileSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { freshBucket, s3Do, sharedServices } from '../support/services.ts'
import { until } from './bytes-place.ts'
import { ended, startCli } from './cli-process.ts'
import { loadHarness, ROWS } from './load-harness.ts'

/** Of cli.md, "Exit codes, finer": from a signal to the end. */
const LONGEST_STOP_MS = 10_000
const MODES = ['job', 'partition'] as const

const h = loadHarness()
const count = () => h.server.psql('SELECT count(*) FROM t')

describe('a signal in mid-load', () => {
  const backends = async () => {
    const ours = `SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'sluice %'`
    return (await h.server.psql(ours)).split('\n').map(Number)
  }

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s: code %d, nothing in the table, and the command to resume', async (signal, expected) => {
    const { child, end } = await h.startSlow(h.load())
    const beganMs = performance.now()
    child.kill(signal)
    const { code, stdout, stderr } = await end
    expect(performance.now() - beganMs).toBeLessThan(LONGEST_STOP_MS)
    h.proxy.setRate(null)
    await h.settled()
    expect([code, await count()]).toEqual([expected, '0'])
    const id = await h.onlyJob()
    expect(JSON.parse(stdout)).toMatchObject({
      status: 'stopped',
      error: { code: 'SLUICE_INTERRUPTED' },
      resumeCommand: `sluice resume ${id}`,
    })
    expect(stderr).toContain(`sluice resume ${id}`)
    await h.resumeIsWhole(id)
  })

  it.each(['job', 'partition'])('SIGINT while the backends hang, --commit %s: as soon', async (mode) => {
    const { child, end } = await h.startSlow(h.load('--commit', mode))
    const pids = await backends()
    expect(pids.length).toBeGreaterThan(1)
    try {
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
      const beganMs = performance.now()
      child.kill('SIGINT')
      const { code, stderr } = await end
      expect(performance.now() - beganMs).toBeLessThan(LONGEST_STOP_MS)
      expect(code).toBe(130)
      expect(stderr).toContain('sluice resume ')
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    }
    h.proxy.setRate(null)
    await h.settled()
    if (mode === 'job') expect(await count()).toBe('0')
    await h.resumeIsWhole(await h.onlyJob())
  })
})

describe.each(MODES)('after a kill, --commit %s', (mode) => {
  it.each(['longer', 'as long as it was'])('a source that has changed and is %s is not gone on with', async (how) => {
    const file = join(h.place, 'own.csv')
    copyFileSync(h.file, file)
    const words = h.load('--commit', mode).with(1, file)
    const { id } = await h.killInMidLoad(words)
    const before = await count()
    if (how === 'longer') appendFileSync(file, `${ROWS},one more\n`)
    else {
      const bytes = readFileSync(file)
      writeFileSync(file, bytes.fill('X', bytes.length - 3, bytes.length - 1))
    }
    const { code, result, stderr } = await h.run(['resume', id, '--json'])
    expect({ code, error: result.error?.code, command: result.resumeCommand, stderr }).toMatchObject({
      code: 1,
      error: 'SLUICE_SOURCE_CHANGED',
      command: null,
    })
    expect(stderr).toContain('[SLUICE_SOURCE_CHANGED]')
    await h.settled()
    expect(await count()).toBe(before)
    if (mode === 'job') expect(before).toBe('0')
  })

  it('the same command names resume; --new-job starts over', async () => {
    const words = h.load('--commit', mode)
    const { id } = await h.killInMidLoad(words)
    const before = Number(await count())
    const refused = await h.run(words)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('[SLUICE_JOB_EXISTS]')
    expect(refused.stderr).toContain(`sluice resume ${id}`)
    const anew = await h.run([...words, '--new-job'])
    expect({ code: anew.code, stderr: anew.code === 0 ? '' : anew.stderr }).toEqual({ code: 0, stderr: '' })
    expect(anew.result).toMatchObject({ status: 'done', rowsWritten: ROWS, runs: 1 })
    expect(anew.result.jobId).not.toBe(id)
    if (mode === 'job') await h.expectOnce()
    // What a partition committed stays: the job that was given up can't take it back.
    else expect(Number(await count())).toBe(before + ROWS)
    // The old job is over, here and in the ledger: nothing stands in the way of the next load.
    const old = await h.run(['resume', id, '--json'])
    expect(old.code).toBe(2)
    expect(old.stderr).toContain('[SLUICE_JOB_EXISTS]')
    expect(Number(await count())).toBe(before + ROWS)
    const next = await h.run(words)
    expect({ code: next.code, stderr: next.code === 0 ? '' : next.stderr }).toEqual({ code: 0, stderr: '' })
  })
})

describe('a password in the URL', () => {
  const filesUnder = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isFile())

  it.each(['user information', 'parameter'])('as %s is told to nobody, and resume wants it again', async (where) => {
    const { password, user } = h.server
    const url =
      where === 'parameter' ? `${h.sink()}&password=${password}` : h.sink().replace(`${user}@`, `${user}:${password}@`)
    const { env, cwd } = h.options()
    const bare = { cwd, env: { XDG_STATE_HOME: env['XDG_STATE_HOME'] ?? '' } }
    const said: string[] = []
    const { id, stdout, stderr } = await h.killInMidLoad(h.load('-v').with(2, url), bare)
    said.push(stdout, stderr)
    for (const words of [['jobs'], ['jobs', '--json'], ['show', id], ['show', id, '--json']]) {
      const end = await h.run(words, bare)
      const text = end.stdout + end.stderr
      expect(text).toContain(id)
      said.push(text)
    }
    const without = await h.run(['resume', id, '--json'], bare)
    said.push(without.stdout, without.stderr)
    expect(without.code).not.toBe(0)
    expect(without.stderr).toContain('PGPASSWORD')
    const whole = await h.run(['resume', id, '--json', '-v'], h.options())
    said.push(whole.stdout, whole.stderr)
    expect({ code: whole.code, stderr: whole.code === 0 ? '' : whole.stderr }).toEqual({ code: 0, stderr: '' })
    await h.expectOnce()
    for (const text of said) expect(text).not.toContain(password)
    const files = filesUnder(join(h.place, 'state'))
    expect(files.length).toBeGreaterThan(0)
    for (const path of files) expect(readFileSync(path, 'latin1')).not.toContain(password)
  })
})

describe('standard input', () => {
  const words = () => h.load('--source-format', 'csv').with(1, '-')

  it.each([
    ['at once', 0],
    ['in the middle', 20_000_000],
  ])('cannot be resumed, and it says so: a server lost %s', async (_, bytes) => {
    if (bytes === 0) h.proxy.setRate(1_000_000)
    const seen = h.proxy.counters.bytesFromClient
    const child = startCli([...words(), '--retry-for', '1s'], { ...h.options(), stdin: 'open' })
    // The program may be gone before it has read all.
    child.stdin.on('error', () => undefined)
    const end = ended(child)
    const text = readFileSync(h.file)
    child.stdin.write(text.subarray(0, 8_000_000))
    await until(() => h.proxy.counters.bytesFromClient > seen + 1_000_000)
    if (bytes > 0) {
      child.stdin.write(text.subarray(8_000_000, bytes + 8_000_000))
      await until(() => h.proxy.counters.bytesFromClient > seen + bytes)
    }
    await h.proxy.refuse()
    h.proxy.cutAll()
    child.stdin.end(text.subarray(bytes + 8_000_000))
    const { code, stdout, stderr } = await end
    expect(stderr).toMatch(/warning.*cannot be resumed/)
    expect(code, stderr).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ status: 'failed', resumeCommand: null })
    expect(stderr).not.toContain('sluice resume')
    await h.proxy.accept()
    await h.settled()
    expect(await count()).toBe('0')
  })

  it('that is stopped has nothing to resume', async () => {
    const seen = h.proxy.counters.bytesFromClient
    const child = startCli(words(), { ...h.options(), stdin: 'open' })
    const end = ended(child)
    // The program is gone before it has read all.
    child.stdin.on('error', () => undefined)
    child.stdin.write(readFileSync(h.file).subarray(0, 8_000_000))
    await until(() => h.proxy.counters.bytesFromClient > seen + 1_000_000)
    child.kill('SIGINT')
    const { code, stdout, stderr } = await end
    expect(code).toBe(130)
    expect(JSON.parse(stdout)).toMatchObject({ status: 'failed', resumeCommand: null })
    expect(stderr).not.toContain('sluice resume')
    await h.settled()
    expect(await count()).toBe('0')
  })
})

it('nothing listens: code 2 within 5 s', async () => {
  const sink = `postgres://u@127.0.0.1:${await freePort()}/postgres?table=t`
  const beganMs = performance.now()
  const { code, stderr } = await h.run(h.load().with(2, sink))
  expect(performance.now() - beganMs).toBeLessThan(5000)
  expect([code, stderr]).toEqual([2, expect.stringContaining('[SLUICE_UNREACHABLE]')])
})

describe('ids', () => {
  it('that are there already, unknown, running and done', async () => {
    const { child, end } = await h.startSlow(h.load('--job-id', 'mine'))
    const runs = await h.run(['resume', 'mine', '--json'])
    expect([runs.code, runs.stderr]).toEqual([2, expect.stringContaining('[SLUICE_JOB_RUNNING]')])
    const same = await h.run(h.load())
    expect([same.code, same.stderr]).toEqual([2, expect.stringContaining('[SLUICE_JOB_RUNNING]')])
    child.kill('SIGKILL')
    await end
    h.proxy.cutAll()
    h.proxy.setRate(null)
    await h.settled()
    const shown = await h.run(['show', 'mine', '--json'])
    expect(JSON.parse(shown.stdout)).toMatchObject({
      jobId: 'mine',
      status: 'unfinished',
      source: h.file,
      sink: h.sink(),
      endedAt: null,
      options: { concurrency: 3 },
      runs: [{ endedAt: null, status: null }],
      result: null,
      partitions: [{ url: h.file, bytes: statSync(h.file).size, done: false }],
      resumeCommand: 'sluice resume mine',
    })
    const there = await h.run(h.load('--job-id', 'mine'))
    expect([there.code, there.stderr]).toEqual([2, expect.stringContaining('[SLUICE_JOB_EXISTS]')])
    const unknown = await h.run(['resume', 'nobody', '--json'])
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('[SLUICE_JOB_UNKNOWN]')])
    await h.resumeIsWhole('mine')
    // Done is done: told again, nothing is loaded.
    const again = await h.run(['resume', 'mine', '--json'])
    expect([again.code, again.result]).toMatchObject([0, { status: 'done', rowsWritten: ROWS, runs: 2 }])
    const spelled = await h.run(h.load('--job-id', 'mine', '--resume'))
    expect([spelled.code, spelled.result.rowsWritten]).toEqual([0, ROWS])
    await h.expectOnce()
    const jobs = JSON.parse((await h.run(['jobs', '--json'])).stdout) as { jobs: unknown[] }
    expect(jobs.jobs).toMatchObject([{ jobId: 'mine', status: 'done', rowsWritten: ROWS }])
    const whole = JSON.parse((await h.run(['show', 'mine', '--json'])).stdout) as object
    expect(whole).toMatchObject({ status: 'done', partitions: [{ done: true }], resumeCommand: null })
    const twice = await h.run(h.load('--job-id', 'mine'))
    expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining('[SLUICE_JOB_EXISTS]')])
  })
})

it.each(MODES)('a checkpoint whose last line is torn, --commit %s', async (mode) => {
  const { id } = await h.killInMidLoad(h.load('--commit', mode))
  const checkpoint = join(h.place, 'state', 'sluice', 'jobs', id, 'checkpoint.jsonl')
  const before = statSync(checkpoint).size
  appendFileSync(checkpoint, '{"kind":"sink","ent')
  expect(statSync(checkpoint).size).toBeGreaterThan(before)
  await h.resumeIsWhole(id)
})

it('--commit partition: a backend of the killed run that is still in its transaction', async () => {
  const holder = new pg.Client(h.server.url)
  await holder.connect()
  try {
    await holder.query('BEGIN; LOCK TABLE t IN SHARE MODE')
    const child = startCli(h.load('--commit', 'partition'), h.options())
    const end = ended(child)
    const waiting = async () =>
      Number(await h.server.psql(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass`))
    await until(async () => (await waiting()) === 3)
    child.kill('SIGKILL')
    await end
    const resumed = h.run(['resume', await h.onlyJob(), '--json'])
    // The second run's lanes meet the ledger rows of the first's.
    await until(async () => {
      const blocked = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'transactionid' AND query LIKE 'INSERT INTO%extents%'`
      return (await h.server.psql(blocked)) !== '0'
    })
    expect(await waiting()).toBe(3)
    await holder.query('COMMIT')
    const { code, stderr, result } = await resumed
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    expect(result).toMatchObject({ rowsWritten: ROWS, runs: 2 })
    await h.settled()
    await h.expectOnce()
  } finally {
    await holder.end()
  }
})

it.each(MODES)('from S3, killed and resumed, --commit %s', async (mode) => {
  const store = sharedServices().versitygw
  const bucket = await freshBucket(store, 'stop')
  await s3Do(store, { method: 'PUT', path: `/${bucket}/in.csv`, body: readFileSync(h.file) })
  const { cwd, env } = h.options()
  const o = { cwd, env: { ...env, ...store.env } }
  const { id } = await h.killInMidLoad(h.load('--commit', mode).with(1, `s3://${bucket}/in.csv`), o)
  if (mode === 'job') expect(await count()).toBe('0')
  const result = await h.resumeIsWhole(id, o)
  expect(result.source).toBe(`s3://${bucket}/in.csv`)
})
