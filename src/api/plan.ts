import { SluiceError } from '../core/errors.ts'
import type { Partition } from '../core/job.ts'
import type { Sink, SinkContext, Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import type { Schema } from '../core/schema.ts'
import { inferSource } from '../engine/infer-source.ts'
import { Progressor } from '../engine/progress.ts'
import { requireBuilt } from './built-options.ts'
import { chooseRoute, endpointRequest, surroundingsOf } from './endpoints.ts'
import type { Route, Surroundings } from './endpoints.ts'
import type { CopyRequest, PlanResult } from './requests.ts'
import { mapColumns } from './rows.ts'

/**
 * What a copy would do: partitions, lanes, parts, SQL. Reads headers (with `--create` the whole input, to infer types), and writes nothing.
 *
 * @throws what a copy would find before any row is read
 */
export async function plan(request: CopyRequest): Promise<PlanResult> {
  requireBuilt({ ...request.options, yes: true })
  const progressor = new Progressor(request.onEvent)
  const around = surroundingsOf(request, progressor)
  const route = await chooseRoute(request.source, request.sink, around)
  const source = await route.source.openSource?.({ ...endpointRequest(request.source, around), raw: route.raw })
  if (source === undefined) throw new SluiceError('SLUICE_NOT_YET', `${route.source.name} is no source`)
  try {
    return await planWith(source, { request, route, around, progressor })
  } finally {
    await source.close()
  }
}

interface Planning {
  readonly request: CopyRequest
  readonly route: Route
  readonly around: Surroundings
  readonly progressor: Progressor
}

async function planWith(source: Source, { request, route, around, progressor }: Planning): Promise<PlanResult> {
  const { options, signal } = around
  const partitions = await source.plan({ signal })
  const described = route.raw ? { columns: [], named: false } : await source.describe({ signal })
  const mapping = mapColumns(described, options, request.source)
  const schema =
    options.create === true && !route.raw
      ? (await inferSource(source, { mapping, typed: described.typed === true, partitions, signal })).schema
      : mapping.schema
  const sinkFacts = await askSink({ request, route, around, progressor }, { partitions, schema })
  return {
    source: redactUrl(request.source),
    sink: redactUrl(request.sink),
    route: route.name,
    routeReason: route.reason,
    partitions: partitions.map(({ id, url, bytes }) => ({ id, url, bytes })),
    ...sinkFacts,
    columns: schema.columns.map((column, i) => ({
      source: mapping.sources[i] ?? null,
      sink: column.name,
      type: column.nativeType ?? column.type ?? null,
    })),
    warnings: [...progressor.warnings],
  }
}

/** What the sink would do: opened, asked, and closed again. */
async function askSink(
  { request, route, around, progressor }: Planning,
  what: { partitions: readonly Partition[]; schema: Schema },
): Promise<Pick<PlanResult, 'lanes' | 'partBytes' | 'parts' | 'sql'>> {
  const sinkRequest = {
    ...endpointRequest(request.sink, around),
    context: planContext(progressor),
    sourceUrl: request.source,
    raw: route.raw,
    tellSql: () => undefined,
  }
  const sink = await route.sink.openSink?.(sinkRequest)
  if (sink === undefined) throw new SluiceError('SLUICE_NOT_YET', `${route.sink.name} is no sink`)
  try {
    const sql = (await route.sink.planSql?.(sinkRequest, what.schema)) ?? []
    const parts = route.raw ? await partsOf(sink, what, around.signal) : null
    const { concurrency = 'auto' } = around.options
    const lanes = concurrency === 'auto' ? sink.lanes.max : Math.min(concurrency, sink.lanes.max)
    return { lanes, partBytes: parts?.bytes ?? null, parts: parts?.count ?? null, sql }
  } finally {
    await sink.close()
  }
}

async function partsOf(
  sink: Sink,
  what: { partitions: readonly Partition[]; schema: Schema },
  signal: AbortSignal,
): Promise<{ bytes: number; count: number | null } | null> {
  await sink.prepare(
    {
      schema: what.schema,
      partitions: what.partitions,
      form: 'bytes',
      replayable: true,
      unordered: false,
      restarts: false,
    },
    { signal },
  )
  if (!sink.extentBytes.exact) return null
  const bytes = sink.extentBytes.target
  const counts = what.partitions.map((partition) =>
    partition.bytes === null ? null : Math.max(1, Math.ceil(partition.bytes / bytes)),
  )
  return {
    bytes,
    count: counts.every((count) => count !== null) ? counts.reduce((sum, count) => sum + count, 0) : null,
  }
}

/** A sink's context where nothing is written and nothing kept. */
export function planContext(progressor: Progressor): SinkContext {
  return {
    jobId: 'plan',
    fingerprint: '',
    resumed: false,
    newJob: false,
    recorded: [],
    record: () => Promise.resolve(),
    warn: (message) => progressor.warn(message),
    retried: (reason) => progressor.retried(reason),
  }
}
