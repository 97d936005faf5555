import { appendFileSync, copyFileSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
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
