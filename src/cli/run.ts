import { once } from 'node:events'
import { SluiceError, toSluiceError } from '../core/errors.ts'
import { type CommandName, type CommandSpec, COMMANDS, findCommand, NOT_YET_COMMANDS } from './command-table.ts'
import { mergeSettings } from './config.ts'
import {
  type CommandContext,
  createScreen,
  type OwnSettings,
  type RunCommand,
  splitSettings,
  stateDirOf,
} from './context.ts'
import { errorExitCode, EXIT } from './exit-code.ts'
import { Interruption } from './interruption.ts'
import { nearest } from './nearest.ts'
import { checkOperands, type ParsedLine, parseFlags } from './parse-flags.ts'
import { renderError, reportedError } from './report.ts'

/** Each command is loaded when it is run, and not before. */
const LOADERS: Readonly<Record<CommandName, () => Promise<{ readonly run: RunCommand }>>> = {
  copy: () => import('./commands/copy.ts'),
  plan: () => import('./commands/plan.ts'),
  inspect: () => import('./commands/inspect.ts'),
  cat: () => import('./commands/cat.ts'),
  ls: () => import('./commands/ls.ts'),
  verify: () => import('./commands/verify.ts'),
  jobs: () => import('./commands/jobs.ts'),
  show: () => import('./commands/show.ts'),
  resume: () => import('./commands/resume.ts'),
  dev: () => import('./commands/dev.ts'),
  demo: () => import('./commands/demo.ts'),
  completion: () => import('./commands/completion.ts'),
  help: () => import('./commands/help.ts'),
}

export interface CommandLine {
  /** argv without Node and the script. */
  readonly words: readonly string[]
  readonly version: string
}

/** Runs a command line and ends the process with its exit code. */
export async function run(line: CommandLine): Promise<never> {
  const interruption = new Interruption()
  interruption.listen()
  const code = await dispatch(line, interruption)
  await flush(process.stdout)
  process.exit(interruption.brokenPipe ? EXIT.brokenPipe : code)
}

async function dispatch(line: CommandLine, interruption: Interruption): Promise<number> {
  let own: OwnSettings = {}
  try {
    const { spec, rest } = chooseCommand(line.words)
    if (spec === null) return await shortHelp(line)
    const parsed = parseFlags(spec, rest)
    own = splitSettings(spec, parsed.values).own
    if (parsed.values.has('help')) return await commandHelp(spec, own)
    checkOperands(spec, parsed.operands)
    const context = createContext(spec, parsed, { version: line.version, interruption })
    own = context.own
    const command = await LOADERS[spec.name]()
    return await command.run(context)
  } catch (thrown) {
    return report(thrown, own, interruption)
  }
}

/** The command that the first word names. `--help` anywhere before it is `help`; no word at all is null. */
function chooseCommand(words: readonly string[]): { spec: CommandSpec | null; rest: readonly string[] } {
  const first = words[0]
  if (first === undefined) return { spec: null, rest: [] }
  if (first === '--help' || first === '-h') return { spec: commandNamed('help'), rest: words.slice(1) }
  if (first.startsWith('-') && first !== '-') {
    throw new SluiceError('SLUICE_USAGE', `${first} comes before a command`, {
      hint: 'sluice COMMAND [flags]; sluice help lists the commands',
    })
  }
  return { spec: commandNamed(first), rest: words.slice(1) }
}

/** @throws SLUICE_USAGE, SLUICE_NOT_YET */
function commandNamed(name: string): CommandSpec {
  const spec = findCommand(name)
  if (spec !== undefined) return spec
  if (Object.hasOwn(NOT_YET_COMMANDS, name)) {
    throw new SluiceError('SLUICE_NOT_YET', `sluice ${name} is not built yet (${NOT_YET_COMMANDS[name] ?? ''})`, {
      hint: 'sluice help lists what is',
    })
  }
  const known = [
    ...COMMANDS.flatMap((command) => [command.name, ...(command.alias === undefined ? [] : [command.alias])]),
    ...Object.keys(NOT_YET_COMMANDS),
  ]
  const meant = nearest(name, known)
  throw new SluiceError('SLUICE_USAGE', `unknown command ${name}${meant === null ? '' : `; did you mean ${meant}?`}`, {
    hint: 'sluice help lists the commands',
  })
}

function createContext(
  spec: CommandSpec,
  parsed: ParsedLine,
  rest: Pick<CommandContext, 'version' | 'interruption'>,
): CommandContext {
  const { env } = process
  const { options, own } = splitSettings(spec, mergeSettings(spec, parsed.values, { cwd: process.cwd(), env }))
  const { screen, style, outStyle } = createScreen(own, env)
  rest.interruption.notify((name) => {
    screen.print('warn', `${style.yellow('stopping:')} ${name} came; once more ends it at once`)
  })
  return {
    ...rest,
    spec,
    operands: parsed.operands,
    options,
    own,
    env,
    stateDir: stateDirOf(own, env),
    screen,
    style,
    outStyle,
    print: printOut,
  }
}

async function shortHelp(line: CommandLine): Promise<number> {
  const { renderShortHelp } = await import('./help.ts')
  process.stderr.write(`${renderShortHelp(line.version)}\n`)
  return EXIT.usage
}

async function commandHelp(spec: CommandSpec, own: OwnSettings): Promise<number> {
  const { renderCommandHelp } = await import('./help.ts')
  await printOut(`${renderCommandHelp(spec, createScreen(own, process.env).outStyle)}\n`)
  return EXIT.done
}

/** An error that no job's result carries. With `--json` the object is on standard output too. */
function report(thrown: unknown, own: OwnSettings, interruption: Interruption): number {
  const error = toSluiceError(thrown)
  const code = errorExitCode(error, interruption.received)
  if (interruption.brokenPipe) return code
  const { screen, style } = createScreen(own, process.env)
  screen.line(renderError(reportedError(error), style))
  if (own.verbose === true) screen.line(style.dim(stackOf(thrown)))
  if (own.json === true) process.stdout.write(`${JSON.stringify({ status: 'failed', error: reportedError(error) })}\n`)
  return code
}

function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown.cause instanceof Error ? `\ncaused by ${thrown.cause.stack ?? thrown.cause.message}` : ''
  return `${thrown.stack ?? thrown.message}${cause}`
}

async function printOut(text: string): Promise<void> {
  if (!process.stdout.write(text)) await Promise.race([once(process.stdout, 'drain'), once(process.stdout, 'close')])
}

/** Standard output may be a pipe that is written behind our back. */
async function flush(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.destroyed || stream.writableLength === 0) return
  await new Promise<void>((resolve) => stream.write('', () => resolve()))
}
