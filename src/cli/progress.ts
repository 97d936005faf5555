import type { EventListener, JobEvent, JobPhase, Progress } from '../core/events.ts'
import type { Screen } from './screen.ts'
import type { Style } from './style.ts'
import { formatBytes, formatCount, formatDuration, formatShortCount } from './units.ts'

export type ProgressMode = 'auto' | 'plain' | 'json' | 'none'

/** Speeds and what follows from them; null where nothing can be said yet. */
export interface Pace {
  readonly bytesPerSecond: number | null
  readonly rowsPerSecond: number | null
  readonly leftMs: number | null
}

const BAR_EVERY_MS = 100
const PLAIN_EVERY_MS = 10_000
const JSON_EVERY_MS = 1000
/** Speed is that of the last five seconds, kept as at most 50 samples. */
const PACE_WINDOW_MS = 5000
const MOST_SAMPLES = 50
const BAR_CELLS = 20

/** Shows a job's events until `stop`: a bar on a terminal, else a line every 10 s, or JSON lines. */
export class ProgressView {
  readonly #screen: Screen
  readonly #style: Style
  readonly #mode: 'bar' | 'plain' | 'json' | 'none'
  readonly #timer: NodeJS.Timeout | undefined
  #samples: Progress[] = []
  #phase: JobPhase = 'preparing'
  #drawn: Progress | undefined

