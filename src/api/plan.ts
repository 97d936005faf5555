import type { SinkRequest } from '../connectors/connector.ts'
import { SluiceError } from '../core/errors.ts'
import type { Partition } from '../core/job.ts'
import type { Sink, SinkContext, Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import type { Schema } from '../core/schema.ts'
import { inferSource, mustInfer } from '../engine/infer-source.ts'
import { Progressor } from '../engine/progress.ts'
import { requireBuilt } from './built-options.ts'
import { requireText, within } from './border.ts'
import { chooseRoute, endpointRequest, surroundingsOf } from './endpoints.ts'
import type { Route, Surroundings } from './endpoints.ts'
import type { CopyRequest, PlanResult } from './requests.ts'
import { inferredForm, mapColumns } from './rows.ts'
import { refuseUnheededBy } from './unheeded.ts'

/**
 * What a copy would do: partitions, lanes, parts, SQL, requests. Reads headers (with `--create`, and towards DynamoDB, the whole input, to infer types), and
 * writes nothing.
 *
 * @throws what a copy would find before any row is read
 */
export async function plan(request: CopyRequest): Promise<PlanResult> {
  requireText('source', request.source)
  requireText('sink', request.sink)
  return within(request, planWithin)
}

async function planWithin(request: CopyRequest): Promise<PlanResult> {
  const progressor = new Progressor(request.onEvent)
  const around = surroundingsOf(request, progressor)
  const route = await chooseRoute(request.source, request.sink, around)
  requireBuilt({ ...request.options, yes: true }, route.sink)
  refuseUnheededBy(route, request, around)
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
  const met = await meetTarget({ request, route, around, progressor }, mapping.schema)
  const typed = described.typed === true
  const wantsTypes = met.wantsTypes && options.types !== 'string' && !typed
  const schema =
    !route.raw &&
    mustInfer(met.schema, { create: options.create === true, wantsTypes, whole: !typed && partitions.length === 1 })
      ? (
          await inferSource(source, {
            mapping: { ...mapping, schema: met.schema },
            typed,
            partitions,
            form: inferredForm([source, mapping]),
            signal,
          })
        ).schema
      : met.schema
  const sinkFacts = await askSink({ request, route, around, progressor }, { partitions, schema })
  return {
    source: redactUrl(request.source),
    sink: redactUrl(request.sink),
    route: route.name,
    routeReason: route.reason,
    partitions: partitions.map(({ id, url, bytes }) => ({ id, url, bytes })),
    ...sinkFacts,
    steps: met.steps,
    columns: schema.columns.map((column, i) => ({
      source: mapping.sources[i] ?? null,
      sink: column.name,
      type: column.nativeType ?? column.type ?? null,
    })),
    warnings: [...progressor.warnings],
  }
}

/** What the target says of the columns; nothing where it is not asked before a load. */
async function meetTarget(
  { request, route, around, progressor }: Planning,
  schema: Schema,
): Promise<{ readonly schema: Schema; readonly steps: readonly string[]; readonly wantsTypes: boolean }> {
  if (route.raw || route.sink.planMeet === undefined) return { schema, steps: [], wantsTypes: false }
  const met = await route.sink.planMeet(sinkRequestOf({ request, route, around, progressor }), schema)
  return { ...met, wantsTypes: true }
}

function sinkRequestOf({ request, route, around, progressor }: Planning): SinkRequest {
  return {
    ...endpointRequest(request.sink, around),
    context: planContext(progressor),
    sourceUrl: request.source,
    raw: route.raw,
    tellSql: () => undefined,
  }
}

/** What the sink would do: opened, asked, and closed again. */
async function askSink(
  { request, route, around, progressor }: Planning,
  what: { partitions: readonly Partition[]; schema: Schema },
): Promise<Pick<PlanResult, 'lanes' | 'partBytes' | 'parts' | 'sql'>> {
  const sinkRequest = sinkRequestOf({ request, route, around, progressor })
  const sink = await route.sink.openSink?.(sinkRequest)
  if (sink === undefined) throw new SluiceError('SLUICE_NOT_YET', `${route.sink.name} is no sink`)
  try {
    const sql = (await route.sink.planSql?.(sinkRequest, what.schema)) ?? []
    const parts = route.raw ? await partsOf(sink, what, around.signal) : null
    const { concurrency = 'auto' } = around.options
    const { max, ordered } = sink.lanes
    const lanes = concurrency === 'auto' || ordered ? max : Math.min(concurrency, max)
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
