import type { CommandName } from './command-table.ts'
import type { FlagValue } from './flag-values.ts'

/** Groups of flags, in the order of the help (cli.md). */
export const FLAG_GROUPS = [
  'this command',
  'format',
  'CSV',
  'mapping',
  'mode',
  'bad rows',
  'PostgreSQL',
  'DynamoDB',
  'S3',
  'output files',
  'speed',
  'job',
  'output',
] as const

export type FlagGroup = (typeof FLAG_GROUPS)[number]

/** One flag: what options, help, completion, config file and environment are made from. */
export interface Flag {
  /** As it is typed, without the dashes. */
  readonly name: string
  /** Its name in a config file and in the library's options. */
  readonly key: string
  readonly short: string | null
  /** What its value is called in the help; null for a switch. */
  readonly argument: string | null
  readonly about: string
  readonly group: FlagGroup
  readonly commands: readonly CommandName[]
  readonly value: FlagValue
  readonly built: boolean
  /** Whether it is one of the library's CopyOptions, or of the command line alone. */
  readonly scope: 'options' | 'cli'
  /** Whether environment and config file may hold it. */
  readonly configurable: boolean
}

type FlagDetails = Pick<Flag, 'group' | 'commands' | 'value'> &
  Partial<Pick<Flag, 'key' | 'short' | 'built' | 'scope' | 'configurable'>>

/** A flag from its spelling in the help: `name` or `name ARGUMENT`. */
export function flag(spelling: string, about: string, details: FlagDetails): Flag {
  const [name = '', argument = null] = spelling.split(' ')
  return {
    name,
    key: camelCase(name),
    argument,
    about,
    short: null,
    built: true,
    scope: 'options',
    configurable: true,
    ...details,
  }
}

/** "retry-for" → "retryFor" */
function camelCase(name: string): string {
  return name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
