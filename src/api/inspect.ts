import { connectorFor } from '../connectors/registry.ts'
import { SluiceError } from '../core/errors.ts'
import type { Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import type { Column } from '../core/schema.ts'
import { Progressor } from '../engine/progress.ts'
import { ColumnProfiler } from '../engine/profile.ts'
import { endpointRequest } from './endpoints.ts'
import type { Surroundings } from './endpoints.ts'
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
  const signal = request.signal ?? new AbortController().signal
  const progressor = new Progressor(undefined)
  const around: Surroundings = {
    options: request.options,
    env: request.env,
    reporter: progressor,
    signal,
    stdin: request.stdin,
  }
  const connector = await connectorFor(url)
  const endpoint = endpointRequest(url, around)
  if (connector.describeTable !== undefined) {
    const report = await connector.describeTable(endpoint)
    return {
      url: redactUrl(url),
      format: connector.name,
      compression: null,
      bytes: report.bytes,
      partitions: [],
      columns: report.schema.columns.map((column) => ({ ...column, type: column.type ?? null })),
      sample: [],
      counts: { rows: report.rows, exact: false },
      table: report.table,
      ...(request.ddl === undefined ? {} : { ddl: connector.ddl?.(report.schema, report.name) }),
      warnings: [...progressor.warnings],
    }
  }
  const source = await connector.openSource?.(endpoint)
  if (source === undefined) throw new SluiceError('SLUICE_NOT_YET', `${connector.name} cannot be inspected yet`)
  try {
    const { inferred, ...facts } = await lookAt(source, request, signal)
    const partitions = await source.plan({ signal })
    // A prefix or glob is what its first object is.
    const kind = connector.fileKind?.({ ...endpoint, url: partitions[0]?.url ?? endpoint.url })
    const sizes = partitions.map((partition) => partition.bytes)
    return {
      url: redactUrl(url),
      format: request.options.sourceFormat ?? kind?.format ?? 'raw',
      compression: kind?.compression ?? null,
      bytes: sizes.every((size) => size !== null) ? sizes.reduce((sum, size) => sum + size, 0) : null,
      partitions: partitions.map((partition) => ({ url: partition.url, bytes: partition.bytes })),
      ...facts,
      ...(request.ddl === undefined ? {} : { ddl: await ddlFor(inferred, tableName(url)) }),
      warnings: [...progressor.warnings],
    }
  } finally {
    await source.close()
  }
}

async function lookAt(
  source: Source,
  request: InspectRequest,
  signal: AbortSignal,
): Promise<Pick<InspectResult, 'columns' | 'sample' | 'counts' | 'profile'> & { inferred: readonly Column[] }> {
  const wanted = request.rows ?? SAMPLE_ROWS
  const full = request.full === true
  // A table that holds the first rows only is of no use: its types are those of all rows.
  const all = full || request.ddl !== undefined
  const schema = await source.describe({ signal })
  const profiler = new ColumnProfiler(schema)
  const sample: (string | null)[][] = []
  let [rows, exact] = [0, true]
  for await (const batch of readRows(source, signal)) {
    profiler.add(batch)
    for (const row of batch.rows) if (sample.length < wanted) sample.push(row.map((value) => displayText(value)))
    rows += batch.rows.length
    if (all || rows < Math.max(LOOKED_ROWS, wanted)) continue
    exact = false
    break
  }
  const inferred = profiler.columns()
  return {
    inferred,
    columns: inferred.map((column) => ({ name: column.name, type: column.type ?? null })),
    sample,
    counts: { rows: exact ? rows : null, exact },
    ...(full ? { profile: profiler.result() } : {}),
  }
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
