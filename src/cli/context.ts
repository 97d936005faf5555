import type { CopyOptions, Environment } from '../core/options.ts'
import type { CommandSpec } from './command-table.ts'
import { defaultStateDir } from './config.ts'
import { flagsOf } from './flags.ts'
import type { Interruption } from './interruption.ts'
import type { FlagValues } from './parse-flags.ts'
import type { ProgressMode } from './progress.ts'
import { dumbTerminal, type LogLevel, Screen } from './screen.ts'
import { createStyle, type Style, wantsColor } from './style.ts'

/** Settings of the command line alone: what the library does not know. */
export interface OwnSettings {
  readonly jobId?: string
  readonly resume?: boolean
  readonly newJob?: boolean
  readonly stateDir?: string
  readonly dryRun?: boolean
  readonly queryFile?: string
  readonly rows?: number
  readonly full?: boolean
  readonly ddl?: 'postgres'
  readonly as?: 'csv' | 'jsonl'
  readonly limit?: number
  readonly postgres?: boolean
  readonly s3?: boolean
  readonly dynamodb?: boolean
  /** A folder for dev, a switch for demo. */
  readonly keep?: string | boolean
  readonly progress?: ProgressMode
  readonly json?: boolean
  readonly quiet?: boolean
  readonly verbose?: boolean
  readonly logLevel?: LogLevel
  readonly color?: boolean
}

/** What a command is given. */
export interface CommandContext {
  readonly spec: CommandSpec
  readonly operands: readonly string[]
  readonly options: CopyOptions
  /** Keys of what config file and environment say, and the command line does not. */
  readonly defaults: readonly string[]
  readonly own: OwnSettings
  readonly env: Environment
  readonly stateDir: string
  readonly interruption: Interruption
  /** Standard error. */
  readonly screen: Screen
  /** For standard error. */
  readonly style: Style
  /** For standard output. */
  readonly outStyle: Style
  readonly version: string
  /** Writes to standard output, with back-pressure. */
  readonly print: (text: string) => Promise<void>
}

/** A command: resolves with the exit code. */
export type RunCommand = (context: CommandContext) => Promise<number>

/** The two halves of a command's settings, told apart by the table of flags. */
export function splitSettings(spec: CommandSpec, settings: FlagValues): { options: CopyOptions; own: OwnSettings } {
  const inScope = (scope: 'options' | 'cli'): object => {
    const keys = new Set(
      flagsOf(spec.name)
        .filter((flag) => flag.scope === scope)
        .map((flag) => flag.key),
    )
    return Object.fromEntries([...settings].filter(([key]) => keys.has(key)))
  }
  // The table's parsers give each key the type that these interfaces say; the table's test holds them together.
  return { options: inScope('options') as CopyOptions, own: inScope('cli') as OwnSettings }
}

/** The state folder that holds for a command. */
export function stateDirOf(own: OwnSettings, env: Environment): string {
  return own.stateDir ?? defaultStateDir(env)
}

/** Standard error and its look. `-q` shows errors only, and no progress; `-v` shows everything. */
export function createScreen(own: OwnSettings, env: Environment): { screen: Screen; style: Style; outStyle: Style } {
  const level: LogLevel = own.quiet === true ? 'error' : (own.logLevel ?? (own.verbose === true ? 'debug' : 'info'))
  const color = (stream: NodeJS.WriteStream): boolean => wantsColor({ flag: own.color, env, isTerminal: stream.isTTY })
  return {
    screen: new Screen(env['TERM'] === 'dumb' ? dumbTerminal(process.stderr) : process.stderr, level),
    style: createStyle(color(process.stderr)),
    outStyle: createStyle(color(process.stdout)),
  }
}
