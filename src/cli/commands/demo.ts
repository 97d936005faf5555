import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../../core/options.ts'
import type { JobResult, VerifyResult } from '../../index.ts'
import { runChild, startDevProcess } from '../child-command.ts'
import type { CommandContext, RunCommand } from '../context.ts'
import { writePeople } from '../demo-data.ts'
import { DEV_BUCKET } from '../dev-services.ts'
import { EXIT } from '../exit-code.ts'
import { shellQuote } from '../shell-quote.ts'
import type { Style } from '../style.ts'
import { renderTable } from '../table.ts'
import { formatBytes, formatCount, formatDuration, formatShortCount } from '../units.ts'

const USUAL_ROWS = 500_000

/** One job of the demo: what it is called, and the operands and flags of its copy; verify takes the same operands. */
interface DemoJob {
  readonly title: string
  readonly operands: readonly [source: string, sink: string]
  readonly flags: readonly string[]
}

interface DemoOutcome {
  readonly title: string
  /** Null where the copy failed. */
  readonly result: JobResult
  readonly verified: boolean
}

/** `sluice demo`: each job is a sluice command in its own process, as a user would type it, and is verified. */
export const run: RunCommand = async (context) => {
  const { own, interruption, style, screen } = context
  const { signal } = interruption
  const folder = await mkdtemp(join(tmpdir(), 'sluice-demo-'))
  const say = (text: string): void => screen.print('info', text)
  try {
    say(`${style.bold('sluice demo')}: an S3 and a PostgreSQL of our own, on this machine`)
    const services = await startDevProcess(signal)
    try {
      const env = { ...context.env, ...services.env, SLUICE_STATE_DIR: join(folder, 'state') }
      const rows = own.rows ?? USUAL_ROWS
      const file = join(folder, 'people.csv')
      const bytes = await writePeople(file, rows)
      say(`made people.csv: ${formatCount(rows)} rows, ${formatBytes(bytes)}`)
      const outcomes = await runJobs(jobsOf(folder, services.env), { context, env })
      await context.print(`\n${renderOutcomes(outcomes, context.outStyle).join('\n')}\n`)
      if (own.keep === true) await keepRunning(context, services.env)
      return outcomes.length === jobsOf(folder, services.env).length && outcomes.every(({ verified }) => verified)
        ? EXIT.done
        : EXIT.failed
    } finally {
      await services.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function jobsOf(folder: string, env: Environment): readonly DemoJob[] {
  const file = join(folder, 'people.csv')
  const object = `s3://${DEV_BUCKET}/people.csv`
  const table = `postgres://postgres@127.0.0.1:${env['PGPORT'] ?? ''}/postgres?table=people`
  return [
    { title: 'file → S3', operands: [file, object], flags: [] },
    { title: 'S3 → PostgreSQL', operands: [object, table], flags: ['--create'] },
    { title: 'PostgreSQL → S3', operands: [table, `s3://${DEV_BUCKET}/people.parquet`], flags: [] },
    { title: 'S3 → file', operands: [object, join(folder, 'back.csv')], flags: [] },
  ]
}

/** Runs the jobs one after the other, and no further than the first that fails. */
async function runJobs(
  jobs: readonly DemoJob[],
  o: { readonly context: CommandContext; readonly env: Environment },
): Promise<DemoOutcome[]> {
  const { style, screen, interruption } = o.context
  const outcomes: DemoOutcome[] = []
  for (const job of jobs) {
    screen.print(
      'info',
      `\n${style.cyan('$')} ${style.bold(shellQuote(['sluice', 'copy', ...job.operands, ...job.flags]))}`,
    )
    const copied = await runChild({
      words: ['copy', ...job.operands, ...job.flags, '--json'],
      env: o.env,
      signal: interruption.signal,
    })
    const result = copied.json as JobResult
    if (copied.code !== 0) return [...outcomes, { title: job.title, result, verified: false }]
    screen.print('info', `${style.cyan('$')} ${style.bold(shellQuote(['sluice', 'verify', ...job.operands]))}`)
    const compared = await runChild({
      words: ['verify', ...job.operands, '--json'],
      env: o.env,
      signal: interruption.signal,
    })
    const { same } = compared.json as VerifyResult
    screen.print(
      'info',
      same ? `${style.green(style.bold('same'))}  on both sides` : `${style.red(style.bold('different'))}`,
    )
    outcomes.push({ title: job.title, result, verified: same })
  }
  return outcomes
}

/** The table at the end. */
export function renderOutcomes(outcomes: readonly DemoOutcome[], style: Style): string[] {
  const rows = outcomes.map(({ title, result, verified }) => {
    const moved = result.rowsWritten > 0
    const seconds = Math.max(1, result.wallMs) / 1000
    return [
      title,
      moved ? formatCount(result.rowsWritten) : '–',
      formatBytes(result.bytesWritten),
      formatDuration(result.wallMs),
      moved ? formatShortCount(result.rowsWritten / seconds) : '–',
      `${formatBytes(result.bytesRead / seconds)}/s`,
      formatCount(result.retries),
      formatBytes(result.peakRssBytes),
      verified ? 'yes' : 'NO',
    ]
  })
  const titles = ['job', 'rows', 'size', 'time', 'rows/s', 'speed', 'retries', 'peak memory', 'verified']
  const [head = '', ...body] = renderTable(
    titles.map((title, i) => ({ title, right: i > 0 && i < 8 })),
    rows,
  )
  return [
    style.bold(head),
    style.dim('─'.repeat(head.length)),
    ...body.map((line) => line.replace(/yes$/, style.green('yes')).replace(/NO$/, style.red('NO'))),
  ]
}

async function keepRunning(
  { print, interruption, outStyle }: CommandContext,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const exports = Object.entries(env).map(([name, value]) => `  export ${name}=${shellQuote([value])}`)
  await print(
    `\n${outStyle.bold('The services go on.')} In another shell:\n${exports.join('\n')}\nCtrl-C stops them.\n`,
  )
  if (!interruption.signal.aborted) await once(interruption.signal, 'abort')
}
