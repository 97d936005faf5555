import { formatPlace, type SluiceError } from '../core/errors.ts'
import type { JobResult, ReportedError } from '../core/job.ts'
import type { Style } from './style.ts'
import { printable } from './table.ts'
import { formatBytes, formatCount, formatDuration, formatShortCount } from './units.ts'

const MOST_OUTPUTS = 10

/** The block of design.md, "Errors": what, where, what to do. */
export function renderError(error: ReportedError, style: Style): string {
  return [
    `${style.red(style.bold('error:'))} ${lines(error.message)}  ${style.dim(`[${error.code}]`)}`,
    ...(error.where === null || error.where === '' ? [] : [`   ${style.bold('at:')} ${printable(error.where)}`]),
    ...(error.hint === '' ? [] : [` ${style.bold('hint:')} ${lines(error.hint)}`]),
  ].join('\n')
}

/** A thrown error as the JSON of `error` in a result. */
export function reportedError(error: SluiceError): ReportedError {
  return { code: error.code, message: error.message, where: formatPlace(error.where) || null, hint: error.hint }
}

/** What people read at the end of a job. */
export function renderSummary(result: JobResult, style: Style): string {
  const out = [headline(result, style)]
  const add = (label: string, text: string): number => out.push(`  ${style.dim(label.padEnd(8))} ${text}`)
  const partitions = result.partitions === 1 ? '' : `, ${formatCount(result.partitions)} partitions`
  add('source', `${result.source} (${formatBytes(result.bytesRead)} read${partitions})`)
  add('sink', `${result.sink} (${formatBytes(result.bytesWritten)} written)`)
  for (const output of result.outputs.slice(0, MOST_OUTPUTS)) {
    if (result.outputs.length > 1 || output.url !== result.sink)
      add('output', `${output.url} (${formatBytes(output.bytes)})`)
  }
  if (result.outputs.length > MOST_OUTPUTS) add('', `and ${formatCount(result.outputs.length - MOST_OUTPUTS)} more`)
  const counts = rowCounts(result)
  if (counts !== '') add('rows', counts)
  if (result.rejectFile !== null) add('rejects', result.rejectFile)
  const throttles = result.throttles > 0 ? `, ${formatCount(result.throttles)} throttled` : ''
  const runs = result.runs > 1 ? `, ${result.runs} runs` : ''
  const retries = `${formatCount(result.retries)} ${result.retries === 1 ? 'retry' : 'retries'}`
  add(
    'effort',
    `${formatDuration(result.cpuMs)} of CPU, ${formatBytes(result.peakRssBytes)} at the peak, ${retries}${throttles}${runs}`,
  )
  add('job', result.jobId)
  if (result.resumeCommand !== null) add('resume', style.bold(result.resumeCommand))
  return out.join('\n')
}

function headline(result: JobResult, style: Style): string {
  const seconds = Math.max(1, result.wallMs) / 1000
  const rows = result.route !== 'bytes' || result.rowsRead > 0 || result.rowsWritten > 0
  const amount = rows
    ? `${formatCount(result.rowsWritten)} ${result.rowsWritten === 1 ? 'row' : 'rows'}`
    : formatBytes(result.bytesWritten)
  const rowRate = rows ? `${formatShortCount(result.rowsWritten / seconds)} rows/s, ` : ''
  const rate = `${rowRate}${formatBytes(result.bytesRead / seconds)}/s`
  const words = `${amount} in ${formatDuration(result.wallMs)} (${rate})`
  if (result.status === 'done') return `${style.green(style.bold('done'))}  ${words}`
  if (result.status === 'done-with-rejects') return `${style.yellow(style.bold('done, with rejects'))}  ${words}`
  return `${style.red(style.bold(result.status))}  after ${formatDuration(result.wallMs)}`
}

/** Left out where every row that was read was written. */
function rowCounts(result: JobResult): string {
  if (result.rowsRead === result.rowsWritten && result.rowsRejected === 0 && result.rowsSkipped === 0) return ''
  const why = Object.entries(result.skipped)
    .filter(([, count]) => Number(count) > 0)
    .map(([reason, count]) => `${formatCount(Number(count))} ${reason}`)
  const skipped =
    result.rowsSkipped === 0
      ? ''
      : `, ${formatCount(result.rowsSkipped)} skipped${why.length > 0 ? ` (${why.join(', ')})` : ''}`
  const rejected = result.rowsRejected === 0 ? '' : `, ${formatCount(result.rowsRejected)} rejected`
  return `${formatCount(result.rowsRead)} read, ${formatCount(result.rowsWritten)} written${rejected}${skipped}`
}

/** Messages may have several lines (a server's detail); data in them never moves the cursor. */
function lines(text: string): string {
  return text
    .split('\n')
    .map((line) => printable(line))
    .join('\n       ')
}
