import { SluiceError } from '../../core/errors.ts'
import { renderCompletion, SHELLS } from '../completion.ts'
import type { RunCommand } from '../context.ts'
import { nearest } from '../../core/nearest.ts'

/** `sluice completion bash|zsh|fish`. @throws SLUICE_USAGE */
export const run: RunCommand = async ({ operands, print }) => {
  const name = operands[0] ?? ''
  const shell = SHELLS.find((known) => known === name)
  if (shell === undefined) {
    const meant = nearest(name, SHELLS)
    throw new SluiceError('SLUICE_USAGE', `unknown shell ${name}${meant === null ? '' : `; did you mean ${meant}?`}`, {
      hint: `one of ${SHELLS.join(', ')}`,
    })
  }
  await print(renderCompletion(shell))
  return 0
}
