import { ERROR_RULES, type ErrorCode, type ExitClass, SluiceError } from '../core/errors.ts'
import type { JobResult } from '../core/job.ts'

/** Exit codes (product.md, "Exit codes"). */
export const EXIT = { done: 0, failed: 1, usage: 2, rejects: 3, resumable: 4, brokenPipe: 141 } as const

/** By which signal the user stopped the process. */
export type StopSignal = 'SIGINT' | 'SIGTERM'

const SIGNAL_CODES: Readonly<Record<StopSignal, number>> = { SIGINT: 130, SIGTERM: 143 }
const CLASS_CODES: Readonly<Record<ExitClass, number>> = {
  usage: EXIT.usage,
  failed: EXIT.failed,
  resumable: EXIT.resumable,
}

export function signalExitCode(signal: StopSignal): number {
  return SIGNAL_CODES[signal]
}

/** Of a job that has ended. A signal counts only where it was what ended the job: a job that was done all the same is done. */
export function jobExitCode(result: JobResult, signal: StopSignal | null): number {
  if (result.status === 'done') return EXIT.done
  if (result.status === 'done-with-rejects') return EXIT.rejects
  const code = result.error?.code
  if (signal !== null && (code === undefined || code === 'SLUICE_INTERRUPTED')) return SIGNAL_CODES[signal]
  if (result.status === 'stopped') return EXIT.resumable
  if (code === undefined || !isErrorCode(code)) return EXIT.failed
  const moved = result.rowsRead > 0 || result.bytesWritten > 0 || result.leftRows === true
  return ERROR_RULES[code].before === 'usage' && !moved ? EXIT.usage : EXIT.failed
}

/** Of an error outside a job: nothing has moved. */
export function errorExitCode(error: SluiceError, signal: StopSignal | null): number {
  if (error.code === 'SLUICE_INTERRUPTED' && signal !== null) return SIGNAL_CODES[signal]
  return CLASS_CODES[error.exitClass(false)]
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_RULES, code)
}
