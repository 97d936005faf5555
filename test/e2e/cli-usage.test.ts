import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cli, ended, startCli } from './cli-process.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-usage-'))
  writeFileSync(join(folder, 'people.csv'), 'id,name\n1,Ada\n')
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Runs in the folder; state, if there were any, would go to it too. */
const sluice = (...words: string[]) => cli(words, { cwd: folder, env: { XDG_STATE_HOME: join(folder, 'state') } })

describe('usage errors', () => {
  it.each<[string, string[], string]>([
    ['version as a command', ['version'], 'error: unknown command version; did you mean --version?  [SLUICE_USAGE]'],
    [
      'unknown action',
      ['table', 'crate', 'dynamodb:///T'],
      'error: table crate: nothing to be done with a table; did you mean create?  [SLUICE_USAGE]',
    ],
    ['unknown command', ['cpoy'], 'error: unknown command cpoy; did you mean copy?  [SLUICE_USAGE]'],
    ['flag before the command', ['--quiet', 'copy'], 'error: --quiet comes before a command  [SLUICE_USAGE]'],
    [
      'unknown flag',
      ['copy', 'people.csv', 'out.csv', '--delimter', ';'],
      'error: unknown flag --delimter; did you mean --delimiter?  [SLUICE_USAGE]',
    ],
    [
      'unknown value',
      ['copy', 'people.csv', 'out.csv', '--if-exists', 'overwrit'],
      'error: --if-exists overwrit: unknown value; did you mean overwrite?  [SLUICE_USAGE]',
    ],
    [
      'bad size',
      ['copy', 'people.csv', 'out.csv', '--part-size', '8M'],
      'error: --part-size 8M: not a size  [SLUICE_USAGE]',
    ],
    [
      'bad duration',
      ['copy', 'people.csv', 'out.csv', '--retry-for', '5'],
      'error: --retry-for 5: not a duration  [SLUICE_USAGE]',
    ],
    ['missing operand', ['copy', 'people.csv'], 'error: copy needs SINK  [SLUICE_USAGE]'],
    [
      'too many operands',
      ['copy', 'people.csv', 'a', 'b'],
      'error: copy takes SOURCE and SINK only, and there is more: b  [SLUICE_USAGE]',
    ],
    [
      'resume without a job',
      ['copy', 'people.csv', 'out.csv', '--resume'],
      'error: --resume needs --job-id  [SLUICE_USAGE]',
    ],
    [
      'truncate without --yes',
      ['copy', 'people.csv', 'postgres://u:secret@127.0.0.1:1/db?table=t', '--mode', 'truncate'],
      'error: --mode truncate deletes every row of postgres://u:***@127.0.0.1:1/db?table=t  [SLUICE_USAGE]',
    ],
    [
      'a mode that the sink lacks',
      ['copy', 'people.csv', 'postgres://u:secret@127.0.0.1:1/db?table=t', '--mode', 'upsert'],
      'error: --mode upsert into PostgreSQL is specified and not built yet  [SLUICE_NOT_YET]',
    ],
    [
      'a mode, and a sink that is no table',
      ['copy', 'people.csv', 'out.csv', '--mode', 'truncate', '--yes'],
      'error: --mode truncate is about the rows of a table, and the sink is a file  [SLUICE_USAGE]',
    ],
    [
      'a flag about a table, and a sink that is none',
      ['copy', 'people.csv', 'out.csv', '--create'],
      'error: --create is about a table of PostgreSQL, and the sink is file  [SLUICE_USAGE]',
    ],
    [
      'SQL to be run, and a sink that runs none',
      ['copy', 'people.csv', 'out.csv', '--before-sql', 'DELETE FROM t'],
      'error: --before-sql is about a table of PostgreSQL, and the sink is file  [SLUICE_USAGE]',
    ],
    [
      'a table to be made, of the other database',
      ['plan', 'people.csv', 'postgres://u:secret@127.0.0.1:1/db?table=t', '--create-table'],
      'error: --create-table is about a table of DynamoDB, and the sink is PostgreSQL  [SLUICE_USAGE]',
    ],
    [
      'a query, and a source that takes none',
      ['copy', 'people.csv', 'out.csv', '--query', 'SELECT 1'],
      'error: --query is about a table of PostgreSQL, and the source is file  [SLUICE_USAGE]',
    ],
    [
      'a flag that is not built',
      ['copy', 'people.csv', 'out.csv', '--reject-limit', '5'],
      'error: --reject-limit is not built yet  [SLUICE_NOT_YET]',
    ],
    [
      'a value that is not built',
      ['copy', 'people.csv', 'out.csv', '--sink-compression', 'bzip2'],
      'error: --sink-compression bzip2 is not built yet  [SLUICE_NOT_YET]',
    ],
  ])('%s', async (_, words, message) => {
    const { code, stdout, stderr } = await sluice(...words)
    expect({ code, stdout, first: stderr.split('\n')[0] }).toEqual({ code: 2, stdout: '', first: message })
    expect(stderr).toMatch(/^ hint: ./m)
    expect(readdirSync(folder)).toEqual(['people.csv'])
  })

  it.each(['retry-rejects', 'compare', 'pg', 'uploads', 'worker', 'lambda', 'serve'])(
    '%s is not built yet',
    async (name) => {
      const { code, stderr } = await sluice(name, '--some-flag')
      expect(code).toBe(2)
      expect(stderr).toContain(`sluice ${name} is not built yet`)
      expect(stderr).toContain('[SLUICE_NOT_YET]')
    },
  )

  it('are the same by help for a command', async () => {
    expect((await sluice('help', 'compare')).stderr).toContain('[SLUICE_NOT_YET]')
    expect((await sluice('help', 'verfy')).stderr).toContain('did you mean verify?')
  })

  it('are an object on standard output, too, with --json', async () => {
    const { code, stdout } = await sluice('copy', 'people.csv', 'out.csv', '--json', '--mode', 'truncate')
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({ status: 'failed', error: { code: 'SLUICE_USAGE', where: null } })
    expect(stdout.trimEnd().split('\n')).toHaveLength(1)
  })
})

