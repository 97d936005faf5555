import { toSluiceError } from '../../core/errors.ts'
import { cat } from '../../index.ts'
import type { RunCommand } from '../context.ts'
import { standardInputFor } from '../standard-input.ts'

/** `sluice cat URL`: the bytes, decompressed, or the rows. */
export const run: RunCommand = async ({ operands, options, defaults, own, env, interruption }) => {
  const [url = ''] = operands
  const stdin = standardInputFor(url)
  try {
    await cat(url, { options, defaults, as: own.as, env, stdin, stdout: process.stdout, signal: interruption.signal })
  } catch (thrown) {
    // What the reader of a closed pipe no longer wants is no error of the source's.
    if (interruption.brokenPipe) return 141
    throw toSluiceError(thrown)
  }
  return 0
}
