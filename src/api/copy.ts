import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { SluiceError, toSluiceError } from '../core/errors.ts'
import type { JobResult, Partition } from '../core/job.ts'
import { DEFAULT_RETRY_FOR_MS } from '../core/options.ts'
import type { Sink, Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import { backoffMs } from '../core/retry.ts'
import type { BatchForm } from '../core/batch.ts'
import { inferSource, mustInfer } from '../engine/infer-source.ts'
import type { JobFolder } from '../engine/job-folder.ts'
import type { Mapping } from '../engine/mapping.ts'
import { Progressor } from '../engine/progress.ts'
import { countMoved, runJob } from '../engine/run-job.ts'
import type { JobOutcome } from '../engine/run-job.ts'
import { requireDistinct } from './distinct-columns.ts'
import { requireText, within } from './border.ts'
import { chooseRoute, endpointRequest, surroundingsOf } from './endpoints.ts'
import type { Route, Surroundings } from './endpoints.ts'
import {
  doneBefore,
  earlierRuns,
  openJobFolder,
  reportError,
  resumeCommand,
  sinkContext,
  statusOf,
} from './job-session.ts'
import { seenFromHere } from './located.ts'
import type { CopyRequest, ResumeRequest } from './requests.ts'
import { requireBuilt } from './built-options.ts'
import { inferredForm, mapColumns } from './rows.ts'
import { refuseUnheededBy } from './unheeded.ts'

/**
 * Runs a copy, or goes on with one. What goes wrong once the job exists is in the result, not thrown.
 *
 * @throws SluiceError for what is wrong before a job exists: usage, an unfinished job of the same kind, the state folder
 */
export async function copy(request: CopyRequest): Promise<JobResult> {
  requireText('source', request.source)
  requireText('sink', request.sink)
  requireText('stateDir', request.stateDir)
  return within(request, copyWithin)
}

async function copyWithin(request: CopyRequest): Promise<JobResult> {
  const done = request.resume === true ? await doneBefore(request) : null
  if (done !== null) return done
  const progressor = new Progressor(request.onEvent)
  const around = surroundingsOf(request, progressor)
  const route = await chooseRoute(request.source, request.sink, around)
  requireBuilt(request.options, route.sink)
  // A job that is gone on with was judged when it began.
  if (request.resume !== true) refuseUnheededBy(route, request, around)
  const streams = await Promise.all([route.source.isStream?.(request.source), route.sink.isStream?.(request.sink)])
  const resumable = !streams.includes(true)
  const folder = await openJobFolder({ ...request, resumable }, (old) =>
    discardJob(old, request, { route, around, progressor }),
  )
  try {
    return await runInFolder(request, { folder, route, around, progressor })
  } finally {
    progressor.stop()
    await folder.close()
  }
}

/**
 * Goes on with a job by its id alone; what was secret in its URLs must come from the environment.
 *
 * @throws SLUICE_JOB_UNKNOWN, SLUICE_JOB_RUNNING, SLUICE_USAGE where a URL needs a secret that was not kept
 */
export async function resume(request: ResumeRequest): Promise<JobResult> {
  requireText('stateDir', request.stateDir)
  requireText('jobId', request.jobId)
  const { viewJob } = await import('../engine/job-folder.ts')
  const view = await viewJob(request.stateDir, request.jobId)
  if (view.result?.status === 'done') return view.result
  const { source, sink, options } = seenFromHere(view.header, process.cwd())
  return copy({ ...request, source: withoutMask(source), sink: withoutMask(sink), options, resume: true })
}

interface Session {
  readonly folder: JobFolder
  readonly route: Route
  readonly around: Surroundings
  readonly progressor: Progressor
}

async function runInFolder(request: CopyRequest, session: Session): Promise<JobResult> {
  await session.folder.append({ kind: 'run', at: new Date().toISOString() })
  return conclude(await moveAnew(request, session), { ...session, request })
}

/** How a pass over the source ended. */
interface Pass {
  readonly outcome: JobOutcome
  readonly partitions: readonly Partition[]
  readonly replayable: boolean
  readonly bytesRead: number
  /** Whether rows were looked at before the first was moved: what stops that can be gone on with. */
  readonly looked?: boolean | undefined
  /** Of the sink. */
  readonly inPlace?: boolean | undefined
  /** Whether the state of the source that was read is gone, and nothing of it stays in the sink. */
  readonly mayRestart: boolean
}

/**
 * Moves everything, from the beginning again where the state of the source is gone (a snapshot on a standby). Each pass begins from nothing, so that none
 * is progress: no pass begins later than `--retry-for` after the first that came to nothing.
 */
async function moveAnew(request: CopyRequest, session: Session): Promise<Pass> {
  const { progressor, around } = session
  const retryForMs = around.options.retryFor ?? DEFAULT_RETRY_FOR_MS
  let [bytesRead, began, firstMs] = [0, false, Number.POSITIVE_INFINITY]
  for (let failures = 0; ; failures += 1) {
    const pass = await moveOnce(request, session)
    bytesRead += pass.bytesRead
    began ||= pass.outcome.began === true
    const soFar = { ...pass, bytesRead, outcome: { ...pass.outcome, began } }
    const { error } = pass.outcome
    if (error === null || !pass.mayRestart) return soFar
    firstMs = Math.min(firstMs, performance.now())
    const waitMs = backoffMs(failures, false)
    if (performance.now() + waitMs > firstMs + retryForMs) return soFar
    progressor.waiting(error, waitMs)
    await delay(waitMs, undefined, { signal: around.signal }).catch(() => undefined)
    if (around.signal.aborted)
      return { ...soFar, outcome: { ...soFar.outcome, error: toSluiceError(around.signal.reason) } }
  }
}

async function moveOnce(request: CopyRequest, session: Session): Promise<Pass> {
  const { folder, around, progressor } = session
  let source: Source | null = null
  let sink: Sink | null = null
  let outcome: JobOutcome
  let partitions: readonly Partition[] = []
  const seen = { rows: false }
  try {
    progressor.phase('preparing')
    source = await openSource(request, session)
    sink = await openSink(request, session, folder)
    const prepared = await prepare({ source, sink, seen }, session)
    partitions = prepared.partitions
    outcome = await moveRows({ source, sink, prepared }, session)
  } catch (thrown) {
    const error = toSluiceError(around.signal.aborted ? around.signal.reason : thrown)
    // What earlier runs left stays for the next resume.
    const moved = seen.rows || earlierRuns(folder.entries).runs > 1
    await sink?.abort(error, { resumable: moved && error.exitClass(true) === 'resumable' })
    outcome = { ...countMoved([]), outputs: [], error }
  } finally {
    await sink?.close().catch(() => undefined)
    await source?.close().catch(() => undefined)
  }
  const { error, rowsWritten } = outcome
  const lost = error !== null && source?.mayRestart?.(error) === true
  return {
    outcome,
    partitions,
    replayable: source?.replayable ?? true,
    bytesRead: source?.bytesRead() ?? 0,
    looked: seen.rows,
    inPlace: sink?.inPlace,
    mayRestart: lost && rowsWritten === 0 && folder.header.resumable,
  }
}

async function openSource(request: CopyRequest, { route, around }: Session): Promise<Source> {
  const wanted = { ...endpointRequest(request.source, around), raw: route.raw, resumable: true }
  const source = await route.source.openSource?.(wanted)
  if (source === undefined) throw new SluiceError('SLUICE_NOT_YET', `${route.source.name} is no source`)
  return source
}

async function openSink(request: CopyRequest, session: Session, folder: JobFolder): Promise<Sink> {
  const { route, around, progressor } = session
  const sink = await route.sink.openSink?.({
    ...endpointRequest(request.sink, around),
    context: sinkContext(folder, request, progressor),
    sourceUrl: request.source,
    raw: route.raw,
    tellSql: (statement) => progressor.sql(statement),
  })
  if (sink === undefined) throw new SluiceError('SLUICE_NOT_YET', `${route.sink.name} is no sink`)
  return sink
}

interface Prepared {
  readonly partitions: readonly Partition[]
  readonly mapping: Mapping
  readonly form: BatchForm
  readonly source: Source
}

async function prepare(
  ends: { source: Source; sink: Sink; seen: { rows: boolean } },
  session: Session,
): Promise<Prepared> {
  const { folder, around, progressor, route } = session
  const { signal, options } = around
  const recorded = folder.entries.find((entry) => entry.kind === 'partitions')
  const known = recorded?.kind === 'partitions' && ends.source.restarts !== true ? recorded.partitions : null
  const partitions = known ?? (await ends.source.plan({ signal }))
  if (recorded === undefined) await folder.append({ kind: 'partitions', partitions })
  const described = route.raw
    ? { columns: [], named: false }
    : await ends.source.describe({ signal, everyColumn: ends.sink.anyColumns !== true })
  const mapping = mapColumns(described, options, partitions[0]?.url ?? '')
  const met = (await ends.sink.meet?.(mapping.schema, { signal })) ?? mapping.schema
  let [source, schema] = [ends.source, met]
  const wantsTypes = ends.sink.wantsTypes === true && options.types !== 'string' && described.typed !== true
  const whole = described.typed !== true && partitions.length === 1
  if (!route.raw && mustInfer(met, { create: options.create === true, wantsTypes, whole })) {
    progressor.phase('inferring')
    ends.seen.rows = true
    const inferred = await inferSource(ends.source, {
      mapping: { ...mapping, schema: met },
      typed: described.typed === true,
      partitions,
      form: inferredForm([ends.source, ends.sink, mapping]),
      signal,
    })
    source = inferred.source
    schema = inferred.schema
  }
  const form = ends.sink.forms.find((wanted) => source.forms.includes(wanted) && mapping.forms.includes(wanted))
  if (form === undefined) throw new SluiceError('SLUICE_INTERNAL', 'source and sink share no form')
  if (form !== 'csv') requireDistinct(schema.columns)
  const { replayable, unordered = false, restarts = false } = source
  await ends.sink.prepare({ schema, partitions, form, replayable, unordered, restarts }, { signal })
  return { partitions, mapping, form, source }
}

async function moveRows(
  ends: { source: Source; sink: Sink; prepared: Prepared },
  session: Session,
): Promise<JobOutcome> {
  const { progressor, around, route } = session
  const { prepared, sink } = ends
  const { options } = around
  const bytesTotal = prepared.partitions.every((partition) => partition.bytes !== null)
    ? prepared.partitions.reduce((sum, partition) => sum + (partition.bytes ?? 0), 0)
    : null
  if (!prepared.source.replayable) progressor.warn('the source can be read only once: this job cannot be resumed')
  progressor.planned({
    partitions: prepared.partitions.length,
    bytesTotal,
    lanes: sink.lanes.max,
    route: route.name,
    routeReason: route.reason,
  })
  progressor.phase('copying')
  return runJob({
    source: prepared.source,
    sink,
    partitions: prepared.partitions,
    mapping: prepared.mapping,
    form: prepared.form,
    lanes: options.concurrency ?? 'auto',
    retryForMs: options.retryFor ?? DEFAULT_RETRY_FOR_MS,
    maxMemoryBytes: options.maxMemory ?? null,
    progressor,
    signal: around.signal,
    bytesTotal,
  })
}

type Ending = Session & { readonly request: CopyRequest }

async function conclude(pass: Omit<Pass, 'mayRestart'>, ending: Ending): Promise<JobResult> {
  const { folder, progressor, request, route } = ending
  const { outcome, replayable } = pass
  const earlier = earlierRuns(folder.entries)
  // What a job had begun to move in an earlier run counts: then a failure to begin again is no usage error.
  const moved = outcome.began === true || outcome.rowsRead > 0 || outcome.bytesWritten > 0
  const rowsMoved = moved || pass.looked === true || earlier.runs > 1
  const status = statusOf(outcome.error, { rowsMoved, resumable: replayable && folder.header.resumable })
  const own = {
    bytesRead: pass.bytesRead,
    retries: progressor.retries,
    throttles: progressor.throttles,
    wallMs: Math.round(progressor.elapsedMs()),
    cpuMs: Math.round(progressor.cpuMs()),
  }
  await folder.append({ kind: 'end', at: new Date().toISOString(), status, ...own })
  const result: JobResult = {
    jobId: folder.header.jobId,
    status,
    source: redactUrl(request.source),
    sink: redactUrl(request.sink),
    route: route.name,
    routeReason: route.reason,
    runs: earlier.runs,
    rowsRead: outcome.rowsRead,
    rowsWritten: outcome.rowsWritten,
    rowsRejected: 0,
    rowsSkipped: outcome.filtered + outcome.superseded,
    skipped: { filtered: outcome.filtered, superseded: outcome.superseded, existing: 0 },
    bytesRead: earlier.bytesRead + own.bytesRead,
    bytesWritten: bytesOf(outcome),
    partitions: pass.partitions.length,
    retries: earlier.retries + own.retries,
    throttles: earlier.throttles + own.throttles,
    wallMs: earlier.wallMs + own.wallMs,
    cpuMs: earlier.cpuMs + own.cpuMs,
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
    outputs: outcome.outputs,
    rejectFile: null,
    warnings: [...progressor.warnings],
    resumeCommand: status === 'stopped' ? resumeCommand(folder.header.jobId) : null,
    ...(outcome.error === null ? {} : { error: reportError(outcome.error) }),
    ...(pass.inPlace === true && outcome.error !== null && outcome.began === true ? { leftRows: true } : {}),
  }
  if (status !== 'stopped') await folder.writeResult(result)
  return result
}

/** What the outputs have, which is more than their rows took where files have an end of their own (Parquet's footer); what was sealed, where there are none. */
function bytesOf({ outputs, bytesWritten }: JobOutcome): number {
  return outputs.length === 0 ? bytesWritten : outputs.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** `--new-job`: what the unfinished job left behind goes, and it is over. */
async function discardJob(old: JobFolder, request: CopyRequest, session: Omit<Session, 'folder'>): Promise<void> {
  const folder = old
  const sink = await openSink(request, { ...session, folder }, folder)
  try {
    await sink.abort(new SluiceError('SLUICE_JOB_EXISTS', 'replaced by a new job'), { resumable: false })
  } finally {
    await sink.close()
  }
  const error = new SluiceError('SLUICE_JOB_EXISTS', 'the job was given up for a new one (--new-job)')
  const outcome: JobOutcome = { ...countMoved([]), outputs: [], error }
  await conclude({ outcome, partitions: [], replayable: true, bytesRead: 0 }, { ...session, folder, request })
}

/** A masked password is taken out, so that PGPASSWORD or .pgpass is asked; a masked signature cannot be made up. */
function withoutMask(url: string): string {
  const open = url
    .replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?#@]*):\*\*\*@/i, '$1@')
    .replace(/([?&])password=\*\*\*(&|$)/g, '$1')
  if (open.includes('***') && !/^s3:/i.test(open))
    throw new SluiceError('SLUICE_USAGE', `the URL of the job holds a secret, which is not kept: ${url}`, {
      hint: 'give the whole command again, with --job-id ID --resume',
    })
  return open
}
