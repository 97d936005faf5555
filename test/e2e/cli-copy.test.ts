import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { JobResult } from '../../src/core/job.ts'
import { cli, type CliOptions, ended, MAIN, startCli } from './cli-process.ts'

const PEOPLE = 'id,name\n1,Ada\n2,Grace\n'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-copy-'))
  writeFileSync(join(folder, 'people.csv'), PEOPLE)
})
afterEach(() => rmSync(folder, { recursive: true }))

const options = (): CliOptions => ({ cwd: folder, env: { XDG_STATE_HOME: join(folder, 'state') } })
const sluice = (...words: string[]) => cli(words, options())
const lastLine = (text: string): unknown => JSON.parse(text.trimEnd().split('\n').at(-1) ?? '')

describe('copy', () => {
  it('prints a summary for people on standard error, and nothing else', async () => {
    const { code, stdout, stderr } = await sluice('copy', 'people.csv', 'out.csv')
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(/^done {2}22 B in /m)
    expect(readFileSync(join(folder, 'out.csv'), 'utf8')).toBe(PEOPLE)
  })

  it('prints one line of JSON with --json, and nothing for people with -q', async () => {
    const { code, stdout, stderr } = await sluice('cp', 'people.csv', 'out.csv', '--json', '-q')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.trimEnd().split('\n')).toHaveLength(1)
    const result = JSON.parse(stdout) as JobResult
    expect(result).toMatchObject({
      status: 'done',
      bytesWritten: 22,
      retries: 0,
      rejectFile: null,
      resumeCommand: null,
    })
    expect(Object.keys(result)).toEqual(
      expect.arrayContaining(['jobId', 'route', 'skipped', 'cpuMs', 'peakRssBytes', 'outputs', 'warnings']),
    )
  })

  it('writes data to standard output where SINK is -, and its JSON to the last line of standard error', async () => {
    const { code, stdout, stderr } = await sluice('copy', 'people.csv', '-', '--json')
    expect({ code, stdout }).toEqual({ code: 0, stdout: PEOPLE })
    expect(lastLine(stderr)).toMatchObject({ status: 'done', sink: '-' })
  })

  it('a --replace that steps back for ever ends all the same', () => {
    writeFileSync(join(folder, 'a.csv'), `id,v\n1,${'a'.repeat(60)}b\n2,baa\n`)
    const words = [MAIN, 'copy', 'a.csv', 'b.csv', '--replace', 'v=/(a+)+$/x/']
    // No other signal ends what is stuck in a regular expression.
    const { status } = spawnSync(process.execPath, words, {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...options().env },
      timeout: 20_000,
      killSignal: 'SIGKILL',
    })
    expect(status).toBe(0)
    expect(readFileSync(join(folder, 'b.csv'), 'utf8')).toBe(`id,v\n1,${'a'.repeat(60)}b\n2,bx\n`)
  })

  it('refuses what is there already, with 2, and leaves it alone', async () => {
    writeFileSync(join(folder, 'out.csv'), 'mine')
    const { code, stderr } = await sluice('copy', 'people.csv', 'out.csv')
    expect(code).toBe(2)
    expect(stderr).toMatch(/^error: .*\[SLUICE_EXISTS\]$/m)
    expect(readFileSync(join(folder, 'out.csv'), 'utf8')).toBe('mine')
  })

  it('says with 2 that a file is missing', async () => {
    const { code, stdout } = await sluice('copy', 'missing.csv', 'out.csv', '--json')
    expect(code).toBe(2)
    expect(lastLine(stdout)).toMatchObject({ status: 'failed', error: { code: 'SLUICE_NOT_FOUND' } })
    expect(readdirSync(folder).filter((name) => name !== 'state')).toEqual(['people.csv'])
  })

  it('takes settings from the environment and the config file', async () => {
    writeFileSync(join(folder, 'sluice.config.json'), JSON.stringify({ ifExists: 'fail', quiet: true }))
    writeFileSync(join(folder, 'out.csv'), 'old')
    const { env, ...rest } = options()
    const { code, stderr } = await cli(['copy', 'people.csv', 'out.csv'], {
      ...rest,
      env: { ...env, SLUICE_IF_EXISTS: 'overwrite' },
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(readFileSync(join(folder, 'out.csv'), 'utf8')).toBe(PEOPLE)
  })
})

