import type { JobResult } from '../../index.ts'
import type { Style } from '../style.ts'
import { renderTable } from '../table.ts'
import { formatBytes, formatCount, formatDuration, formatShortCount } from '../units.ts'

/** What became of one job of the demo. */
export interface DemoOutcome {
  readonly title: string
  readonly result: JobResult
  readonly verified: boolean
}

/** Titles of the table; those that a narrow terminal goes without are the first to be left out, from the left. */
const TITLES = ['job', 'rows', 'size', 'time', 'rows/s', 'speed', 'retries', 'peak memory', 'verified']
const SPARE = ['speed', 'size']

/** The table at the end: one line a job; in a terminal that is too narrow (`width` in characters) without what can be spared, then two lines a job. */
export function renderOutcomes(outcomes: readonly DemoOutcome[], style: Style, width = Infinity): string[] {
  const rows = outcomes.map(cellsOf)
  for (let left = 0; left <= SPARE.length; left += 1) {
    const without = SPARE.slice(0, left)
    const kept = TITLES.filter((title) => !without.includes(title))
    const lines = renderTable(
      kept.map((title) => ({ title, right: title !== 'job' && title !== 'verified' })),
      rows.map((cells) => kept.map((title) => cells[title] ?? '')),
    )
    const widest = Math.max(...lines.map((line) => line.length))
    if (widest > width) continue
    const [head = '', ...body] = lines
    return [
      style.bold(head),
      style.dim('─'.repeat(head.length)),
      ...body.map((line) => line.replace(/yes$/, style.green('yes')).replace(/NO$/, style.red('NO'))),
    ]
  }
  return rows.flatMap((cells) => stacked(cells, style))
}

type Cells = Readonly<Record<string, string>>

function cellsOf({ title, result, verified }: DemoOutcome): Cells {
  const moved = result.rowsWritten > 0
  const seconds = Math.max(1, result.wallMs) / 1000
  return {
    job: title,
    rows: moved ? formatCount(result.rowsWritten) : '–',
    size: formatBytes(result.bytesWritten),
    time: formatDuration(result.wallMs),
    'rows/s': moved ? formatShortCount(result.rowsWritten / seconds) : '–',
    speed: `${formatBytes(result.bytesRead / seconds)}/s`,
    retries: formatCount(result.retries),
    'peak memory': formatBytes(result.peakRssBytes),
    verified: verified ? 'yes' : 'NO',
  }
}

function stacked(cells: Cells, style: Style): string[] {
  const verdict = cells['verified'] === 'yes' ? style.green('verified') : style.red('NOT verified')
  const rows = cells['rows'] === '–' ? [cells['size']] : [`${cells['rows'] ?? ''} rows`]
  const rate = cells['rows'] === '–' ? cells['speed'] : `${cells['rows/s'] ?? ''} rows/s`
  return [
    `${style.bold(cells['job'] ?? '')}  ${verdict}`,
    `  ${rows.join('')} in ${cells['time'] ?? ''}, ${rate ?? ''}`,
    `  ${cells['retries'] ?? ''} retries, ${cells['peak memory'] ?? ''} at the peak`,
  ]
}
