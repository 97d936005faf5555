import { type JobDetail, show } from '../../index.ts'
import { defaultStateDir } from '../config.ts'
import type { RunCommand } from '../context.ts'
import { renderError, renderSummary } from '../report.ts'
import { resumeCommand } from '../run-job.ts'
import type { Style } from '../style.ts'
import { indent, renderTable } from '../table.ts'
import { formatBytes, formatCount } from '../units.ts'
import { shortTime } from './jobs.ts'

const MOST_PARTITIONS = 50

/** `sluice show JOB`. */
export const run: RunCommand = async ({ operands, own, env, stateDir, outStyle, print }) => {
  const [jobId = ''] = operands
  const found = await show(stateDir, jobId)
  const job =
    found.resumeCommand === null
      ? found
      : { ...found, resumeCommand: resumeCommand(found.jobId, stateDir, defaultStateDir(env)) }
  await print(own.json === true ? `${JSON.stringify(job)}\n` : `${renderJob(job, outStyle)}\n`)
  return 0
}

/** Everything that is known of a job, for people. */
export function renderJob(job: JobDetail, style: Style): string {
  const out = [`${style.bold(job.jobId)}  ${job.status}`]
  if (job.result === null) {
    out.push(`  ${style.dim('source')}   ${job.source}`, `  ${style.dim('sink')}     ${job.sink}`)
    out.push(`  ${style.dim('so far')}   ${formatCount(job.rowsWritten)} rows, ${formatBytes(job.bytesRead)} read`)
  } else {
    if (job.result.error !== undefined) out.push(renderError(job.result.error, style))
    out.push(renderSummary({ ...job.result, resumeCommand: null }, style))
    out.push(`  ${style.dim('route')}    ${job.result.route}: ${job.result.routeReason}`)
  }
  if (Object.keys(job.options).length > 0) out.push(`  ${style.dim('options')}  ${JSON.stringify(job.options)}`)
  const runs = job.runs.map((run) => [
    shortTime(run.startedAt),
    run.endedAt === null ? '' : shortTime(run.endedAt),
    run.status ?? '',
  ])
  out.push(
    '',
    style.bold('runs'),
    ...indent(renderTable([{ title: 'began' }, { title: 'ended' }, { title: 'status' }], runs)),
  )
  if (job.partitions.length > 0) out.push('', style.bold('partitions'), ...indent(renderPartitions(job)))
  if (job.resumeCommand !== null) out.push('', `resume with: ${style.bold(job.resumeCommand)}`)
  return out.join('\n')
}

function renderPartitions(job: JobDetail): string[] {
  const shown = job.partitions.slice(0, MOST_PARTITIONS)
  // Rows are known of some kinds only: a column of nothing says nothing.
  const counted = shown.some(({ rows }) => rows !== null)
  const rows = shown.map(({ url, rows: count, bytes, done }) => [
    url,
    ...(counted ? [count === null ? '' : formatCount(count)] : []),
    bytes === null ? '' : formatBytes(bytes),
    done ? 'yes' : 'no',
  ])
  const titles = ['url', ...(counted ? ['rows'] : []), 'size', 'done']
  const table = renderTable(
    titles.map((title) => ({ title, right: title === 'rows' || title === 'size' })),
    rows,
    100,
  )
  const more = job.partitions.length - rows.length
  return more > 0 ? [...table, `and ${formatCount(more)} more`] : table
}
