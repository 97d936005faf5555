import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/command-table.ts'
import { cli, MAIN } from './cli-process.ts'

/** Files that Node loads for a command line, by what V8's coverage reports. */
async function loaded(...words: string[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-loaded-'))
  try {
    await cli(words, { env: { NODE_V8_COVERAGE: folder } })
    const urls = readdirSync(folder).flatMap((name) => {
      const report = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: { url: string }[] }
      return report.result.map((script) => script.url)
    })
    return urls
      .filter((url) => url.startsWith('file://'))
      .map((url) => url.replace(/.*\/(?=dist\/|node_modules\/)/, ''))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('version', () => {
  it('is that of package.json', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    expect(await cli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('loads one file', async () => {
    expect(await loaded('--version')).toEqual([expect.stringContaining('cli/main.js')])
  })
})

describe('help', () => {
  it('without a command: short, on standard error, exit 2', async () => {
    const { code, stdout, stderr } = await cli([])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('usage: sluice COMMAND [flags]')
  })

  it.each([['help'], ['--help'], ['-h']])('%s lists the commands', async (word) => {
    const { code, stdout, stderr } = await cli([word])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const command of COMMANDS) expect(stdout).toContain(`  ${command.name} `)
  })

  it.each(COMMANDS.map((command) => command.name))('%s --help is the same as by help', async (name) => {
    const ended = await cli([name, '--help'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(await cli(['help', name])).toEqual(ended)
    expect(ended.stdout).toContain('examples\n  # ')
  })

  it('of copy loads neither the engine nor a connector', async () => {
    const files = await loaded('copy', '--help')
    expect(files).toContainEqual(expect.stringContaining('cli/flags.js'))
    expect(files.filter((file) => /\/(engine|connectors|stores|api)\/|node_modules\/(?!commander)/.test(file))).toEqual(
      [],
    )
  })

  it('has colours only where they are wanted', async () => {
    expect((await cli(['help'], { env: { FORCE_COLOR: '1' } })).stdout).toContain('\u001b[1m')
    expect((await cli(['help'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })).stdout).not.toContain('\u001b')
    expect((await cli(['copy', '--help', '--no-color'], { env: { FORCE_COLOR: '1' } })).stdout).not.toContain('\u001b')
  })
})

describe('completion', () => {
  it('of bash completes commands, flags and values', async () => {
    const { code, stdout } = await cli(['completion', 'bash'])
    expect(code).toBe(0)
    const complete = (...words: string[]): string[] => bashCompletions(stdout, words)
    expect(complete('sluice', 'co')).toEqual(['completion', 'copy'])
    expect(complete('sluice', 'copy', '--del')).toEqual(['--delimiter'])
    expect(complete('sluice', 'cp', '--if-exists', 'o')).toEqual(['overwrite'])
    expect(complete('sluice', 'completion', '')).toEqual(['bash', 'fish', 'zsh'])
    expect(complete('sluice', 'copy', '--reject')).toEqual([])
  })

  it('of bash completes names of files with blanks whole, and folders alone where one is wanted', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-completion-'))
    try {
      writeFileSync(join(folder, 'big file.csv'), '')
      mkdirSync(join(folder, 'big folder'))
      const { stdout } = await cli(['completion', 'bash'])
      const begun = join(folder, 'big f')
      const [file, inside] = [join(folder, 'big file.csv'), join(folder, 'big folder')]
      expect(bashCompletions(stdout, ['sluice', 'copy', begun])).toEqual([file, inside])
      expect(bashCompletions(stdout, ['sluice', 'copy', '--query-file', begun])).toEqual([file, inside])
      expect(bashCompletions(stdout, ['sluice', 'jobs', '--state-dir', begun])).toEqual([inside])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('names the shells for another word', async () => {
    const { code, stderr } = await cli(['completion', 'fihs'])
    expect(code).toBe(2)
    expect(stderr).toContain('unknown shell fihs; did you mean fish?')
  })
})

describe('a reader that goes away', () => {
  it('ends it quietly with 141', () => {
    const script = `( sleep 0.3; exec "$NODE" "$MAIN" help ) | true; echo "\${PIPESTATUS[0]}"`
    const printed = bash(script, { NODE: process.execPath, MAIN })
    expect(printed).toEqual({ stdout: '141\n', stderr: '' })
  })
})

function bash(script: string, env: Readonly<Record<string, string>> = {}): { stdout: string; stderr: string } {
  const { stdout, stderr } = spawnSync('bash', ['--norc', '--noprofile', '-c', script], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
  return { stdout, stderr }
}

function bashCompletions(script: string, words: readonly string[]): string[] {
  const quoted = words.map((word) => `'${word}'`).join(' ')
  const { stdout, stderr } = bash(
    `${script}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`,
  )
  expect(stderr).toBe('')
  return stdout.split('\n').filter(Boolean).sort()
}
