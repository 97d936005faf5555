import { SluiceError } from '../core/errors.ts'

export interface Question {
  /** What would be destroyed, one sentence. */
  readonly about: string
  /** Whether standard input is free for an answer. */
  readonly canAsk: boolean
  readonly signal: AbortSignal
}

/**
 * Asks before what destroys, where there is a terminal to ask on.
 *
 * @throws SLUICE_USAGE where the answer is not yes, or nobody can be asked
 */
export async function confirm(question: Question): Promise<void> {
  if (!question.canAsk || !process.stdin.isTTY || !process.stderr.isTTY) {
    throw new SluiceError('SLUICE_USAGE', question.about, { hint: 'pass --yes if that is what you want' })
  }
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`${question.about}. Go on? [y/N] `, { signal: question.signal })
    if (!/^y(es)?$/i.test(answer.trim()))
      throw new SluiceError('SLUICE_USAGE', 'not confirmed: nothing was done', { hint: '' })
  } finally {
    terminal.close()
  }
}
