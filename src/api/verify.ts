import { createHash } from 'node:crypto'
import { connectorFor } from '../connectors/registry.ts'
import type { ComparedBatch, Connector, EndpointRequest } from '../connectors/connector.ts'
import { SluiceError } from '../core/errors.ts'
import type { Value } from '../core/batch.ts'
import type { Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import { applyMapping } from '../engine/mapping.ts'
import type { Mapping } from '../engine/mapping.ts'
import { Progressor } from '../engine/progress.ts'
import { requireBuilt } from './built-options.ts'
import { chooseRoute, endpointRequest, flagName, surroundingsOf } from './endpoints.ts'
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
  const progressor = new Progressor(request.onEvent)
  const around = surroundingsOf(request, progressor)
  const { signal } = around
  const sink = await connectorFor(sinkUrl)
  requireBuilt({ ...request.options, yes: true }, sink)
  const from = { url: sourceUrl, request: endpointRequest(sourceUrl, around), connector: await connectorFor(sourceUrl) }
  const to = { url: sinkUrl, request: endpointRequest(sinkUrl, around), connector: sink }
  const limit = request.limit ?? 10
  if (sink.compareRows !== undefined) return compareWithSink(from, to, { limit, progressor, around })
  if (from.connector.compareRows !== undefined) return compareUnloaded(from, to, { limit, progressor, around })
  const route = await chooseRoute(sourceUrl, sinkUrl, around)
  return route.raw
    ? compareBytes(from, to, { signal, limit })
    : compareFiles(from, { ...to, request: { ...to.request, options: plainOptions(to.request) } }, { around, limit })
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

async function* mapped(
  source: Source,
  mapping: Mapping,
  o: { form: 'csv' | 'rows'; signal: AbortSignal },
): AsyncGenerator<ComparedBatch> {
  for (const partition of await source.plan(o)) {
    const { url } = partition
    for await (const batch of source.read(partition, o)) yield { url, batch: applyMapping(mapping, batch, url) }
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
  const source = await openSource({ ...end, request: { ...end.request, raw: true } })
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
