import { resolve } from 'node:path'
import type { EventListener } from '../core/events.ts'
import type { JobResult } from '../core/job.ts'
import type { CommandContext } from './context.ts'
import { defaultStateDir } from './config.ts'
import { jobExitCode } from './exit-code.ts'
import { ProgressView } from './progress.ts'
import { renderError, renderSummary } from './report.ts'
import { shellQuote } from '../core/shell-quote.ts'

interface Watch {
  readonly signal: AbortSignal
  readonly onEvent: EventListener
}

/** Runs a job with progress, prints what became of it, and resolves with the exit code. `dataOnStdout`: SINK is `-`. */
export async function runJob(
  context: CommandContext,
  dataOnStdout: boolean,
  start: (watch: Watch) => Promise<JobResult>,
): Promise<number> {
  const { interruption, own, screen, style } = context
  // Data and a bar on one terminal would mix.
  const usual = dataOnStdout && process.stdout.isTTY ? 'none' : 'auto'
  const progress = new ProgressView(screen, style, own.progress ?? (own.quiet === true ? 'none' : usual))
  let result: JobResult
  try {
    result = withResumeCommand(await start({ signal: interruption.signal, onEvent: progress.listen }), context)
  } finally {
    progress.stop()
  }
  if (interruption.brokenPipe) return jobExitCode(result, interruption.received)
  printResult(result, context)
  if (own.json === true) {
    const line = JSON.stringify(result)
    if (dataOnStdout) screen.line(line)
    else await context.print(`${line}\n`)
  }
  return jobExitCode(result, interruption.received)
}

function printResult(result: JobResult, { screen, style }: CommandContext): void {
  // That the user stopped it is no error, and was said already.
  const interrupted = result.error?.code === 'SLUICE_INTERRUPTED'
  if (result.error !== undefined && !interrupted) screen.line(renderError(result.error, style))
  const moved = result.rowsRead > 0 || result.bytesWritten > 0
  if (result.error === undefined || interrupted || moved) screen.print('info', renderSummary(result, style))
  if (result.resumeCommand !== null && !(screen.shows('info') && (moved || interrupted)))
    screen.line(`resume: ${style.bold(result.resumeCommand)}`)
}

/** The command that goes on with a job, for a shell in any folder; the state folder is named where it is not the default. */
export function resumeCommand(jobId: string, stateDir: string, usualStateDir: string): string {
  return shellQuote([
    'sluice',
    'resume',
    jobId,
    ...(stateDir === usualStateDir ? [] : ['--state-dir', resolve(stateDir)]),
  ])
}

function withResumeCommand(result: JobResult, context: CommandContext): JobResult {
  if (result.resumeCommand === null) return result
  return { ...result, resumeCommand: resumeCommand(result.jobId, context.stateDir, defaultStateDir(context.env)) }
}