describe('jobs and show', () => {
  it('tell of what ran', async () => {
    const { jobId } = JSON.parse((await sluice('copy', 'people.csv', 'out.csv', '--json')).stdout) as JobResult
    const listed = JSON.parse((await sluice('jobs', '--json')).stdout) as { jobs: { jobId: string; status: string }[] }
    expect(listed.jobs).toEqual([expect.objectContaining({ jobId, status: 'done' })])
    expect((await sluice('jobs')).stdout).toContain(jobId)
    expect((await sluice('show', jobId)).stdout).toContain('done  22 B')
    expect(JSON.parse((await sluice('show', jobId, '--json')).stdout)).toMatchObject({
      jobId,
      result: { status: 'done' },
    })
  })

  it('say with 2 that there is no such job', async () => {
    for (const command of ['show', 'resume']) {
      const { code, stderr } = await sluice(command, 'nonesuch')
      expect(code).toBe(2)
      expect(stderr).toContain('[SLUICE_JOB_UNKNOWN]')
    }
  })

  it('have nothing to tell at first', async () => {
    expect(await sluice('jobs')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('no jobs') as string,
    })
  })
})

describe('a signal', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends a copy with %d and leaves nothing under the final name', async (signal, expected) => {
    const child = startCli(['copy', '-', 'out.csv'], { ...options(), stdin: 'open' })
    child.stdin.write(PEOPLE)
    const end = ended(child)
    while (!existsSync(join(folder, 'state'))) await delay(20)
    await delay(200)
    child.kill(signal)
    const { code, stdout } = await end
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' })
    expect(existsSync(join(folder, 'out.csv'))).toBe(false)
  })
})

it('standard input that is a folder is no empty input', () => {
  const { status, stderr } = spawnSync('bash', ['--norc', '--noprofile', '-c', '"$NODE" "$MAIN" cat - < .'], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', NODE: process.execPath, MAIN },
    encoding: 'utf8',
  })
  expect({ status, stderr: stderr.split('\n')[0] }).toEqual({
    status: 2,
    stderr: 'error: standard input is a folder  [SLUICE_USAGE]',
  })
})

describe.runIf(existsSync('/dev/full'))('standard output that takes nothing', () => {
  it.each(['cat people.csv', 'copy people.csv - --sink-format jsonl', 'completion bash', 'help'])(
    '%s says so',
    (words) => {
      writeFileSync(join(folder, 'people.csv'), 'id\n1\n')
      const { status, stderr } = spawnSync(
        'bash',
        ['--norc', '--noprofile', '-c', `"$NODE" "$MAIN" ${words} > /dev/full`],
        {
          cwd: folder,
          env: {
            PATH: process.env['PATH'] ?? '',
            HOME: '/nonexistent',
            XDG_STATE_HOME: join(folder, 'state'),
            NODE: process.execPath,
            MAIN,
          },
          encoding: 'utf8',
        },
      )
      expect(stderr).toContain('standard output: ENOSPC: no space left on device, write  [SLUICE_DISK_FULL]')
      expect(stderr).not.toContain('SLUICE_INTERNAL')
      expect([1, 2]).toContain(status)
    },
  )
})

describe('a reader that goes away', () => {
  it.each(['cat', 'copy'])('ends %s quietly with 141', (command) => {
    writeFileSync(join(folder, 'big.csv'), 'x'.repeat(1023).concat('\n').repeat(4096))
    const words = command === 'cat' ? 'cat big.csv' : 'copy big.csv -'
    const script = `"$NODE" "$MAIN" ${words} | head -c 10; echo " \${PIPESTATUS[0]}"`
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: '/nonexistent',
      XDG_STATE_HOME: join(folder, 'state'),
      NODE: process.execPath,
      MAIN,
    }
    // A second time, too: what was cut short is no job to go on with.
    for (let run = 0; run < 2; run += 1) {
      const { stdout, stderr } = spawnSync('bash', ['--norc', '--noprofile', '-c', script], {
        cwd: folder,
        env,
        encoding: 'utf8',
      })
      expect({ stdout, stderr }).toEqual({ stdout: 'xxxxxxxxxx 141\n', stderr: '' })
    }
  })

  it.each(['-', 'pipe'])(
    'a copy to %s that was killed is over: nothing can go on with what went away',
    async (sink) => {
      writeFileSync(join(folder, 'big.csv'), 'x'.repeat(4_000_000))
      const pipe = join(folder, 'pipe')
      execFileSync('mkfifo', [pipe])
      const reader = sink === 'pipe' ? openSync(pipe, constants.O_RDWR) : null
      const child = startCli(['copy', 'big.csv', sink], options())
      const end = ended(child)
      child.stdout.pause()
      const listed = async () =>
        (JSON.parse((await sluice('jobs', '--json')).stdout) as { jobs: { jobId: string; status: string }[] }).jobs
      while ((await listed())[0]?.status !== 'running') await delay(20)
      child.kill('SIGKILL')
      child.stdout.resume()
      await end
      if (reader !== null) closeSync(reader)
      const [job] = await listed()
      expect(job?.status).toBe('failed')
      const shown = JSON.parse((await sluice('show', job?.jobId ?? '', '--json')).stdout) as JobResult
      expect(shown.resumeCommand).toBeNull()
      expect((await sluice('copy', 'big.csv', sink === 'pipe' ? 'other' : sink)).code).toBe(0)
    },
  )
})
