import { type CommandSpec, COMMANDS, NOT_YET_COMMANDS } from './command-table.ts'
import { FLAG_GROUPS, type Flag, type FlagGroup } from './flag.ts'
import { flagsOf } from './flags.ts'
import { usageLine } from './parse-flags.ts'
import type { Style } from './style.ts'

/** Fits the narrowest terminal that is usual. */
const WIDTH = 80
/** Where the text beside a flag begins; a longer flag has a line of its own. */
const FLAG_COLUMN = 28

/** What `sluice` alone says. */
export function renderShortHelp(version: string): string {
  return [
    `sluice ${version}: bulk load and unload for S3, PostgreSQL and DynamoDB`,
    '',
    'usage: sluice COMMAND [flags]',
    '',
    "  sluice copy s3://bucket/people.csv 'postgres://user@host/db?table=people'",
    '  sluice demo',
    '',
    `commands: ${COMMANDS.map((command) => command.name).join(', ')}`.replace(/(.{1,78})(?: |$)/g, '$1\n').trimEnd(),
    'sluice help tells more, sluice COMMAND --help everything about one',
  ].join('\n')
}

/** `sluice help`. */
export function renderHelp(version: string, style: Style): string {
  const width = Math.max(...COMMANDS.map((command) => signature(command).length)) + 2
  const entry = (name: string, summary: string): string => wrapBeside(`  ${name.padEnd(width)}`, summary)
  return [
    `${style.bold('sluice')} ${version}: bulk load and unload for S3, PostgreSQL and DynamoDB`,
    '',
    `${style.bold('usage')}  sluice COMMAND [flags]`,
    '',
    style.bold('commands'),
    ...COMMANDS.map((command) => entry(signature(command), command.summary)),
    '',
    style.bold('not built yet'),
    ...Object.entries(NOT_YET_COMMANDS).map(([name, summary]) => entry(name, summary)),
    '',
    style.bold('settings'),
    wrapBeside(
      '  ',
      'A flag may also stand in sluice.config.json, in the folder or in ~/.config/sluice, by its name in camelCase ({"retryFor": "10m"}), or in the environment (SLUICE_RETRY_FOR=10m). A flag goes before the environment, that before the folder\'s file, that before yours.',
    ),
    '',
    style.bold('exit codes'),
    wrapBeside(
      '  ',
      '0 all written; 1 failed; 2 usage or configuration, before any data moved; 3 finished, with rejects inside the limit; 4 stopped but resumable; 130, 143 by a signal, after a clean checkpoint.',
    ),
    '',
    'sluice COMMAND --help tells flags and examples of one; --version the version.',
  ].join('\n')
}

/** `sluice COMMAND --help`: examples first, then the flags by group. */
export function renderCommandHelp(spec: CommandSpec, style: Style): string {
  const out = [
    `${style.bold('usage')}  ${usageLine(spec)}${spec.alias === undefined ? '' : `   (or ${spec.alias})`}`,
    '',
    wrapBeside('', capital(spec.summary)),
  ]
  if (spec.details !== undefined) out.push(wrapBeside('', spec.details))
  out.push('', style.bold('examples'))
  for (const example of spec.examples) out.push(`  ${style.dim(`# ${example.about}`)}`, `  ${example.command}`)
  const flags = flagsOf(spec.name)
  for (const group of FLAG_GROUPS) {
    const inGroup = flags.filter((flag) => flag.group === group && flag.built)
    if (inGroup.length > 0) out.push('', style.bold(title(group)), ...inGroup.map(renderFlag))
  }
  const later = flags.filter((flag) => !flag.built)
  if (later.length > 0)
    out.push('', style.bold('not built yet'), wrapBeside('  ', later.map((flag) => `--${flag.name}`).join(' ')))
  return out.join('\n')
}

function renderFlag(flag: Flag): string {
  const short = flag.short === null ? '' : `-${flag.short}, `
  const head = `  ${short}--${flag.name}${flag.argument === null ? '' : ` ${flag.argument}`}`
  const choices =
    flag.value.choices === undefined || flag.value.choices.length < 2 ? '' : ` (${flag.value.choices.join(', ')})`
  const about = `${flag.about}${choices}`
  if (head.length < FLAG_COLUMN - 1) return wrapBeside(head.padEnd(FLAG_COLUMN), about)
  return `${head}\n${wrapBeside(' '.repeat(FLAG_COLUMN), about)}`
}

function signature(spec: CommandSpec): string {
  return [spec.name, ...spec.operands.map((name, i) => (i < spec.required ? name : `[${name}]`))].join(' ')
}

function title(group: FlagGroup): string {
  return group === 'this command' ? 'flags of this command' : group
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

/** Text wrapped at 80 columns, its further lines indented as far as `head` is long. */
function wrapBeside(head: string, text: string): string {
  const indent = ' '.repeat(head.length)
  const out: string[] = []
  let line = head
  for (const word of text.split(' ')) {
    const first = line.length === head.length
    if (!first && line.length + 1 + word.length > WIDTH) {
      out.push(line)
      line = indent + word
    } else line += first ? word : ` ${word}`
  }
  return [...out, line].join('\n')
}
