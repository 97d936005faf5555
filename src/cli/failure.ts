import { SluiceError, toSluiceError } from '../core/errors.ts'
import { createScreen, type OwnSettings } from './context.ts'
import { errorExitCode } from './exit-code.ts'
import type { Interruption } from './interruption.ts'
import { renderError, reportedError } from './report.ts'

interface Circumstances {
  /** The command line: its flags may be what is wrong, so that `own` knows nothing yet. */
  readonly words: readonly string[]
  /** Null where they were not read. */
  readonly operands: readonly string[] | null
  readonly own: OwnSettings
  readonly interruption: Interruption
}

/**
 * Tells of an error that no job's result carries, and gives the exit code. With `--json` the object is on standard output, or
 * on standard error where SINK is `-`; with `-v` the stack follows.
 */
export function reportFailure(thrown: unknown, { words, operands, own, interruption }: Circumstances): number {
  const error = withoutJob(toSluiceError(thrown))
  const code = errorExitCode(error, interruption.received)
  if (interruption.brokenPipe) return code
  const { screen, style } = createScreen(own, process.env)
  screen.line(renderError(reportedError(error), style))
  if (own.verbose === true) screen.line(style.dim(stackOf(thrown)))
  if (own.json === true || words.includes('--json')) {
    const line = JSON.stringify({ status: 'failed', error: reportedError(error) })
    const sinkIsStdout = operands === null ? words.includes('-') : operands[1] === '-'
    if (sinkIsStdout) screen.line(line)
    else process.stdout.write(`${line}\n`)
  }
  return code
}

/** There is no job to go on with. */
function withoutJob(error: SluiceError): SluiceError {
  return error.code === 'SLUICE_INTERRUPTED'
    ? new SluiceError(error.code, error.message, { hint: '', cause: error.cause })
    : error
}

function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown.cause instanceof Error ? `\ncaused by ${thrown.cause.stack ?? thrown.cause.message}` : ''
  return `${thrown.stack ?? thrown.message}${cause}`
}
