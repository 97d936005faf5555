import { inspect, type InspectResult } from '../../index.ts'
import type { RunCommand } from '../context.ts'
import { standardInputFor } from '../standard-input.ts'
import type { Style } from '../style.ts'
import { indent, renderTable, type TableColumn } from '../table.ts'
import { formatBytes, formatCount } from '../units.ts'

/** Width of a sample's value for people; `--json` has it whole. */
const SAMPLE_WIDTH = 30

/** `sluice inspect URL`. */
export const run: RunCommand = async (context) => {
  const { operands, options, defaults, own, env, outStyle, print, screen, style } = context
  const [url = ''] = operands
  const stdin = standardInputFor(url)
  const result = await inspect(url, {
    options,
    defaults,
    rows: own.rows,
    full: own.full,
    ddl: own.ddl,
    env,
    stdin,
    signal: context.interruption.signal,
  })
  for (const warning of result.warnings) screen.print('warn', `${style.yellow('warning:')} ${warning}`)
  if (own.json === true) await print(`${JSON.stringify(result)}\n`)
  // Alone, so that it can be piped into psql.
  else if (own.ddl !== undefined) await print(`${(result.ddl ?? '').trimEnd()};\n`)
  else await print(`${renderInspect(result, outStyle)}\n`)
  return 0
}

/** What a file, object or table is, for people. */
export function renderInspect(result: InspectResult, style: Style): string {
  const out = [style.bold(result.url), `  ${facts(result)}`]
  if (result.partitions.length > 1) {
    const rows = result.partitions
      .slice(0, 20)
      .map(({ url, bytes }) => [url, bytes === null ? '?' : formatBytes(bytes)])
    out.push(
      '',
      style.bold('partitions'),
      ...indent(renderTable([{ title: 'url' }, { title: 'size', right: true }], rows, 100)),
    )
    if (result.partitions.length > rows.length)
      out.push(`  and ${formatCount(result.partitions.length - rows.length)} more`)
  }
  if (result.profile !== undefined) out.push('', style.bold('profile'), ...indent(renderProfile(result)))
  else if (result.columns.length > 0) out.push('', style.bold('columns'), ...indent(renderColumns(result)))
  if (result.sample.length > 0) {
    const columns = result.columns.map((column): TableColumn => ({
      title: column.name,
      right: column.type === 'integer' || column.type === 'number',
    }))
    const rows = result.sample.map((row) => row.map((value) => value ?? 'NULL'))
    out.push('', style.bold('sample'), ...indent(renderTable(columns, rows, SAMPLE_WIDTH)))
  }
  if (result.table !== undefined)
    out.push('', style.bold('table'), ...indent(JSON.stringify(result.table, null, 2).split('\n')))
  return out.join('\n')
}

function facts(result: InspectResult): string {
  const { rows, exact } = result.counts
  return [
    result.compression === null || result.compression === 'none'
      ? result.format
      : `${result.format}, ${result.compression}`,
    ...(result.bytes === null ? [] : [formatBytes(result.bytes)]),
    ...(rows === null ? [] : [`${exact ? '' : 'about '}${formatCount(rows)} row${rows === 1 ? '' : 's'}`]),
    ...(result.columns.length === 0
      ? []
      : [`${result.columns.length} column${result.columns.length === 1 ? '' : 's'}`]),
  ].join(', ')
}

function renderColumns(result: InspectResult): string[] {
  const native = result.columns.some((column) => column.nativeType !== undefined)
  const rows = result.columns.map((column) => {
    const nullable = column.nullable === undefined ? '' : column.nullable ? 'yes' : 'no'
    return [column.name, column.type ?? '?', ...(native ? [column.nativeType ?? '', nullable] : [])]
  })
  return renderTable(
    [{ title: 'name' }, { title: 'type' }, ...(native ? [{ title: 'native type' }, { title: 'nullable' }] : [])],
    rows,
  )
}

function renderProfile(result: InspectResult): string[] {
  const text = (value: number | null): string => (value === null ? '' : formatCount(value))
  const rows = (result.profile ?? []).map((column) => [
    column.name,
    column.type,
    formatCount(column.nulls),
    column.min ?? '',
    column.max ?? '',
    formatCount(column.longest),
    column.precision === null ? '' : `${text(column.precision)},${text(column.scale ?? 0)}`,
  ])
  const titles = ['name', 'type', 'nulls', 'min', 'max', 'longest', 'precision,scale']
  return renderTable(
    titles.map((title) => ({ title, right: title === 'nulls' || title === 'longest' })),
    rows,
    SAMPLE_WIDTH,
  )
}
