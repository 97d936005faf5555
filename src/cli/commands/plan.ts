import { plan, type PlanResult } from '../../index.ts'
import type { RunCommand } from '../context.ts'
import { standardInputFor } from '../standard-input.ts'
import type { Style } from '../style.ts'
import { indent, renderTable } from '../table.ts'
import { formatBytes, formatCount } from '../units.ts'

/** Partitions shown to people; `--json` has all. */
const MOST_PARTITIONS = 20

/** `sluice plan SOURCE SINK`: writes nothing. */
export const run: RunCommand = async (context) => {
  const { operands, options, defaults, own, env, stateDir, outStyle, print } = context
  const [source = '', sink = ''] = operands
  const stdin = standardInputFor(source)
  const result = await plan({
    source,
    sink,
    options,
    defaults,
    env,
    stateDir,
    signal: context.interruption.signal,
    stdin,
  })
  await print(own.json === true ? `${JSON.stringify(result)}\n` : `${renderPlan(result, outStyle)}\n`)
  return 0
}

/** A plan for people. */
export function renderPlan(plan: PlanResult, style: Style): string {
  const total = plan.partitions.reduce<number | null>(
    (sum, { bytes }) => (sum === null || bytes === null ? null : sum + bytes),
    0,
  )
  const count = `${formatCount(plan.partitions.length)} partition${plan.partitions.length === 1 ? '' : 's'}`
  const parts =
    plan.partBytes === null
      ? ''
      : `, ${plan.parts === null ? '' : `${formatCount(plan.parts)} `}parts of ${formatBytes(plan.partBytes)}`
  const out = [
    `${style.dim('source')}  ${plan.source} (${count}${total === null ? '' : `, ${formatBytes(total)}`})`,
    `${style.dim('sink')}    ${plan.sink} (${plan.lanes} lane${plan.lanes === 1 ? '' : 's'}${parts})`,
    `${style.dim('route')}   ${plan.route}: ${plan.routeReason}`,
  ]
  if (plan.partitions.length > 1) out.push('', style.bold('partitions'), ...renderPartitions(plan))
  if (plan.columns.length > 0) {
    const rows = plan.columns.map((column) => [column.source ?? '(constant)', column.sink, column.type ?? ''])
    out.push(
      '',
      style.bold('columns'),
      ...indent(renderTable([{ title: 'source' }, { title: 'sink' }, { title: 'type' }], rows)),
    )
  }
  if (plan.sql.length > 0)
    out.push('', style.bold('SQL'), ...plan.sql.flatMap((statement) => indent(`${statement};`.split('\n'))))
  if (plan.steps.length > 0) out.push('', style.bold('steps'), ...indent([...plan.steps]))
  for (const warning of plan.warnings) out.push('', `${style.yellow('warning:')} ${warning}`)
  return out.join('\n')
}

function renderPartitions(plan: PlanResult): string[] {
  const rows = plan.partitions
    .slice(0, MOST_PARTITIONS)
    .map(({ url, bytes }) => [url, bytes === null ? '?' : formatBytes(bytes)])
  const more = plan.partitions.length - rows.length
  return indent([
    ...renderTable([{ title: 'url' }, { title: 'size', right: true }], rows, 100),
    ...(more > 0 ? [`and ${formatCount(more)} more`] : []),
  ])
}
