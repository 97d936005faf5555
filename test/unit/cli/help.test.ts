import { describe, expect, it } from 'vitest'
import { COMMANDS, NOT_YET_COMMANDS } from '../../../src/cli/command-table.ts'
import { renderCompletion, SHELLS } from '../../../src/cli/completion.ts'
import { flagsOf } from '../../../src/cli/flags.ts'
import { renderCommandHelp, renderHelp } from '../../../src/cli/help.ts'
import { createStyle } from '../../../src/cli/style.ts'

const style = createStyle(false)

describe('help', () => {
  it('lists every command, built or not', () => {
    const text = renderHelp('1.2.3', style)
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([])
    for (const name of [...COMMANDS.map((command) => command.name), ...Object.keys(NOT_YET_COMMANDS)])
      expect(text).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
  })

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    '%s has three examples and all its flags, 80 columns wide',
    (_, command) => {
      const text = renderCommandHelp(command, style)
      expect(command.examples).toHaveLength(3)
      for (const { command: line } of command.examples)
        expect(line.replace(/^source <\(/, '')).toMatch(
          new RegExp(`^sluice (${command.name}|${command.alias ?? command.name})\\b`),
        )
      for (const flag of flagsOf(command.name)) expect(text).toContain(`--${flag.name}`)
      const examples = new Set(command.examples.map((example) => `  ${example.command}`))
      const wide = text.split('\n').filter((line) => line.length > 80 && !examples.has(line))
      expect(wide).toEqual([])
    },
  )
})

describe('completion', () => {
  it.each(SHELLS)('%s knows every command and every flag that is built, and no other', (shell) => {
    const script = renderCompletion(shell)
    for (const command of COMMANDS) {
      expect(script).toContain(command.name)
      for (const flag of flagsOf(command.name)) {
        const spelled =
          shell === 'fish' ? new RegExp(`-l ${flag.name}( |$)`, 'm') : new RegExp(`--${flag.name}(?![a-z-])`)
        if (flag.built) expect(script).toMatch(spelled)
        else if (flag.name === 'reject-limit') expect(script).not.toMatch(spelled)
      }
    }
  })
})
