import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { SluiceError } from '../core/errors.ts'
import type { Environment } from '../core/options.ts'
import type { CommandSpec } from './command-table.ts'
import type { Flag } from './flag.ts'
import type { FlagResult } from './flag-values.ts'
import { FLAGS, flagsOf, variableOf } from './flags.ts'
import { nearest } from '../core/nearest.ts'
import type { FlagValues } from './parse-flags.ts'

const FILE_NAME = 'sluice.config'

/** Where settings come from besides the command line. */
export interface Surroundings {
  readonly cwd: string
  readonly env: Environment
}

/**
 * What holds for a command, by the precedence of cli.md: flag, then environment (`SLUICE_RETRY_FOR` for `--retry-for`), then
 * `sluice.config.json` in the folder, then the user's in `$XDG_CONFIG_HOME/sluice` (`~/.config/sluice`). What is absent has its default.
 *
 * @throws SLUICE_USAGE (an unknown key, a bad value, a file that is no JSON), SLUICE_NOT_YET (a YAML file)
 */
export function mergeSettings(spec: CommandSpec, typed: FlagValues, around: Surroundings): FlagValues {
  const flags = flagsOf(spec.name).filter((flag) => flag.built && flag.configurable)
  const merged = new Map<string, FlagResult>()
  for (const file of configFiles(around).reverse()) {
    for (const [key, value] of readConfig(file, flags)) merged.set(key, value)
  }
  for (const flag of flags) {
    const name = variableOf(flag.key)
    const value = around.env[name]
    if (value !== undefined && value !== '') merged.set(flag.key, fromText(flag, value, name))
  }
  for (const [key, value] of typed) merged.set(key, value)
  return merged
}

/** Where jobs are kept unless `--state-dir` says otherwise (XDG Base Directory Specification). */
export function defaultStateDir(env: Environment): string {
  return join(env['XDG_STATE_HOME'] || join(home(env), '.local', 'state'), 'sluice')
}

/** Config files that are there, the strongest first. */
function configFiles(around: Surroundings): string[] {
  const folders = [around.cwd, join(around.env['XDG_CONFIG_HOME'] || join(home(around.env), '.config'), 'sluice')]
  for (const folder of folders) {
    for (const ending of ['yaml', 'yml']) {
      const path = join(folder, `${FILE_NAME}.${ending}`)
      if (existsSync(path))
        throw new SluiceError('SLUICE_NOT_YET', `${path}: YAML is not read yet`, {
          hint: `write it as ${FILE_NAME}.json`,
        })
    }
  }
  return folders.map((folder) => join(folder, `${FILE_NAME}.json`)).filter((path) => existsSync(path))
}

function readConfig(path: string, flags: readonly Flag[]): Map<string, FlagResult> {
  const found = new Map<string, FlagResult>()
  for (const [key, value] of Object.entries(parseJson(path))) {
    const known = FLAGS.filter((flag) => flag.key === key && flag.configurable)
    if (known.length === 0) throw unknownKey(path, key)
    if (!known.some((flag) => flag.built)) throw new SluiceError('SLUICE_NOT_YET', `${path}: ${key} is not built yet`)
    const flag = flags.find((candidate) => candidate.key === key)
    if (flag !== undefined) found.set(key, fromJson(flag, value, path))
  }
  return found
}

function parseJson(path: string): object {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new SluiceError('SLUICE_USAGE', `${path}: ${why}`, {
      hint: 'a config file is one JSON object of flags in camelCase',
    })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SluiceError('SLUICE_USAGE', `${path}: not a JSON object`, {
      hint: 'e.g. {"retryFor": "10m", "concurrency": 4}',
    })
  }
  return value
}

function unknownKey(path: string, key: string): SluiceError {
  const typed = FLAGS.find((flag) => flag.key === key)
  if (typed !== undefined)
    return new SluiceError('SLUICE_USAGE', `${path}: ${key} is no setting: --${typed.name} is typed each time`, {
      hint: 'take it out of the file',
    })
  const meant = nearest(key, [...new Set(FLAGS.filter((flag) => flag.configurable).map((flag) => flag.key))])
  const guess = meant === null ? '' : `; did you mean ${meant}?`
  return new SluiceError('SLUICE_USAGE', `${path}: unknown key ${key}${guess}`, {
    hint: 'keys are the names of the flags in camelCase',
  })
}

function fromJson(flag: Flag, value: unknown, path: string): FlagResult {
  if (Array.isArray(value) && flag.value.repeatable === true) {
    return value.flatMap((item: unknown) => {
      const parsed = fromJson(flag, item, path)
      return Array.isArray(parsed) ? (parsed as string[]) : [String(parsed)]
    })
  }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return fromText(flag, String(value), path)
  throw new SluiceError('SLUICE_USAGE', `${path}: ${flag.key} holds a value that makes no sense`, {
    hint: `what --${flag.name} takes, as text or number`,
  })
}

function fromText(flag: Flag, text: string, where: string): FlagResult {
  try {
    return flag.value.parse(text, flag.name)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw new SluiceError(error.code, `${where}: ${error.message}`, { hint: error.hint })
  }
}

function home(env: Environment): string {
  return env['HOME'] || homedir()
}
