import { connectorFor } from '../connectors/registry.ts'
import type { EndpointRequest } from '../connectors/connector.ts'
import { SluiceError } from '../core/errors.ts'
import { redactUrl } from '../core/redact.ts'
import { Progressor } from '../engine/progress.ts'
import { requireCount, requireText, within } from './border.ts'
import { requireBuilt } from './built-options.ts'
import { chooseRoute, endpointRequest, flagName, surroundingsOf } from './endpoints.ts'
import type { Surroundings } from './endpoints.ts'
import { planContext } from './plan.ts'
import type { VerifyRequest, VerifyResult, VerifySide } from './requests.ts'
import { mapColumns } from './rows.ts'
import { onlyName, refuseUnheeded } from './unheeded.ts'
import { mapped, openSource } from './verify-ends.ts'
import type { End } from './verify-ends.ts'
import { compareBytes, compareFiles } from './verify-files.ts'

/**
 * Whether source and sink hold the same: for a table rows are compared by its own types, in SQL; for two files their bytes, or their rows where
 * format, compression or columns differ.
 *
 * @throws what reading either side throws
 */
export async function verify(sourceUrl: string, sinkUrl: string, request: VerifyRequest): Promise<VerifyResult> {
  requireText('source', sourceUrl)
  requireText('sink', sinkUrl)
  requireCount('limit', request.limit)
  return within(request, (inside) => verifyWithin(sourceUrl, sinkUrl, inside))
}

async function verifyWithin(sourceUrl: string, sinkUrl: string, request: VerifyRequest): Promise<VerifyResult> {
  const progressor = new Progressor(request.onEvent)
  const around = surroundingsOf(request, progressor)
  const { signal } = around
  const sink = await connectorFor(sinkUrl)
  requireBuilt({ ...request.options, yes: true }, sink)
  const from = { url: sourceUrl, request: endpointRequest(sourceUrl, around), connector: await connectorFor(sourceUrl) }
  // Rows are compared with what a query gives, and a table is read, on either side.
  const source = {
    name: from.connector.name,
    kinds: [from.connector, sink].flatMap(({ name }) => onlyName(name).kinds),
  }
  refuseUnheeded(request.options, { source, defaults: request.defaults })
  const to = { url: sinkUrl, request: endpointRequest(sinkUrl, around), connector: sink }
  const limit = request.limit ?? 10
  if (sink.compareRows !== undefined) return compareWithSink(from, to, { limit, progressor, around })
  if (from.connector.compareRows !== undefined) return compareUnloaded(from, to, { limit, progressor, around })
  const route = await chooseRoute(sourceUrl, sinkUrl, around)
  return route.raw
    ? compareBytes(from, to, { signal, limit })
    : compareFiles(from, { ...to, request: { ...to.request, options: plainOptions(to.request) } }, { around, limit })
}

/** What was unloaded from a table is compared on the table's side, as if it were to be loaded again. */
async function compareUnloaded(
  from: End,
  to: End,
  o: { limit: number; progressor: Progressor; around: Surroundings },
): Promise<VerifyResult> {
  const { options } = o.around
  const changing = (['replace', 'set', 'type', 'skipIfEmpty'] as const).find((flag) => (options[flag] ?? []).length > 0)
  if (changing !== undefined)
    throw new SluiceError('SLUICE_USAGE', `rows that --${flagName(changing)} changed cannot be compared with the table`)
  const format = options.sinkFormat ?? to.connector.fileKind?.(to.request).format
  const binary = format === 'jsonl' ? await binaryColumns(from) : []
  const file = { ...to, request: { ...to.request, options: unloadedOptions(to.request, binary) } }
  const table = { ...from, request: { ...from.request, options: tableOptions(from.request) } }
  const around = { ...o.around, options: file.request.options }
  const { source, sink, same, differences } = await compareWithSink(file, table, { ...o, around, unloaded: true })
  const turned = { missing: 'extra', extra: 'missing', different: 'different' } as const
  return {
    same,
    source: sink,
    sink: source,
    differences: differences.map(({ kind, text }) => ({ kind: turned[kind], text })),
  }
}

/** Names, in the file, of columns whose values JSON holds in base64. */
async function binaryColumns(table: End): Promise<readonly string[]> {
  const source = await openSource(table)
  try {
    const described = await source.describe({ signal: table.request.signal })
    const { columns } = mapColumns(described, table.request.options, table.url).schema
    return columns.filter((column) => column.type === 'binary').map((column) => column.name)
  } finally {
    await source.close()
  }
}

/** How an unloaded file is read back: its own format, columns under the names that the table knows. */
function unloadedOptions(request: EndpointRequest, binary: readonly string[]): EndpointRequest['options'] {
  const { rename = [], delimiter, columns } = request.options
  const back = rename.map((pair) => pair.split('=')).map(([old = '', renamed = '']) => `${renamed}=${old}`)
  return {
    ...plainOptions(request),
    ...(delimiter === undefined ? {} : { delimiter }),
    ...(columns === undefined ? {} : { columns }),
    ...(back.length === 0 ? {} : { rename: back }),
    ...(binary.length > 0 ? { type: binary.map((name) => `${name}=binary`) } : {}),
  }
}

/** The table's side of it: no flag that is about files. */
function tableOptions(request: EndpointRequest): EndpointRequest['options'] {
  const { query, timeZone, retryFor, region, profile, signRequest, readUnits } = request.options
  const kept = { query, timeZone, retryFor, region, profile, signRequest, readUnits }
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined))
}

async function compareWithSink(
  from: End,
  to: End,
  o: { limit: number; progressor: Progressor; around: Surroundings; unloaded?: boolean },
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
    const raw = to.connector.comparedForm === undefined && mapping.forms.includes('csv') && source.forms.includes('csv')
    const form = raw ? 'csv' : 'rows'
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
      unloaded: o.unloaded,
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
