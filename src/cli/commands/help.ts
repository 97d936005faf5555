import { SluiceError } from '../../core/errors.ts'
import { COMMANDS, findCommand } from '../command-table.ts'
import type { RunCommand } from '../context.ts'
import { renderCommandHelp, renderHelp } from '../help.ts'
import { nearest } from '../nearest.ts'

/** `sluice help [COMMAND]`. @throws SLUICE_USAGE */
export const run: RunCommand = async ({ operands, outStyle, version, print }) => {
  const name = operands[0]
  if (name === undefined) {
    await print(`${renderHelp(version, outStyle)}\n`)
    return 0
  }
  const spec = findCommand(name)
  if (spec === undefined) {
    const meant = nearest(
      name,
      COMMANDS.map((command) => command.name),
    )
    throw new SluiceError(
      'SLUICE_USAGE',
      `unknown command ${name}${meant === null ? '' : `; did you mean ${meant}?`}`,
      { hint: 'sluice help lists the commands' },
    )
  }
  await print(`${renderCommandHelp(spec, outStyle)}\n`)
  return 0
}