describe('with SINK -', () => {
  it.each([[['--mode', 'truncate']], [['--nonsense']]])(
    '%j: the object is the last line of standard error',
    async (flags) => {
      const { code, stdout, stderr } = await sluice('copy', 'people.csv', '--delimiter', ';', '-', '--json', ...flags)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
        status: 'failed',
        error: { code: 'SLUICE_USAGE' },
      })
    },
  )
})

it('a command without a job that a signal stops tells of no resume', async () => {
  const child = startCli(['cat', '-', '--as', 'jsonl', '--source-format', 'csv'], { cwd: folder, stdin: 'open' })
  child.stdin.write('id\n'.repeat(100_000))
  const end = ended(child)
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  const { code, stderr } = await end
  child.stdin.destroy()
  expect(code).toBe(143)
  expect(stderr).toContain('[SLUICE_INTERRUPTED]')
  expect(stderr).not.toContain('resume')
})

describe('config file', () => {
  it('is read in the folder, and a wrong key names the right one', async () => {
    writeFileSync(join(folder, 'sluice.config.json'), JSON.stringify({ ifExist: 'skip' }))
    const { code, stderr } = await sluice('copy', 'people.csv', 'out.csv')
    expect(code).toBe(2)
    expect(stderr).toContain('unknown key ifExist; did you mean ifExists?')
    expect(existsSync(join(folder, 'out.csv'))).toBe(false)
  })

  it('that is broken does not keep help away', async () => {
    writeFileSync(join(folder, 'sluice.config.json'), '{')
    expect(await sluice('help')).toMatchObject({ code: 0, stderr: '' })
    expect(await sluice('help', 'copy')).toMatchObject({ code: 0, stderr: '' })
    expect((await sluice('jobs')).code).toBe(2)
  })

  it('in YAML is refused, not passed over', async () => {
    writeFileSync(join(folder, 'sluice.config.yaml'), 'retryFor: 1m\n')
    const { code, stderr } = await sluice('jobs')
    expect(code).toBe(2)
    expect(stderr).toContain('YAML is not read yet')
  })
})
