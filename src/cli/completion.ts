import { type CommandSpec, COMMANDS } from './command-table.ts'
import type { Flag } from './flag.ts'
import { flagsOf } from './flags.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** A script that completes commands, flags and the words that flags take; operands complete as files do. */
export function renderCompletion(shell: Shell): string {
  return { bash: renderBash, zsh: renderZsh, fish: renderFish }[shell]()
}

/** Words for the first operand, where they are known. */
function operandWords(spec: CommandSpec): readonly string[] {
  if (spec.name === 'completion') return SHELLS
  if (spec.name === 'table') return ['create', 'describe', 'delete', 'dynamodb://']
  return spec.name === 'help' ? COMMANDS.map((command) => command.name) : []
}

function names(spec: CommandSpec): string[] {
  return spec.alias === undefined ? [spec.name] : [spec.name, spec.alias]
}

function builtFlags(spec: CommandSpec): Flag[] {
  return flagsOf(spec.name).filter((flag) => flag.built)
}

function renderBash(): string {
  const out = [
    '# bash completion for sluice',
    // A name a line: names have blanks. compgen -W needs the usual IFS.
    String.raw`_sluice_files() { local IFS=$'\n'; COMPREPLY=( $(compgen "$1" -- "$2") ); }`,
    '_sluice() {',
    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=''",
    '  COMPREPLY=()',
    '  if (( COMP_CWORD == 1 )); then',
  ]
  out.push(
    `    COMPREPLY=( $(compgen -W '${COMMANDS.flatMap(names).join(' ')} --help --version' -- "$cur") )`,
    '    return',
    '  fi',
  )
  out.push('  case "${COMP_WORDS[1]} $prev" in')
  for (const spec of COMMANDS) {
    for (const flag of builtFlags(spec)) {
      if (flag.argument === null) continue
      const choices = flag.value.choices ?? []
      const patterns = names(spec)
        .map((name) => `'${name} --${flag.name}'`)
        .join('|')
      const files = { DIR: '_sluice_files -d "$cur"', FILE: '_sluice_files -f "$cur"' }[flag.argument] ?? ':'
      out.push(
        `    ${patterns}) ${choices.length > 0 ? `COMPREPLY=( $(compgen -W '${choices.join(' ')}' -- "$cur") )` : files}; return ;;`,
      )
    }
  }
  out.push('  esac', '  case "${COMP_WORDS[1]}" in')
  for (const spec of COMMANDS) {
    const flags = builtFlags(spec)
      .map((flag) => `--${flag.name}`)
      .join(' ')
    const operands = operandWords(spec).join(' ')
    out.push(
      `    ${names(spec).join('|')}) if [[ $cur == -* ]]; then words='${flags}'; else words='${operands}'; fi ;;`,
    )
  }
  out.push(
    '  esac',
    '  if [[ -n $words ]]; then COMPREPLY=( $(compgen -W "$words" -- "$cur") )',
    '  else _sluice_files -f "$cur"; fi',
    '}',
  )
  out.push('complete -o filenames -o bashdefault -F _sluice sluice', '')
  return out.join('\n')
}

function renderZsh(): string {
  const quote = (text: string): string => text.replaceAll("'", String.raw`'\''`)
  const inBrackets = (text: string): string => quote(text).replace(/[[\]:]/g, String.raw`\$&`)
  const out = ['#compdef sluice', '# zsh completion for sluice', '_sluice() {', '  local -a commands', '  commands=(']
  for (const spec of COMMANDS)
    for (const name of names(spec)) out.push(`    '${name}:${quote(spec.summary.replaceAll(':', ','))}'`)
  out.push('  )', '  if (( CURRENT == 2 )); then _describe command commands; return; fi', '  case $words[2] in')
  for (const spec of COMMANDS) {
    out.push(`    ${names(spec).join('|')})`, '      shift words; (( CURRENT-- ))', '      _arguments \\')
    for (const flag of builtFlags(spec)) {
      const repeat = flag.value.repeatable === true ? '*' : ''
      const values =
        flag.value.choices === undefined
          ? flag.argument === 'DIR'
            ? '_files -/'
            : ' '
          : `(${flag.value.choices.join(' ')})`
      const argument = flag.argument === null ? '' : `:${inBrackets(flag.argument.toLowerCase())}:${values}`
      out.push(`        '${repeat}--${flag.name}[${inBrackets(flag.about)}]${argument}' \\`)
    }
    const words = operandWords(spec)
    out.push(`        '*:argument:${words.length > 0 ? `(${words.join(' ')})` : '_files'}'`, '      ;;')
  }
  out.push('  esac', '}', 'if [ "$funcstack[1]" = _sluice ]; then _sluice "$@"; else compdef _sluice sluice; fi', '')
  return out.join('\n')
}

function renderFish(): string {
  const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`
  const out = ['# fish completion for sluice']
  for (const spec of COMMANDS) {
    for (const name of names(spec))
      out.push(`complete -c sluice -n __fish_use_subcommand -f -a ${name} -d ${quote(spec.summary)}`)
  }
  for (const spec of COMMANDS) {
    const when = quote(`__fish_seen_subcommand_from ${names(spec).join(' ')}`)
    for (const flag of builtFlags(spec)) {
      const short = flag.short === null ? '' : ` -s ${flag.short}`
      const choices = flag.value.choices === undefined ? '' : ` -a ${quote(flag.value.choices.join(' '))}`
      const argument = flag.argument === null ? '' : flag.argument === 'DIR' ? ' -r' : ' -x'
      out.push(`complete -c sluice -n ${when}${short} -l ${flag.name}${argument}${choices} -d ${quote(flag.about)}`)
    }
    const words = operandWords(spec)
    if (words.length > 0) out.push(`complete -c sluice -n ${when} -f -a ${quote(words.join(' '))}`)
  }
  return `${out.join('\n')}\n`
}
