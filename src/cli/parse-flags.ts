import { Command, CommanderError, Option } from 'commander'
import { SluiceError } from '../core/errors.ts'
import type { CommandSpec } from './command-table.ts'
import type { Flag } from './flag.ts'
import type { FlagResult } from './flag-values.ts'
import { FLAGS, flagsOf } from './flags.ts'
import { nearest } from '../core/nearest.ts'

/** Values by the flags' keys. */
export type FlagValues = ReadonlyMap<string, FlagResult>

export interface ParsedLine {
  readonly operands: readonly string[]
  /** Only what was typed. */
  readonly values: FlagValues
}

/**
 * The words after the command's name, by the table of flags. Operands are not counted here: `--help` needs none.
 *
 * @throws SLUICE_USAGE (unknown flag, bad value), SLUICE_NOT_YET
 */
export function parseFlags(spec: CommandSpec, words: readonly string[]): ParsedLine {
  const command = new Command(spec.name).exitOverride().helpOption(false)
  command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined })
  for (const flag of flagsOf(spec.name)) if (flag.built) command.addOption(optionFor(flag))
  const { operands, unknown } = parse(command, words)
  const first = unknown[0]
  if (first !== undefined) throw unknownFlag(spec, first)
  const values = new Map<string, FlagResult>()
  const found: Record<string, FlagResult> = command.opts()
  for (const [key, value] of Object.entries(found)) {
    if (command.getOptionValueSource(key) === 'cli') values.set(key, value)
  }
  return { operands, values }
}

/** Checks the number of operands. @throws SLUICE_USAGE */
export function checkOperands(spec: CommandSpec, operands: readonly string[]): void {
  const missing = spec.operands.slice(operands.length, spec.required)
  if (missing.length > 0) {
    throw new SluiceError('SLUICE_USAGE', `${spec.name} needs ${missing.join(' and ')}`, { hint: usageLine(spec) })
  }
  const extra = operands[spec.operands.length]
  if (extra !== undefined) {
    const hint =
      spec.operands.length > 0 ? `${usageLine(spec)}; quote a glob so that the shell leaves it alone` : usageLine(spec)
    throw new SluiceError('SLUICE_USAGE', `${spec.name} takes ${countOperands(spec)}, and there is more: ${extra}`, {
      hint,
    })
  }
}

/** "sluice copy SOURCE SINK [flags]" */
export function usageLine(spec: CommandSpec): string {
  const operands = spec.operands.map((name, i) => (i < spec.required ? name : `[${name}]`))
  return ['sluice', spec.name, ...operands, '[flags]'].join(' ')
}

function countOperands(spec: CommandSpec): string {
  return spec.operands.length === 0 ? 'no argument' : `${spec.operands.join(' and ')} only`
}

function optionFor(flag: Flag): Option {
  const short = flag.short === null ? '' : `-${flag.short}, `
  const option = new Option(`${short}--${flag.name}${flag.argument === null ? '' : ` <${flag.argument}>`}`)
  if (flag.argument === null) return option
  return option.argParser((text: string, previous: FlagResult | undefined) => {
    const value = flag.value.parse(text, flag.name)
    if (flag.value.repeatable !== true || !Array.isArray(value)) return value
    return Array.isArray(previous) ? [...(previous as string[]), ...(value as string[])] : value
  })
}

function parse(command: Command, words: readonly string[]): { operands: string[]; unknown: string[] } {
  try {
    return command.parseOptions([...words])
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    throw new SluiceError('SLUICE_USAGE', error.message.replace(/^error: /, ''))
  }
}

function unknownFlag(spec: CommandSpec, word: string): SluiceError {
  const dashed = word.split('=', 1)[0] ?? word
  const name = dashed.replace(/^--?/, '')
  const own = flagsOf(spec.name).filter((flag) => dashed === `--${flag.name}`)
  if (own.some((flag) => flag.built)) return new SluiceError('SLUICE_USAGE', `${dashed} takes no value`)
  if (own.length > 0) return notYet(dashed)
  const elsewhere = FLAGS.filter((flag) => dashed === `--${flag.name}`)
  if (elsewhere.length > 0) {
    if (elsewhere.every((flag) => !flag.built)) return notYet(dashed)
    const commands = [...new Set(elsewhere.flatMap((flag) => flag.commands))]
    return new SluiceError('SLUICE_USAGE', `${dashed} is no flag of ${spec.name}`, {
      hint: `it belongs to ${commands.join(', ')}`,
    })
  }
  const meant = nearest(
    name,
    flagsOf(spec.name).map((flag) => flag.name),
  )
  const guess = meant === null ? '' : `; did you mean --${meant}?`
  return new SluiceError('SLUICE_USAGE', `unknown flag ${dashed}${guess}`, { hint: `see sluice ${spec.name} --help` })
}

function notYet(dashed: string): SluiceError {
  return new SluiceError('SLUICE_NOT_YET', `${dashed} is not built yet`)
}
