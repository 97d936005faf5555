import { listJobIds, viewJob } from '../engine/job-folder.ts'
import type { JobView } from '../engine/job-folder.ts'
import { earlierRuns, resumeCommand } from './job-session.ts'
import type { JobDetail, JobSummary } from './requests.ts'

/** All jobs of a state folder, latest first. @throws SLUICE_STATE */
export async function jobs(stateDir: string): Promise<JobSummary[]> {
  const summaries: JobSummary[] = []
  for (const id of await listJobIds(stateDir)) {
    const view = await viewJob(stateDir, id).catch(() => null)
    if (view !== null) summaries.push(summary(view))
  }
  // By time, not by id: ids may be the user's own.
  return summaries.toSorted((a, b) => (a.startedAt < b.startedAt ? 1 : a.startedAt > b.startedAt ? -1 : 0))
}

/** One job, with its partitions and runs. @throws SLUICE_JOB_UNKNOWN, SLUICE_STATE */
export async function show(stateDir: string, jobId: string): Promise<JobDetail> {
  const view = await viewJob(stateDir, jobId)
  const own = summary(view)
  const done = view.result?.status === 'done'
  const recorded = view.entries.flatMap((entry) => (entry.kind === 'partitions' ? entry.partitions : []))
  return {
    ...own,
    options: view.header.options,
    runs: runsOf(view),
    result: view.result,
    partitions: recorded.map((partition) => ({ url: partition.url, bytes: partition.bytes, rows: null, done })),
    resumeCommand: own.status === 'stopped' || own.status === 'unfinished' ? resumeCommand(jobId) : null,
  }
}

function summary(view: JobView): JobSummary {
  const ends = view.entries.filter((entry) => entry.kind === 'end')
  const last = ends.at(-1)
  const ended = last?.kind === 'end' ? last : null
  const runs = view.entries.filter((entry) => entry.kind === 'run').length
  const open = runs > ends.length || ended === null
  // What was cut short and can't be gone on with is over.
  const cut = view.header.resumable ? 'unfinished' : 'failed'
  return {
    jobId: view.header.jobId,
    status: view.running ? 'running' : (view.result?.status ?? (open ? cut : ended.status)),
    source: view.header.source,
    sink: view.header.sink,
    startedAt: view.header.createdAt,
    endedAt: view.running || open ? null : ended.at,
    rowsWritten: view.result?.rowsWritten ?? 0,
    bytesRead: view.result?.bytesRead ?? earlierRuns(view.entries).bytesRead,
  }
}

function runsOf(view: JobView): { startedAt: string; endedAt: string | null; status: string | null }[] {
  const runs: { startedAt: string; endedAt: string | null; status: string | null }[] = []
  for (const entry of view.entries) {
    if (entry.kind === 'run') runs.push({ startedAt: entry.at, endedAt: null, status: null })
    const last = runs.at(-1)
    if (entry.kind === 'end' && last !== undefined) Object.assign(last, { endedAt: entry.at, status: entry.status })
  }
  return runs
}
