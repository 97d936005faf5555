import { nearest } from '../../core/nearest.ts'
import { createTable, deleteTable, describeTable, SluiceError, type TableInfo, type TableResult } from '../../index.ts'
import { confirm } from '../confirm.ts'
import type { CommandContext, RunCommand } from '../context.ts'
import type { Style } from '../style.ts'
import { printable } from '../table.ts'
import { formatBytes, formatCount } from '../units.ts'

const ACTIONS = ['create', 'describe', 'delete']

/** `sluice table create|describe|delete dynamodb://…`. */
export const run: RunCommand = async (context) => {
  const { operands, own, outStyle, print } = context
  const [action = '', url = ''] = operands
  const result = await act(action, url, context)
  for (const warning of result.warnings) context.screen.print('warn', `${context.style.yellow('warning:')} ${warning}`)
  if (own.json === true) await print(`${JSON.stringify({ action, ...result })}\n`)
  else if (own.quiet !== true || action === 'describe') await print(`${renderTableInfo(action, result, outStyle)}\n`)
  return 0
}

async function act(action: string, url: string, context: CommandContext): Promise<TableResult> {
  const { options, env, interruption } = context
  const request = { options, env, signal: interruption.signal }
  if (action === 'create') return createTable(url, request)
  if (action === 'describe') return describeTable(url, request)
  if (action === 'delete') {
    if (options.yes !== true) {
      const { table, url: shown } = await describeTable(url, request)
      const about = `${shown} would be deleted with all that is in it${table.items === null ? '' : ` (${formatCount(table.items)} items when last counted)`}`
      await confirm({ about, canAsk: true, signal: interruption.signal })
    }
    return deleteTable(url, { ...request, options: { ...options, yes: true } })
  }
  const meant = nearest(action, ACTIONS)
  const guess = meant === null ? '' : `; did you mean ${meant}?`
  throw new SluiceError('SLUICE_USAGE', `table ${action}: nothing to be done with a table${guess}`, {
    hint: `one of ${ACTIONS.join(', ')}`,
  })
}

/** What is known of a table, for people. */
export function renderTableInfo(
  action: string,
  { url, table }: Pick<TableResult, 'url' | 'table'>,
  style: Style,
): string {
  const line = (name: string, text: string): string => `  ${style.dim(name.padEnd(10))} ${printable(text)}`
  const what = action === 'create' ? 'created' : action === 'delete' ? 'deleted' : table.status
  const out = [`${style.bold(url)}  ${what}`, line('key', keyText(table))]
  if (action === 'delete') return out.join('\n')
  out.push(line('billing', billingText(table)))
  if (table.warm !== null) out.push(line('warm', unitsText(table.warm)))
  if (table.items !== null)
    out.push(line('items', `${formatCount(table.items)}, ${formatBytes(table.bytes ?? 0)} (as of the last six hours)`))
  for (const index of table.indexes)
    out.push(line('index', `${index.name}, ${index.kind}: ${index.keys.map(spell).join(', ')}`))
  if (table.stream) out.push(line('stream', 'on'))
  if (table.deletionProtection) out.push(line('protected', 'from deletion'))
  return out.join('\n')
}

function keyText(table: TableInfo): string {
  return [table.partitionKey, ...(table.sortKey === null ? [] : [table.sortKey])].map(spell).join(', ')
}

function spell({ name, type }: TableInfo['partitionKey']): string {
  return `${name}:${type}`
}

function billingText(table: TableInfo): string {
  if (table.provisioned !== null) return `provisioned: ${unitsText(table.provisioned)}`
  return table.onDemandLimit === null ? 'on demand' : `on demand, at most ${unitsText(table.onDemandLimit)}`
}

function unitsText({ readUnits, writeUnits }: NonNullable<TableInfo['warm']>): string {
  const count = (units: number | null): string => (units === null ? 'any number of' : formatCount(units))
  return `${count(readUnits)} read units and ${count(writeUnits)} write units a second`
}
