import type { Environment } from '../core/options.ts'

/** Colours, or the same text where there are none. */
export interface Style {
  readonly on: boolean
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  cyan(text: string): string
}

/** SGR codes (ECMA-48): how each style begins; 0 ends it. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export function createStyle(on: boolean): Style {
  const paint = (code: number) => (text: string) => (on && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text)
  return {
    on,
    bold: paint(CODES.bold),
    dim: paint(CODES.dim),
    red: paint(CODES.red),
    green: paint(CODES.green),
    yellow: paint(CODES.yellow),
    cyan: paint(CODES.cyan),
  }
}

/** `--no-color`, then NO_COLOR (https://no-color.org), then FORCE_COLOR, then whether it is a terminal that can. */
export function wantsColor(o: {
  readonly flag: boolean | undefined
  readonly env: Environment
  readonly isTerminal: boolean
}): boolean {
  if (o.flag !== undefined) return o.flag
  if (o.env['NO_COLOR']) return false
  const forced = o.env['FORCE_COLOR']
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  return o.isTerminal && o.env['TERM'] !== 'dumb'
}
