import { jobs, type JobSummary } from '../../index.ts'
import type { RunCommand } from '../context.ts'
import { renderTable } from '../table.ts'
import { formatBytes, formatCount } from '../units.ts'

/** `sluice jobs`. */
export const run: RunCommand = async ({ own, stateDir, print, screen }) => {
  const found = await jobs(stateDir)
  if (own.json === true) await print(`${JSON.stringify({ jobs: found })}\n`)
  else if (found.length === 0) screen.print('info', `no jobs in ${stateDir}`)
  else await print(`${renderJobs(found).join('\n')}\n`)
  return 0
}

/** A line a job. */
export function renderJobs(found: readonly JobSummary[]): string[] {
  const rows = found.map((job) => [
    job.jobId,
    job.status,
    shortTime(job.startedAt),
    formatCount(job.rowsWritten),
    formatBytes(job.bytesRead),
    job.source,
    job.sink,
  ])
  const titles = ['job', 'status', 'started', 'rows', 'read', 'source', 'sink']
  return renderTable(
    titles.map((title) => ({ title, right: title === 'rows' || title === 'read' })),
    rows,
  )
}

/** "2026-12-02T14:15:00.123Z" → "2026-12-02 14:15:00Z" */
export function shortTime(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+(?=Z)/, '')
}
