import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The built program: what a user runs. `npm test` builds it; SLUICE_MAIN names another build. */
export const MAIN = process.env['SLUICE_MAIN'] ?? fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface CliOptions {
  readonly cwd?: string
  /** Added to an environment that has PATH and HOME only, so that nothing of the developer's own has a say. */
  readonly env?: Readonly<Record<string, string>>
  /** `open`: a pipe that never ends, as long as the caller does not end it. Nothing by default. */
  readonly stdin?: 'open'
}

/** Starts sluice. */
export function startCli(words: readonly string[], o: CliOptions = {}) {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is not there: npm run build`)
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...o.env }
  const child = spawn(process.execPath, [MAIN, ...words], { env, cwd: o.cwd, stdio: ['pipe', 'pipe', 'pipe'] })
  if (o.stdin !== 'open') child.stdin.end()
  return child
}

/** Runs sluice to its end. */
export async function cli(words: readonly string[], o: CliOptions = {}): Promise<Ended> {
  return ended(startCli(words, o))
}

/** What a process that was started says until it ends. */
export async function ended(child: ReturnType<typeof startCli>): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  return { code, stdout, stderr }
}
