import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../../core/options.ts'
import type { JobResult, VerifyResult } from '../../index.ts'
import { runChild, startDevProcess } from '../child-command.ts'
import type { CommandContext, RunCommand } from '../context.ts'
import { writePeople } from '../demo/people.ts'
import { type DemoOutcome, renderOutcomes } from '../demo/outcomes.ts'
import { writePostcodesZip } from '../demo/postcodes.ts'
import { type FileServer, serveFile } from '../demo/server.ts'
import { DEV_BUCKET } from '../dev/embedded.ts'
import { EXIT } from '../exit-code.ts'
import { shellQuote } from '../../core/shell-quote.ts'
import { formatBytes, formatCount } from '../units.ts'

const USUAL_ROWS = 500_000
/** One postcode for so many people: dynalite takes some 9,000 items a second, PostgreSQL some 200,000 rows. */
const ROWS_PER_POSTCODE = 10

/** One job of the demo: what it is called, and the operands and flags of its copy. */
interface DemoJob {
  readonly title: string
  readonly operands: readonly [source: string, sink: string]
  /** Of copy alone. */
  readonly flags: readonly string[]
  /** What changes rows on the way: verify needs it, too. */
  readonly mapping: readonly string[]
}

/** `sluice demo`: each job is a sluice command in its own process, as a user would type it, and is verified. */
export const run: RunCommand = async (context) => {
  const { own, interruption, style, screen } = context
  const { signal } = interruption
  const folder = await mkdtemp(join(tmpdir(), 'sluice-demo-'))
  const say = (text: string): void => screen.print('info', text)
  try {
    say(`${style.bold('sluice demo')}: an S3, a PostgreSQL and a DynamoDB of our own, on this machine`)
    const services = await startDevProcess(signal)
    try {
      const env = { ...context.env, ...services.env, SLUICE_STATE_DIR: join(folder, 'state') }
      const rows = own.rows ?? USUAL_ROWS
      const bytes = await writePeople(join(folder, 'people.csv'), rows)
      say(`made people.csv: ${formatCount(rows)} rows, ${formatBytes(bytes)}`)
      const web = await servePostcodes(folder, { rows: Math.ceil(rows / ROWS_PER_POSTCODE), say })
      try {
        const jobs = jobsOf(folder, { env: services.env, zipUrl: web.url })
        const outcomes = await runJobs(jobs, { context, env })
        const width = process.stdout.isTTY ? process.stdout.columns : Infinity
        await context.print(`\n${renderOutcomes(outcomes, context.outStyle, width).join('\n')}\n`)
        if (own.keep === true) await keepRunning(context, services.env)
        return outcomes.length === jobs.length && outcomes.every(({ verified }) => verified) ? EXIT.done : EXIT.failed
      } finally {
        await web.stop()
      }
    } finally {
      await services.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function servePostcodes(
  folder: string,
  o: { readonly rows: number; readonly say: (text: string) => void },
): Promise<FileServer> {
  const path = join(folder, 'ukpostcodes.zip')
  const bytes = await writePostcodesZip(path, o.rows)
  const server = await serveFile(path, 'ukpostcodes.zip')
  o.say(`made ukpostcodes.zip: ${formatCount(o.rows)} rows, ${formatBytes(bytes)}, on the web at ${server.url}`)
  return server
}

function jobsOf(
  folder: string,
  { env, zipUrl }: { readonly env: Environment; readonly zipUrl: string },
): readonly DemoJob[] {
  const object = `s3://${DEV_BUCKET}/people.csv`
  const table = `postgres://postgres@127.0.0.1:${env['PGPORT'] ?? ''}/postgres?table=people`
  const items = 'dynamodb:///Postcodes'
  const job = (title: string, operands: DemoJob['operands'], more: Partial<DemoJob> = {}): DemoJob => ({
    title,
    operands,
    flags: [],
    mapping: [],
    ...more,
  })
  return [
    job('file → S3', [join(folder, 'people.csv'), object]),
    job('S3 → PostgreSQL', [object, table], { flags: ['--create'] }),
    job('PostgreSQL → S3', [table, `s3://${DEV_BUCKET}/people.parquet`]),
    job('S3 → file', [object, join(folder, 'back.csv')]),
    job('zip → DynamoDB', [zipUrl, items], { flags: CREATE_POSTCODES, mapping: POSTCODES_MAPPING }),
    job('DynamoDB → S3', [items, `s3://${DEV_BUCKET}/postcodes.jsonl.gz`]),
  ]
}

const CREATE_POSTCODES = ['--create-table', '--partition-key', 'postcode:S']
const POSTCODES_MAPPING = [
  ...['--select', 'postcode,latitude,longitude', '--replace', 'postcode=/ //'],
  ...['--type', 'latitude=number', '--type', 'longitude=number', '--skip-if-empty', 'latitude,longitude'],
]

/** Runs the jobs one after the other, and no further than the first that fails. */
async function runJobs(
  jobs: readonly DemoJob[],
  o: { readonly context: CommandContext; readonly env: Environment },
): Promise<DemoOutcome[]> {
  const { style, screen, interruption } = o.context
  const outcomes: DemoOutcome[] = []
  const runShown = (words: readonly string[]): ReturnType<typeof runChild> => {
    screen.print(
      'info',
      `${style.cyan('$')} ${shownCommand(['sluice', ...words])
        .map((line) => style.bold(line))
        .join(' \\\n    ')}`,
    )
    return runChild({ words: [...words, '--json'], env: o.env, signal: interruption.signal })
  }
  for (const { title, operands, flags, mapping } of jobs) {
    screen.print('info', '')
    const copied = await runShown(['copy', ...operands, ...flags, ...mapping])
    const result = copied.json as JobResult
    if (copied.code !== 0) return [...outcomes, { title, result, verified: false }]
    const compared = await runShown(['verify', ...operands, ...mapping])
    const { same } = compared.json as VerifyResult
    screen.print(
      'info',
      same ? `${style.green(style.bold('same'))}  on both sides` : `${style.red(style.bold('different'))}`,
    )
    outcomes.push({ title, result, verified: same })
  }
  return outcomes
}

/** Characters of a line of a command before it goes on in the next: operands first, then flags, never a flag without its value. */
const COMMAND_LINE = 110

/** A command as lines that a shell takes with a backslash between; short ones are one line. */
export function shownCommand(words: readonly string[]): string[] {
  const groups = words.reduce<string[][]>((all, word) => {
    const last = all.at(-1)
    if (last === undefined || word.startsWith('--')) all.push([word])
    else last.push(word)
    return all
  }, [])
  return groups.map(shellQuote).reduce<string[]>((lines, group) => {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + group.length <= COMMAND_LINE) lines.splice(-1, 1, `${last} ${group}`)
    else lines.push(group)
    return lines
  }, [])
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
