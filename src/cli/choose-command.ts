import { SluiceError } from '../core/errors.ts'
import { type CommandSpec, COMMANDS, findCommand, NOT_YET_COMMANDS } from './command-table.ts'
import { nearest } from '../core/nearest.ts'

const HINT = 'sluice help lists the commands'

/** The command that the first word names, and the words after it; no word at all is null. @throws SLUICE_USAGE, SLUICE_NOT_YET */
export function chooseCommand(words: readonly string[]): { spec: CommandSpec | null; rest: readonly string[] } {
  const [first, ...rest] = words
  if (first === undefined) return { spec: null, rest }
  if (first === '--help' || first === '-h') return { spec: commandNamed('help'), rest }
  if (first.startsWith('-'))
    throw new SluiceError('SLUICE_USAGE', `${first} comes before a command`, {
      hint: `sluice COMMAND [flags]; ${HINT}`,
    })
  return { spec: commandNamed(first), rest }
}

/** @throws SLUICE_USAGE (unknown; names the nearest), SLUICE_NOT_YET */
export function commandNamed(name: string): CommandSpec {
  const spec = findCommand(name)
  if (spec !== undefined) return spec
  if (Object.hasOwn(NOT_YET_COMMANDS, name)) {
    throw new SluiceError('SLUICE_NOT_YET', `sluice ${name} is not built yet (${NOT_YET_COMMANDS[name] ?? ''})`, {
      hint: HINT,
    })
  }
  const built = COMMANDS.flatMap((command) => [command.name, ...(command.alias === undefined ? [] : [command.alias])])
  if (name === 'version')
    throw new SluiceError('SLUICE_USAGE', 'unknown command version; did you mean --version?', { hint: HINT })
  const meant = nearest(name, [...built, ...Object.keys(NOT_YET_COMMANDS)])
  throw new SluiceError('SLUICE_USAGE', `unknown command ${name}${meant === null ? '' : `; did you mean ${meant}?`}`, {
    hint: HINT,
  })
}
