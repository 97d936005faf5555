import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findCommand } from '../../../src/cli/command-table.ts'
import { defaultStateDir, mergeSettings } from '../../../src/cli/config.ts'
import { SluiceError } from '../../../src/core/errors.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-config-'))
  mkdirSync(join(folder, 'home', '.config', 'sluice'), { recursive: true })
  mkdirSync(join(folder, 'here'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (where: 'here' | 'home', content: unknown, ending = 'json'): void => {
  const inHome = where === 'home' ? join('home', '.config', 'sluice') : 'here'
  writeFileSync(
    join(folder, inHome, `sluice.config.${ending}`),
    typeof content === 'string' ? content : JSON.stringify(content),
  )
}

const settings = (o: { command?: string; typed?: [string, string][]; env?: Record<string, string> } = {}) => {
  const spec = findCommand(o.command ?? 'copy')
  if (spec === undefined) throw new Error(o.command)
  const env = { HOME: join(folder, 'home'), ...o.env }
  return Object.fromEntries(mergeSettings(spec, new Map(o.typed), { cwd: join(folder, 'here'), env }))
}

const error = (run: () => unknown): SluiceError => {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof SluiceError) return thrown
    throw thrown
  }
  throw new Error('no error')
}

describe('settings', () => {
  it.each([['yes'], ['resume'], ['newJob'], ['dryRun']])('%s is no setting: it is typed each time', (key) => {
    write('here', { [key]: true })
    expect(error(() => settings()).message).toMatch(new RegExp(`: ${key} is no setting: --[a-z-]+ is typed each time$`))
  })

  it('go by flag, environment, the folder, the user', () => {
    write('home', { region: 'user', profile: 'user', delimiter: ';', quote: "'" })
    write('here', { region: 'folder', profile: 'folder', delimiter: '|' })
    expect(settings({ env: { SLUICE_REGION: 'env', SLUICE_PROFILE: 'env' }, typed: [['region', 'flag']] })).toEqual({
      region: 'flag',
      profile: 'env',
      delimiter: '|',
      quote: "'",
    })
  })

  it('are parsed as flags are, lists and numbers too', () => {
    write('here', {
      retryFor: '10m',
      partSize: 1048576,
      select: ['a', 'b'],
      null: 'NA',
      header: false,
      glob: false,
      concurrency: 'auto',
    })
    expect(settings()).toEqual({
      retryFor: 600_000,
      partSize: 1_048_576,
      select: ['a', 'b'],
      null: ['NA'],
      header: false,
      glob: false,
      concurrency: 'auto',
    })
    expect(settings({ command: 'jobs' })).toEqual({})
  })

  it('come from the environment by the name of the flag', () => {
    const env = {
      SLUICE_RETRY_FOR: '0',
      SLUICE_S3_ENDPOINT: 'http://127.0.0.1:1',
      SLUICE_ON_INVALID_UTF8: 'replace',
      SLUICE_HEADER: 'false',
      SLUICE_COLOR: '0',
    }
    expect(settings({ env })).toEqual({
      retryFor: 0,
      s3Endpoint: 'http://127.0.0.1:1',
      onInvalidUtf8: 'replace',
      header: false,
      color: false,
    })
  })

  it('never hold what must be typed each time', () => {
    expect(settings({ env: { SLUICE_YES: 'true', SLUICE_JOB_ID: 'x', SLUICE_NEW_JOB: 'true' } })).toEqual({})
    write('here', { yes: true })
    expect(error(settings)).toMatchObject({ code: 'SLUICE_USAGE' })
  })

  it('name the file and the nearest key', () => {
    write('here', { retryfor: '10m' })
    const thrown = error(settings)
    expect(thrown.code).toBe('SLUICE_USAGE')
    expect(thrown.message).toContain('sluice.config.json: unknown key retryfor; did you mean retryFor?')
  })

  it('refuse what makes no sense, with its place', () => {
    write('here', { concurrency: -1 })
    expect(error(settings).message).toMatch(/sluice\.config\.json: --concurrency -1/)
    write('here', { select: [{}] })
    expect(error(settings).code).toBe('SLUICE_USAGE')
    write('here', '{')
    expect(error(settings).code).toBe('SLUICE_USAGE')
    write('here', '[]')
    expect(error(settings).message).toContain('not a JSON object')
    expect(error(() => settings({ env: { SLUICE_RETRY_FOR: 'soon' }, command: 'ls' })).code).toBe('SLUICE_USAGE')
  })

  it('refuse YAML and keys that are not built by SLUICE_NOT_YET', () => {
    write('here', { rejectLimit: 5 })
    expect(error(settings).code).toBe('SLUICE_NOT_YET')
    write('here', 'retryFor: 10m', 'yaml')
    expect(error(settings).code).toBe('SLUICE_NOT_YET')
  })
})

describe('defaultStateDir', () => {
  it('follows XDG', () => {
    expect(defaultStateDir({ HOME: '/h' })).toBe('/h/.local/state/sluice')
    expect(defaultStateDir({ HOME: '/h', XDG_STATE_HOME: '/s' })).toBe('/s/sluice')
  })
})
