import { SluiceError, toSluiceError } from '../core/errors.ts'
import { EXIT, signalExitCode, type StopSignal } from './exit-code.ts'

/** How long a stop may take (cli.md: 10 s), with a second in hand for ending the process itself. */
const LONGEST_STOP_MS = 9000

/**
 * A signal that comes again this soon is the same one: npm and timeout(1) pass on what the terminal or they themselves sent to
 * the whole process group already.
 */
const SAME_SIGNAL_MS = 100

/**
 * What ends the process from outside: SIGINT, SIGTERM, a reader of standard output that went away. The first aborts `signal`, so
 * that the job stops cleanly; a second one, or 9 s, ends the process at once.
 */
export class Interruption {
  readonly #controller = new AbortController()
  #received: StopSignal | null = null
  #receivedMs = 0
  #brokenPipe = false
  #onStop: (signal: StopSignal) => void = () => undefined

  /** Aborted with SLUICE_INTERRUPTED. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The signal that came, if one did. */
  get received(): StopSignal | null {
    return this.#received
  }

  /** Whether the reader of standard output went away. */
  get brokenPipe(): boolean {
    return this.#brokenPipe
  }

  /** What to tell of: what a foreign error comes from once everything is aborted; else the error itself. */
  causeOf(thrown: unknown): unknown {
    const { aborted, reason } = this.#controller.signal
    return aborted && toSluiceError(thrown).code === 'SLUICE_INTERNAL' ? reason : thrown
  }

  /** Who is told of the first signal. */
  notify(onStop: (signal: StopSignal) => void): void {
    this.#onStop = onStop
  }

  /** Starts to listen. */
  listen(): void {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => this.#stop(name))
    process.stdout.on('error', (error: NodeJS.ErrnoException) => this.#outputBroke(error))
    // Nobody is left to be told of it.
    process.stderr.on('error', () => undefined)
  }

  #stop(name: StopSignal): void {
    if (this.#received !== null) {
      if (performance.now() - this.#receivedMs < SAME_SIGNAL_MS) return
      process.exit(signalExitCode(name))
    }
    this.#received = name
    this.#receivedMs = performance.now()
    this.#onStop(name)
    this.#controller.abort(new SluiceError('SLUICE_INTERRUPTED', `stopped by ${name}`))
    setTimeout(() => {
      process.stderr.write('\nerror: it did not stop in time and was ended; sluice jobs shows what can be resumed\n')
      process.exit(signalExitCode(name))
    }, LONGEST_STOP_MS).unref()
  }

  #outputBroke(error: NodeJS.ErrnoException): void {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') {
      const code = error.code === 'ENOSPC' ? 'SLUICE_DISK_FULL' : 'SLUICE_LOCAL_IO'
      const hint = 'make room or access where standard output goes, then run the command again'
      this.#controller.abort(new SluiceError(code, `standard output: ${error.message}`, { cause: error, hint }))
      return
    }
    if (this.#brokenPipe) return
    this.#brokenPipe = true
    this.#controller.abort(new SluiceError('SLUICE_INTERRUPTED', 'the reader of standard output went away'))
    setTimeout(() => process.exit(EXIT.brokenPipe), LONGEST_STOP_MS).unref()
  }
}
