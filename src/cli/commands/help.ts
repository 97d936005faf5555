import { commandNamed } from '../choose-command.ts'
import type { RunCommand } from '../context.ts'
import { renderCommandHelp, renderHelp } from '../help.ts'

/** `sluice help [COMMAND]`. @throws SLUICE_USAGE, SLUICE_NOT_YET */
export const run: RunCommand = async ({ operands, outStyle, version, print }) => {
  const name = operands[0]
  await print(
    `${name === undefined ? renderHelp(version, outStyle) : renderCommandHelp(commandNamed(name), outStyle)}\n`,
  )
  return 0
}
