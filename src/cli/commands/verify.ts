import { verify, type VerifyResult } from '../../index.ts'
import type { RunCommand } from '../context.ts'
import { EXIT } from '../exit-code.ts'
import { ProgressView } from '../progress.ts'
import { standardInputFor } from '../standard-input.ts'
import type { Style } from '../style.ts'
import { indent, printable, renderTable } from '../table.ts'
import { formatBytes, formatCount } from '../units.ts'

/** `sluice verify SOURCE SINK`: 0 the same, 1 different. */
export const run: RunCommand = async (context) => {
  const { operands, options, defaults, own, env, stateDir, screen, style, outStyle, print } = context
  const [source = '', sink = ''] = operands
  const stdin = standardInputFor(source)
  const progress = new ProgressView(screen, style, own.progress ?? (own.quiet === true ? 'none' : 'auto'))
  let result: VerifyResult
  try {
    const { signal } = context.interruption
    result = await verify(source, sink, {
      options,
      defaults,
      limit: own.limit,
      env,
      stateDir,
      stdin,
      signal,
      onEvent: progress.listen,
    })
  } finally {
    progress.stop()
  }
  if (own.json === true) await print(`${JSON.stringify(result)}\n`)
  else if (own.quiet !== true) await print(`${renderVerify(result, outStyle)}\n`)
  return result.same ? EXIT.done : EXIT.failed
}

/** Both sides, and what differs, for people. */
export function renderVerify(result: VerifyResult, style: Style): string {
  const rows = [result.source, result.sink].map((side) => [
    side.url,
    side.rows === null ? '' : formatCount(side.rows),
    side.bytes === null ? '' : formatBytes(side.bytes),
    side.hash,
  ])
  const columns = [{ title: 'url' }, { title: 'rows', right: true }, { title: 'size', right: true }, { title: 'hash' }]
  return [
    result.same ? style.green(style.bold('same')) : style.red(style.bold('different')),
    ...indent(renderTable(columns, rows, 80)),
    ...result.differences.map(({ kind, text }) => `  ${style.yellow(kind)}: ${printable(text)}`),
  ].join('\n')
}