  constructor(screen: Screen, style: Style, mode: ProgressMode) {
    this.#screen = screen
    this.#style = style
    this.#mode = mode === 'auto' ? (screen.isTerminal ? 'bar' : 'plain') : mode
    const everyMs = { bar: BAR_EVERY_MS, plain: PLAIN_EVERY_MS, json: JSON_EVERY_MS, none: null }[this.#mode]
    if (everyMs !== null) this.#timer = setInterval(() => this.#draw(), everyMs).unref()
  }

  /** To be handed to the library as `onEvent`. */
  readonly listen: EventListener = (event) => {
    if (event.kind === 'progress') this.#sample(event.progress)
    else if (event.kind === 'phase') this.#phase = event.phase
    if (this.#mode === 'json') {
      if (event.kind !== 'progress') this.#screen.line(JSON.stringify(jsonEvent(event)))
      return
    }
    if (event.kind === 'warning') this.#screen.print('warn', `${this.#style.yellow('warning:')} ${event.message}`)
    else if (event.kind === 'sql') this.#screen.print('info', `${this.#style.dim('SQL:')} ${event.statement}`)
    else if (event.kind === 'retry')
      this.#screen.print('debug', `retry in ${formatDuration(event.delayMs)}: ${event.message} [${event.code}]`)
    else if (event.kind === 'planned') {
      const partitions = `${formatCount(event.partitions)} partition${event.partitions === 1 ? '' : 's'}`
      this.#screen.print('debug', `route ${event.route} (${event.routeReason}), ${partitions}, ${event.lanes} lanes`)
    }
  }

  /** Takes the bar away. */
  stop(): void {
    clearInterval(this.#timer)
    this.#screen.status('')
  }

  #sample(progress: Progress): void {
    this.#samples.push(progress)
    const since = progress.elapsedMs - PACE_WINDOW_MS
    while (
      this.#samples.length > MOST_SAMPLES ||
      (this.#samples.length > 2 && (this.#samples[0]?.elapsedMs ?? 0) < since)
    ) {
      this.#samples.shift()
    }
  }

  #draw(): void {
    const latest = this.#samples.at(-1)
    if (latest === undefined) {
      if (this.#mode === 'bar') this.#screen.status(this.#style.dim(`${this.#phase} …`))
      return
    }
    if (this.#mode === 'bar') {
      this.#screen.status(
        renderBar(latest, paceOf(this.#samples), { phase: this.#phase, width: this.#screen.width, style: this.#style }),
      )
    } else if (this.#mode === 'plain') {
      this.#screen.print('info', renderLine(latest, paceOf(this.#samples), this.#phase))
    } else if (this.#mode === 'json' && latest !== this.#drawn) {
      this.#screen.line(JSON.stringify(jsonEvent({ kind: 'progress', progress: latest })))
    }
    this.#drawn = latest
  }
}

/** Speed between the first and the last sample. */
export function paceOf(samples: readonly Progress[]): Pace {
  const first = samples[0]
  const last = samples.at(-1)
  if (first === undefined || last === undefined) return { bytesPerSecond: null, rowsPerSecond: null, leftMs: null }
  const from = samples.length > 1 ? first : { elapsedMs: 0, bytesRead: 0, rowsWritten: 0 }
  const seconds = (last.elapsedMs - from.elapsedMs) / 1000
  if (seconds <= 0) return { bytesPerSecond: null, rowsPerSecond: null, leftMs: null }
  const bytesPerSecond = Math.max(0, last.bytesRead - from.bytesRead) / seconds
  const leftMs =
    last.bytesTotal === null || bytesPerSecond === 0
      ? null
      : (Math.max(0, last.bytesTotal - last.bytesRead) / bytesPerSecond) * 1000
  return { bytesPerSecond, rowsPerSecond: Math.max(0, last.rowsWritten - from.rowsWritten) / seconds, leftMs }
}

interface BarLook {
  readonly phase: JobPhase
  readonly width: number
  readonly style: Style
}

/** One line, never wider than `width`: what matters least is left out first. */
export function renderBar(progress: Progress, pace: Pace, look: BarLook): string {
  const pieces = barPieces(progress, pace)
  const done = fractionOf(progress)
  const phase = look.phase === 'copying' ? [] : [look.phase]
  const room = Math.max(10, look.width - 1)
  const barOf = (cells: number): string[] =>
    done === null
      ? []
      : ['█'.repeat(Math.round(done * cells)).padEnd(cells, '░'), `${String(Math.floor(done * 100)).padStart(3)}%`]
  let bar = barOf(BAR_CELLS)
  let shown = pieces.length
  const line = (): string => [...phase, ...bar, ...pieces.slice(0, shown)].join('  ')
  // Half a bar says as much; what is left out says nothing.
  if (line().length > room) bar = barOf(BAR_CELLS / 2)
  while (shown > 0 && line().length > room) shown -= 1
  const plain = line()
  if (plain.length > room) return plain.slice(0, room)
  const cells = bar[0]
  return cells === undefined
    ? plain
    : plain.replace(cells, `${look.style.green(cells.replaceAll('░', ''))}${look.style.dim(cells.replaceAll('█', ''))}`)
}

/** What a log gets every ten seconds. */
export function renderLine(progress: Progress, pace: Pace, phase: JobPhase): string {
  const done = fractionOf(progress)
  const percent = done === null ? [] : [`${Math.floor(done * 100)}%`]
  return [`${formatDuration(progress.elapsedMs)} ${phase}`, ...percent, ...barPieces(progress, pace)].join(', ')
}

function barPieces(progress: Progress, pace: Pace): string[] {
  const rows =
    progress.rowsWritten > 0 || progress.rowsRead > 0 ? [`${formatShortCount(progress.rowsWritten)} rows`] : []
  const total = progress.bytesTotal === null ? '' : ` of ${formatBytes(progress.bytesTotal)}`
  return [
    ...rows,
    `${formatBytes(progress.bytesRead)}${total}`,
    ...(pace.bytesPerSecond === null ? [] : [`${formatBytes(pace.bytesPerSecond)}/s`]),
    ...(pace.leftMs === null ? [] : [`${formatDuration(pace.leftMs)} left`]),
    `${progress.inFlight} in flight`,
    `${progress.retries} ${progress.retries === 1 ? 'retry' : 'retries'}`,
  ]
}

function fractionOf(progress: Progress): number | null {
  if (progress.bytesTotal === null || progress.bytesTotal === 0) return null
  return Math.min(1, progress.bytesRead / progress.bytesTotal)
}

/** `{"event":"progress",…}`: what `--progress json` prints, one a line. */
function jsonEvent(event: JobEvent): object {
  if (event.kind === 'progress') return { event: 'progress', ...event.progress }
  const { kind, ...rest } = event
  return { event: kind, ...rest }
}
