import { createHash } from 'node:crypto'
import { connectorFor } from '../connectors/registry.ts'
import type { ComparedBatch, Connector, EndpointRequest } from '../connectors/connector.ts'
import { SluiceError } from '../core/errors.ts'
import type { Batch, Value } from '../core/batch.ts'
import type { Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import type { Mapping } from '../engine/mapping.ts'
import { Progressor } from '../engine/progress.ts'
import { requireBuilt } from './built-options.ts'
import { chooseRoute, endpointRequest } from './endpoints.ts'
import type { Surroundings } from './endpoints.ts'
import { planContext } from './plan.ts'
import type { VerifyRequest, VerifyResult, VerifySide } from './requests.ts'
import { displayText, mapColumns } from './rows.ts'

/**
 * Whether source and sink hold the same: for a table rows are compared by its own types, in SQL; for two files their bytes, or their rows where
 * format, compression or columns differ.
 *
 * @throws what reading either side throws
 */
export async function verify(sourceUrl: string, sinkUrl: string, request: VerifyRequest): Promise<VerifyResult> {
  requireBuilt({ ...request.options, yes: true })
  const signal = request.signal ?? new AbortController().signal
  const progressor = new Progressor(request.onEvent)
  const around: Surroundings = {
    options: request.options,
    env: request.env,
    reporter: progressor,
    signal,
    stdin: request.stdin,
    stateDir: request.stateDir,
  }
  const sink = await connectorFor(sinkUrl)
  const from = { url: sourceUrl, request: endpointRequest(sourceUrl, around), connector: await connectorFor(sourceUrl) }
  const to = { url: sinkUrl, request: endpointRequest(sinkUrl, around), connector: sink }
  if (sink.compareRows !== undefined)
    return compareWithSink(from, to, { limit: request.limit ?? 10, progressor, around })
  const route = await chooseRoute(sourceUrl, sinkUrl, around)
  return route.raw
    ? compareBytes(from, to, { signal, limit: request.limit ?? 10 })
    : compareFiles(
        from,
        { ...to, request: { ...to.request, options: plainOptions(to.request) } },
        { around, limit: request.limit ?? 10 },
      )
}

interface End {
  readonly url: string
  readonly request: EndpointRequest
  readonly connector: Connector
}

async function openSource(end: End): Promise<Source> {
  const source = await end.connector.openSource?.(end.request)
  if (source === undefined)
    throw new SluiceError('SLUICE_NOT_YET', `${end.connector.name} as a source is specified and not built yet`)
  return source
}

async function compareWithSink(
  from: End,
  to: End,
  o: { limit: number; progressor: Progressor; around: Surroundings },
): Promise<VerifyResult> {
  const source = await openSource(from)
  const { signal, options } = o.around
  try {
    const mapping = mapColumns(await source.describe({ signal }), options, from.url)
    const request = {
      ...to.request,
      context: planContext(o.progressor),
      sourceUrl: from.url,
      raw: false,
      tellSql: () => undefined,
    }
    const form = mapping.forms.includes('csv') && source.forms.includes('csv') ? 'csv' : 'rows'
    o.progressor.start(() => ({
      rowsRead: 0,
      rowsWritten: 0,
      bytesRead: source.bytesRead(),
      bytesWritten: 0,
      bytesTotal: null,
      inFlight: 1,
    }))
    const compared = await to.connector.compareRows?.(request, {
      schema: mapping.schema,
      batches: mapped(source, mapping, { form, signal }),
      limit: o.limit,
    })
    if (compared === undefined) throw new SluiceError('SLUICE_NOT_YET', `${to.connector.name} cannot be verified yet`)
    const side = (url: string, digest: { rows: number; hash: string }): VerifySide => ({
      url: redactUrl(url),
      ...digest,
      bytes: null,
    })
    const same = compared.source.rows === compared.sink.rows && compared.source.hash === compared.sink.hash
    return {
      same,
      source: side(from.url, compared.source),
      sink: side(to.url, compared.sink),
      differences: compared.differences,
    }
  } finally {
    o.progressor.stop()
    await source.close()
  }
}

async function* mapped(
  source: Source,
  mapping: Mapping,
  o: { form: 'csv' | 'rows'; signal: AbortSignal },
): AsyncGenerator<ComparedBatch> {
  for (const partition of await source.plan(o)) {
    const { url } = partition
    for await (const batch of source.read(partition, o)) yield { url, batch: applied(mapping, batch, url) }
  }
}

function applied(mapping: Mapping, batch: Batch, url: string): Batch {
  try {
    return mapping.apply(batch)
  } catch (error) {
    throw error instanceof SluiceError ? error.at({ url }) : error
  }
}

async function compareBytes(from: End, to: End, o: { signal: AbortSignal; limit: number }): Promise<VerifyResult> {
  const { signal, limit } = o
  const [source, sink] = [await hashBytes(from, signal), await hashBytes(to, signal)]
  const names = new Set([...source.files.keys(), ...sink.files.keys()])
  const single = source.files.size === 1 && sink.files.size === 1
  const differences = single
    ? source.side.hash === sink.side.hash
      ? []
      : [{ kind: 'different' as const, text: `${source.side.bytes ?? 0} bytes and ${sink.side.bytes ?? 0} bytes` }]
    : [...names].flatMap((name) => {
        const [a, b] = [source.files.get(name), sink.files.get(name)]
        if (a === b) return []
        return [
          {
            kind:
              b === undefined ? ('missing' as const) : a === undefined ? ('extra' as const) : ('different' as const),
            text: name,
          },
        ]
      })
  return {
    same: differences.length === 0,
    source: source.side,
    sink: sink.side,
    differences: differences.slice(0, limit),
  }
}

/** SHA-256 of each file, and of the whole. */
async function hashBytes(end: End, signal: AbortSignal): Promise<{ side: VerifySide; files: Map<string, string> }> {
  const source = await openSource(end)
  const files = new Map<string, string>()
  let bytes = 0
  try {
    for (const partition of await source.plan({ signal })) {
      const hash = createHash('sha256')
      for await (const batch of source.read(partition, { form: 'bytes', signal })) {
        if (batch.form !== 'bytes') continue
        hash.update(batch.bytes)
        bytes += batch.bytes.byteLength
      }
      files.set(partition.id, hash.digest('hex'))
    }
  } finally {
    await source.close()
  }
  const whole =
    files.size === 1
      ? ([...files.values()][0] ?? '')
      : createHash('sha256')
          .update(JSON.stringify([...files].toSorted()))
          .digest('hex')
  return { side: { url: redactUrl(end.url), rows: null, hash: whole, bytes }, files }
}

/** Rows of both sides, in any order: counts and the sum of the rows' hashes. */
async function compareFiles(from: End, to: End, o: { around: Surroundings; limit: number }): Promise<VerifyResult> {
  const { signal, options } = o.around
  const [a, b] = [await hashRows(from, { options, signal }), await hashRows(to, { options: null, signal })]
  const same = a.rows === b.rows && a.hash === b.hash
  const text =
    a.rows === b.rows ? `${a.rows} rows on both sides, with other values` : `${a.rows} rows and ${b.rows} rows`
  return {
    same,
    source: { url: redactUrl(from.url), rows: a.rows, hash: a.hash, bytes: null },
    sink: { url: redactUrl(to.url), rows: b.rows, hash: b.hash, bytes: null },
    differences: same ? [] : [{ kind: 'different', text }],
  }
}

async function hashRows(
  end: End,
  o: { options: Surroundings['options'] | null; signal: AbortSignal },
): Promise<{ rows: number; hash: string }> {
  const source = await openSource(end)
  let rows = 0
  let sum = 0n
  try {
    const mapping = mapColumns(await source.describe(o), o.options ?? {}, end.url)
    for await (const { batch: rowsBatch } of mapped(source, mapping, { form: 'rows', signal: o.signal })) {
      if (rowsBatch.form !== 'rows') continue
      const order = rowsBatch.columns.map((name, i) => ({ name, i })).toSorted((x, y) => (x.name < y.name ? -1 : 1))
      for (const row of rowsBatch.rows) sum = (sum + hashRow(order, row)) & 0xffff_ffff_ffff_ffffn
      rows += rowsBatch.rows.length
    }
  } finally {
    await source.close()
  }
  return { rows, hash: sum.toString(16).padStart(16, '0') }
}

/** A missing value and NULL are the same here: CSV can't tell them apart. */
function hashRow(order: readonly { name: string; i: number }[], row: readonly Value[]): bigint {
  const present = order.flatMap(({ name, i }) => {
    const text = displayText(row[i])
    return text === null ? [] : [[name, text]]
  })
  return createHash('sha1').update(JSON.stringify(present)).digest().readBigUInt64BE()
}

/** What was said of the source's format is not said of the sink's. */
function plainOptions(request: EndpointRequest): EndpointRequest['options'] {
  const {
    s3Endpoint,
    region,
    profile,
    signRequest,
    pathStyle,
    sinkFormat,
    sinkCompression,
    maxMemory,
    parallelism,
    retryFor,
    glob,
  } = request.options
  const kept = {
    s3Endpoint,
    region,
    profile,
    signRequest,
    pathStyle,
    sourceFormat: sinkFormat,
    sourceCompression: sinkCompression,
    maxMemory,
    parallelism,
    retryFor,
    glob,
  }
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined))
}
