import { performance } from 'node:perf_hooks'
import type { EventListener, JobPhase, Progress } from '../core/events.ts'
import type { Reporter } from '../core/ports.ts'
import type { SluiceError } from '../core/errors.ts'

/** How often progress is told. */
const INTERVAL_MS = 200

/** Counts what happened and tells it: the job's one voice. Warnings of the same text are told and kept once, 100 at most. */
export class Progressor implements Reporter {
  readonly warnings: string[] = []
  retries = 0
  throttles = 0
  readonly #listener: EventListener
  readonly #beganMs = performance.now()
  readonly #beganCpu = process.cpuUsage()
  #timer: NodeJS.Timeout | null = null
  #onThrottled: () => void = () => undefined

  constructor(listener: EventListener | undefined) {
    this.#listener = listener ?? (() => undefined)
  }

  warn(message: string): void {
    if (this.warnings.includes(message) || this.warnings.length >= 100) return
    this.warnings.push(message)
    this.#listener({ kind: 'warning', message })
  }

  retried(reason: { readonly throttled: boolean }): void {
    this.retries += 1
    if (!reason.throttled) return
    this.throttles += 1
    this.#onThrottled()
  }

  /** Whom to tell when a server asks for less. */
  onThrottled(listener: () => void): void {
    this.#onThrottled = listener
  }

  waiting(error: SluiceError, delayMs: number): void {
    this.retries += 1
    this.#listener({ kind: 'retry', code: error.code, message: error.message, delayMs })
  }

  sql(statement: string): void {
    this.#listener({ kind: 'sql', statement })
  }

  phase(phase: JobPhase): void {
    this.#listener({ kind: 'phase', phase })
  }

  planned(plan: {
    partitions: number
    bytesTotal: number | null
    lanes: number
    route: string
    routeReason: string
  }): void {
    this.#listener({ kind: 'planned', ...plan })
  }

  /** Tells progress until `stop`. The timer keeps no process alive. */
  start(read: () => Omit<Progress, 'retries' | 'elapsedMs'>): void {
    const tell = (): void =>
      this.#listener({ kind: 'progress', progress: { ...read(), retries: this.retries, elapsedMs: this.elapsedMs() } })
    this.#timer = setInterval(tell, INTERVAL_MS)
    this.#timer.unref()
    tell()
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  elapsedMs(): number {
    return performance.now() - this.#beganMs
  }

  /** CPU of the whole process, threads included, since the job began. */
  cpuMs(): number {
    const used = process.cpuUsage(this.#beganCpu)
    return (used.user + used.system) / 1000
  }
}
