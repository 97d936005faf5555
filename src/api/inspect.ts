import { connectorFor } from '../connectors/registry.ts'
import type { Connector, EndpointRequest } from '../connectors/connector.ts'
import type { Value } from '../core/batch.ts'
import { SluiceError } from '../core/errors.ts'
import type { Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import type { Column } from '../core/schema.ts'
import { Progressor } from '../engine/progress.ts'
import { ColumnProfiler } from '../engine/profile.ts'
import { requireCount, requireText, within } from './border.ts'
import { onlyName, refuseUnheeded } from './unheeded.ts'
import { endpointRequest, surroundingsOf } from './endpoints.ts'
import type { InspectRequest, InspectResult } from './requests.ts'
import { displayText, readRows } from './rows.ts'

const SAMPLE_ROWS = 10
/** Rows that types are told by where neither `--full` nor `--ddl` is given. */
const LOOKED_ROWS = 10_000
/** What PostgreSQL takes, in characters of one byte. */
const LONGEST_TABLE_NAME = 63

/**
 * Looks at a file, an object, a prefix or a table: columns, types as far as they were looked at, a sample, counts.
 *
 * @throws what reading it throws
 */
export async function inspect(url: string, request: InspectRequest): Promise<InspectResult> {
  requireText('url', url)
  requireCount('rows', request.rows)
  return within(request, (inside) => inspectWithin(url, inside))
}

async function inspectWithin(url: string, request: InspectRequest): Promise<InspectResult> {
  const progressor = new Progressor(undefined)
  const around = surroundingsOf(request, progressor)
  const connector = await connectorFor(url)
  refuseUnheeded(request.options, { source: onlyName(connector.name), defaults: request.defaults })
  const asked = endpointRequest(url, around)
  // To be looked at, a value's own text is as good as any.
  const endpoint = { ...asked, options: { onSpecial: 'text' as const, ...asked.options } }
  const isTable = connector.describeTable !== undefined && request.options.query === undefined
  const facts = isTable
    ? await inspectTable(connector, endpoint, request)
    : await inspectSource(connector, endpoint, request)
  return { url: redactUrl(url), ...facts, warnings: [...progressor.warnings] }
}

type Facts = Omit<InspectResult, 'url' | 'warnings'>

/** What the table's own system says of it, and some of its rows. */
async function inspectTable(connector: Connector, endpoint: EndpointRequest, request: InspectRequest): Promise<Facts> {
  const report = await connector.describeTable?.(endpoint)
  if (report === undefined) throw new SluiceError('SLUICE_NOT_YET', `${connector.name} cannot be inspected yet`)
  const { ddl, ...rest } = request
  // A table of another system than SQL says what its rows hold by its rows alone.
  const looking = ddl !== undefined && connector.ddl === undefined ? request : rest
  const wanted = (request.rows ?? SAMPLE_ROWS) > 0 || request.full === true || looking === request
  const source = wanted ? await connector.openSource?.(endpoint) : undefined
  try {
    const seen = source === undefined ? null : await lookAt(source, looking, { signal: endpoint.signal, least: 0 })
    return {
      format: connector.name,
      compression: null,
      bytes: report.bytes,
      partitions: [],
      columns: tableColumns(report.schema.columns, seen?.columns ?? []),
      sample: seen?.sample ?? [],
      counts: seen?.counts.exact === true ? seen.counts : { rows: report.rows, exact: false },
      ...(seen?.profile === undefined ? {} : { profile: seen.profile }),
      table: report.table,
      ...(ddl === undefined
        ? {}
        : {
            ddl:
              connector.ddl?.(report.schema, report.name) ??
              (await ddlFor(seen?.inferred ?? [], tableName(endpoint.url))),
          }),
    }
  } finally {
    await source?.close()
  }
}

/** The columns that rows were seen to have, in the order of the sample, as the table declares them; then those that only the table knows. */
function tableColumns(declared: readonly Column[], seen: InspectResult['columns']): InspectResult['columns'] {
  const own = new Map(
    declared.map(({ name, type, nativeType, nullable }) => [name, { name, type: type ?? null, nativeType, nullable }]),
  )
  const unseen = [...own.values()].filter(({ name }) => !seen.some((column) => column.name === name))
  return [...seen.map((column) => own.get(column.name) ?? column), ...unseen]
}

async function inspectSource(connector: Connector, endpoint: EndpointRequest, request: InspectRequest): Promise<Facts> {
  const source = await connector.openSource?.(endpoint)
  if (source === undefined) throw new SluiceError('SLUICE_NOT_YET', `${connector.name} cannot be inspected yet`)
  const { signal, url } = endpoint
  try {
    const { inferred, ...facts } = await lookAt(source, request, { signal, least: LOOKED_ROWS })
    const partitions = await source.plan({ signal })
    // A prefix or glob is what its first object is.
    const kind = connector.fileKind?.({ ...endpoint, url: partitions[0]?.url ?? url })
    const format = kind === undefined ? connector.name : (request.options.sourceFormat ?? kind.format)
    // A partition of Parquet is a row group, and less than its file.
    const files = format === 'parquet' ? await filesOf(connector, endpoint) : null
    const sizes = files ?? partitions.map((partition) => partition.bytes)
    return {
      format,
      compression: kind?.compression ?? null,
      bytes: sizes.every((size) => size !== null) ? sizes.reduce((sum, size) => sum + size, 0) : null,
      partitions: partitions.map((partition) => ({ url: partition.url, bytes: partition.bytes })),
      ...facts,
      ...(request.ddl === undefined ? {} : { ddl: await ddlFor(inferred, tableName(url)) }),
    }
  } finally {
    await source.close()
  }
}

/** Sizes of the files that a name stands for; null where it cannot be said. */
async function filesOf(connector: Connector, endpoint: EndpointRequest): Promise<readonly (number | null)[] | null> {
  if (connector.list === undefined) return null
  const sizes: (number | null)[] = []
  for await (const { size } of connector.list(endpoint)) sizes.push(size)
  return sizes
}

async function lookAt(
  source: Source,
  request: InspectRequest,
  o: { signal: AbortSignal; least: number },
): Promise<Pick<InspectResult, 'columns' | 'sample' | 'counts' | 'profile'> & { inferred: readonly Column[] }> {
  const wanted = request.rows ?? SAMPLE_ROWS
  const full = request.full === true
  // A table that holds the first rows only is of no use: its types are those of all rows.
  const all = full || request.ddl !== undefined
  const { signal } = o
  const schema = await source.describe({ signal, everyColumn: all })
  const profiler = new ColumnProfiler(schema)
  const taken: { names: readonly string[]; row: readonly Value[] }[] = []
  let [rows, exact] = [0, true]
  for await (const batch of readRows(source, signal)) {
    profiler.add(batch)
    for (const row of batch.rows) if (taken.length < wanted) taken.push({ names: batch.columns, row })
    rows += batch.rows.length
    if (all || rows < Math.max(o.least, wanted)) continue
    exact = false
    break
  }
  // What the source says of a column comes before what its values look like.
  const told = new Map(schema.columns.map((column) => [column.name, column]))
  const inferred = profiler.columns().map((column) => ({ ...column, type: told.get(column.name)?.type ?? column.type }))
  return {
    inferred,
    columns: inferred.map(({ name, type }) => {
      const { nativeType, nullable } = told.get(name) ?? {}
      return { name, type: type ?? null, ...(nativeType === undefined ? {} : { nativeType, nullable }) }
    }),
    sample: taken.map(({ names, row }) =>
      inOrder(
        row,
        names,
        inferred.map(({ name }) => name),
      ).map(displayText),
    ),
    counts: { rows: exact ? rows : null, exact },
    ...(full ? { profile: profiler.result() } : {}),
  }
}

/** Values under the columns that are shown: files may have others, and in another order. */
function inOrder(row: readonly Value[], names: readonly string[], columns: readonly string[]): readonly Value[] {
  if (columns.every((name, i) => i >= names.length || names[i] === name)) return row
  return columns.map((name) => row[names.indexOf(name)])
}

async function ddlFor(columns: readonly Column[], name: string): Promise<string | undefined> {
  const connector = await connectorFor('postgres://')
  return connector.ddl?.({ columns: columns.map((column) => ({ ...column, nullable: true })), named: true }, { name })
}

/** A table's name after a file's. */
function tableName(url: string): string {
  const last = url.split(/[?#]/)[0]?.replace(/\/$/, '').split('/').at(-1) ?? ''
  return (
    last
      .replace(/\..*$/, '')
      .toLowerCase()
      .replaceAll(/[^a-z0-9_]+/g, '_')
      .replaceAll(/^_|_$/g, '')
      .slice(0, LONGEST_TABLE_NAME) || 'data'
  )
}
