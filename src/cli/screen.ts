/** What is written to; `process.stderr` is one. */
export interface TextSink {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/** A terminal that cannot move its cursor (TERM=dumb) is written to as a file is: no status line. */
export function dumbTerminal(out: TextSink): TextSink {
  return { write: (text) => out.write(text), columns: out.columns }
}

const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Standard error: lines, and below them one status line that is drawn anew. */
export class Screen {
  readonly #out: TextSink
  readonly #level: LogLevel
  #status = ''

  constructor(out: TextSink, level: LogLevel) {
    this.#out = out
    this.#level = level
  }

  /** Columns of the terminal; 80 where it does not say. */
  get width(): number {
    return this.#out.columns ?? 80
  }

  /** Whether a status line can be drawn. */
  get isTerminal(): boolean {
    return this.#out.isTTY === true
  }

  /** Whether lines of this weight are shown. */
  shows(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(this.#level)
  }

  /** One or more lines, above the status line; left out where the level is below the screen's. */
  print(level: LogLevel, text: string): void {
    if (this.shows(level)) this.line(text)
  }

  /** One or more lines, whatever the level. */
  line(text: string): void {
    const status = this.#status
    this.status('')
    this.#out.write(`${text}\n`)
    this.status(status)
  }

  /** Draws the status line; empty takes it away. */
  status(text: string): void {
    if (text === this.#status) return
    this.#out.write(text === '' ? '\r\u001b[K' : `\r\u001b[K${text}`)
    this.#status = text
  }
}
