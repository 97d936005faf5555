import { once } from 'node:events'
import { chooseCommand } from './choose-command.ts'
import type { CommandName, CommandSpec } from './command-table.ts'
import { mergeSettings } from './config.ts'
import {
  type CommandContext,
  createScreen,
  type OwnSettings,
  type RunCommand,
  splitSettings,
  stateDirOf,
} from './context.ts'
import { EXIT } from './exit-code.ts'
import { reportFailure } from './failure.ts'
import { Interruption } from './interruption.ts'
import { checkOperands, type ParsedLine, parseFlags } from './parse-flags.ts'
import { withQueryFile } from './query-file.ts'

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
  table: () => import('./commands/table.ts'),
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
  let operands: readonly string[] | null = null
  const fail = (thrown: unknown): number =>
    reportFailure(interruption.causeOf(thrown), { words: line.words, operands, own, interruption })
  process.once('uncaughtException', (thrown) => process.exit(fail(thrown)))
  try {
    const { spec, rest } = chooseCommand(line.words)
    if (spec === null) return await shortHelp(line)
    const parsed = parseFlags(spec, rest)
    operands = parsed.operands
    own = splitSettings(spec, parsed.values).own
    if (parsed.values.has('help')) return await commandHelp(spec, own)
    checkOperands(spec, parsed.operands)
    const context = createContext(spec, parsed, { version: line.version, interruption })
    own = context.own
    const command = await LOADERS[spec.name]()
    return await command.run(context)
  } catch (thrown) {
    return fail(thrown)
  }
}

function createContext(
  spec: CommandSpec,
  parsed: ParsedLine,
  rest: Pick<CommandContext, 'version' | 'interruption'>,
): CommandContext {
  const { env } = process
  // Help is there where a config file is broken, too.
  const settings =
    spec.name === 'help' ? parsed.values : mergeSettings(spec, parsed.values, { cwd: process.cwd(), env })
  const { options: given, own } = splitSettings(spec, settings)
  const options = withQueryFile(given, own)
  const { screen, style, outStyle } = createScreen(own, env)
  rest.interruption.notify((name) => {
    screen.print('warn', `${style.yellow('stopping:')} ${name} came; once more ends it at once`)
  })
  return {
    ...rest,
    spec,
    operands: parsed.operands,
    options,
    defaults: [...settings.keys()].filter((key) => !parsed.values.has(key)),
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

async function printOut(text: string): Promise<void> {
  if (!process.stdout.write(text)) await Promise.race([once(process.stdout, 'drain'), once(process.stdout, 'close')])
}

/** Standard output may be a pipe that is written behind our back. */
async function flush(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.destroyed || stream.writableLength === 0) return
  await new Promise<void>((resolve) => stream.write('', () => resolve()))
}
