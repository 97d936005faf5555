import { createHash } from 'node:crypto'
import { SluiceError, formatPlace } from '../core/errors.ts'
import type { Json, JobResult, JobStatus, ReportedError } from '../core/job.ts'
import type { CopyOptions } from '../core/options.ts'
import type { SinkContext } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import { JobFolder, findUnfinished, newJobId, viewJob } from '../engine/job-folder.ts'
import type { JobEntry, JobHeader } from '../engine/job-folder.ts'
import type { Progressor } from '../engine/progress.ts'
import { seenFrom, seenFromHere } from './located.ts'
import type { CopyRequest } from './requests.ts'

/** Options that do not change what a job does, only how fast or how it is told: a resume may set them anew. */
const FREE_OPTIONS: readonly (keyof CopyOptions)[] = [
  'retryFor',
  'concurrency',
  'workers',
  'maxMemory',
  'parallelism',
  'yes',
  'profile',
]

/** What a job is known by when it is started again. A relative path is another one in another folder. */
function fingerprintOf(source: string, sink: string, options: CopyOptions): string {
  const kept = Object.entries(options)
    .filter(([name, value]) => value !== undefined && !FREE_OPTIONS.some((free) => free === name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([known(source), known(sink), kept]))
    .digest('hex')
    .slice(0, 32)
}

const known = (url: string): string => redactUrl(seenFrom(url, process.cwd()))

/** A copy, and whether it can be gone on with once it was cut short: what came or went through a pipe is gone. */
interface JobRequest extends CopyRequest {
  readonly resumable: boolean
}

/**
 * The job's folder: a new one, or that of the job which is to go on.
 *
 * @throws SLUICE_JOB_EXISTS, SLUICE_JOB_UNKNOWN, SLUICE_JOB_RUNNING, SLUICE_STATE
 */
export async function openJobFolder(
  request: JobRequest,
  supersede: (folder: JobFolder) => Promise<void>,
): Promise<JobFolder> {
  const { source, sink, options, stateDir } = request
  if (request.resume === true) {
    if (request.jobId === undefined)
      throw new SluiceError('SLUICE_USAGE', '--resume needs --job-id', { hint: 'sluice jobs lists the ids' })
    return openOrAdopt(request, request.jobId)
  }
  const fingerprint = fingerprintOf(source, sink, options)
  const unfinished = request.resumable ? await findUnfinished(stateDir, fingerprint) : null
  if (unfinished !== null) {
    const { jobId } = unfinished.header
    if (unfinished.running)
      throw new SluiceError('SLUICE_JOB_RUNNING', `job ${jobId} for the same source and sink is running`)
    if (request.newJob !== true)
      throw new SluiceError('SLUICE_JOB_EXISTS', `job ${jobId} for the same source and sink is unfinished`, {
        hint: `sluice resume ${jobId} goes on with it; --new-job starts over`,
      })
    const old = await JobFolder.open(stateDir, jobId)
    try {
      await supersede(old)
    } finally {
      await old.close()
    }
  }
  return JobFolder.create(stateDir, newHeader(request, request.jobId ?? newJobId(new Date())))
}

/** A job that another machine began has no folder here: where its sink keeps a ledger, it can go on all the same. */
async function openOrAdopt(request: JobRequest, jobId: string): Promise<JobFolder> {
  try {
    await refuseGivenUp(request.stateDir, jobId)
    return await JobFolder.open(request.stateDir, jobId)
  } catch (error) {
    const unknown = error instanceof SluiceError && error.code === 'SLUICE_JOB_UNKNOWN'
    if (!unknown || request.options.commit !== 'partition' || request.source === '') throw error
    return JobFolder.create(request.stateDir, newHeader(request, jobId))
  }
}

/** A job whose place another one has, here or in the sink's ledger, would load its rows a second time. @throws SLUICE_JOB_EXISTS */
async function refuseGivenUp(stateDir: string, jobId: string): Promise<void> {
  const { result } = await viewJob(stateDir, jobId)
  if (result?.error?.code !== 'SLUICE_JOB_EXISTS') return
  throw new SluiceError('SLUICE_JOB_EXISTS', `job ${jobId} cannot go on: ${result.error.message}`, {
    hint: 'sluice jobs shows the newer one; load again without an id',
  })
}

/**
 * The result of the job that is to go on, where it is done already; null where there is something to do, or no such job here.
 *
 * @throws SLUICE_USAGE where the job writes to another sink than the request says
 */
export async function doneBefore(request: CopyRequest): Promise<JobResult | null> {
  if (request.jobId === undefined) return null
  const view = await viewJob(request.stateDir, request.jobId).catch((error: unknown) => {
    if (error instanceof SluiceError && error.code === 'SLUICE_JOB_UNKNOWN') return null
    throw error
  })
  if (view === null) return null
  const { sink } = seenFromHere(view.header, process.cwd())
  if (placeOf(sink) !== placeOf(request.sink))
    throw new SluiceError('SLUICE_USAGE', `job ${request.jobId} writes to ${sink}, not to ${redactUrl(request.sink)}`, {
      hint: `sluice resume ${request.jobId} goes on with it; another job wants another id`,
    })
  return view.result?.status === 'done' ? view.result : null
}

/** A sink without who writes to it: a password may come another way the second time. */
function placeOf(sink: string): string {
  return known(sink)
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1')
    .replace(/([?&])(user|password)=[^&]*&?/gi, '$1')
    .replace(/[?&]$/, '')
}

function newHeader(request: JobRequest, jobId: string): JobHeader {
  const { source, sink, options } = request
  return {
    jobId,
    createdAt: new Date().toISOString(),
    source: redactUrl(source),
    sink: redactUrl(sink),
    options,
    fingerprint: fingerprintOf(source, sink, options),
    resumable: request.resumable,
    folder: process.cwd(),
  }
}

/** What the sink keeps in the job's folder. */
export function sinkContext(
  folder: JobFolder,
  request: { newJob?: boolean | undefined; resume?: boolean | undefined },
  progressor: Progressor,
): SinkContext {
  const recorded = folder.entries.flatMap((entry): Json[] => (entry.kind === 'sink' ? [entry.entry] : []))
  return {
    jobId: folder.header.jobId,
    fingerprint: folder.header.fingerprint,
    resumed: request.resume === true,
    newJob: request.newJob === true,
    recorded,
    record: async (entry) => {
      recorded.push(entry)
      await folder.append({ kind: 'sink', entry })
    },
    warn: (message) => progressor.warn(message),
    retried: (reason) => progressor.retried(reason),
  }
}

/** Sums over earlier runs of the job. */
export function earlierRuns(entries: readonly JobEntry[]): {
  runs: number
  bytesRead: number
  retries: number
  throttles: number
  wallMs: number
  cpuMs: number
} {
  const sums = { runs: 0, bytesRead: 0, retries: 0, throttles: 0, wallMs: 0, cpuMs: 0 }
  for (const entry of entries) {
    if (entry.kind === 'run') sums.runs += 1
    if (entry.kind !== 'end') continue
    sums.bytesRead += entry.bytesRead
    sums.retries += entry.retries
    sums.throttles += entry.throttles
    sums.wallMs += entry.wallMs
    sums.cpuMs += entry.cpuMs
  }
  return sums
}

/** done; stopped where a resume goes on; else failed. */
export function statusOf(error: SluiceError | null, o: { rowsMoved: boolean; resumable: boolean }): JobStatus {
  if (error === null) return 'done'
  return o.resumable && error.exitClass(o.rowsMoved) === 'resumable' ? 'stopped' : 'failed'
}

export function reportError(error: SluiceError): ReportedError {
  return { code: error.code, message: error.message, where: formatPlace(error.where) || null, hint: error.hint }
}

/** The command that goes on with a job, for a shell. Job ids need no quoting. */
export function resumeCommand(jobId: string): string {
  return `sluice resume ${jobId}`
}
