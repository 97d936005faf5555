import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { ERROR_RULES, type ErrorCode, SluiceError } from '../core/errors.ts'
import type { ReportedError } from '../core/job.ts'
import type { Environment } from '../core/options.ts'

/** A command's JSON is a few KiB; one of thousands of partitions still fits. */
const MOST_OUTPUT_BYTES = 16 * 1024 * 1024

interface Child {
  readonly words: readonly string[]
  readonly env: Environment
  readonly signal: AbortSignal
}

/**
 * Runs another sluice command in a process of its own, so that its memory and its CPU are its own; its progress goes to our
 * standard error. Resolves with its exit code and the JSON that it printed.
 *
 * @throws SLUICE_INTERRUPTED, SLUICE_INTERNAL where it printed no JSON
 */
export async function runChild(o: Child): Promise<{ code: number; json: unknown }> {
  const child = spawn(process.execPath, [scriptPath(), ...o.words], {
    env: o.env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = (): void => void child.kill('SIGTERM')
  o.signal.addEventListener('abort', stop, { once: true })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < MOST_OUTPUT_BYTES) output += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  o.signal.removeEventListener('abort', stop)
  o.signal.throwIfAborted()
  return { code: code ?? 1, json: parse(output, o.words) }
}

/** `sluice dev` as a background process that ends when we do: it watches the IPC channel. Resolves once its services run. */
export async function startDevProcess(
  signal: AbortSignal,
): Promise<{ env: Record<string, string>; stop(): Promise<void> }> {
  // A process group of its own: Ctrl-C ends the commands that use the services before the services.
  const child = spawn(process.execPath, [scriptPath(), 'dev', '--json', '-q'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  // What keeps it from starting is told by us; a crash, and what comes later, by itself.
  let told = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (told.length < MOST_OUTPUT_BYTES) told += text
  })
  // Not `close`: it never comes where the output was left unread and the channel was closed by us.
  const closed = once(child, 'exit')
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    await closed
  }
  const giveUp = (): void => void (child.connected && child.disconnect())
  signal.addEventListener('abort', giveUp, { once: true })
  const line = await Promise.race([firstLine(child.stdout ?? Readable.from([])), closed.then(() => null)])
  signal.throwIfAborted()
  // From now on whoever uses the services ends first, and then stops them.
  signal.removeEventListener('abort', giveUp)
  if (line === null)
    throw new SluiceError('SLUICE_LOCAL_IO', `the embedded services did not start:\n${told.trim()}`, { hint: '' })
  const answer = parse(line, ['dev']) as { env?: Record<string, string>; error?: ReportedError }
  if (answer.env === undefined) {
    await stop()
    throw startError(answer.error)
  }
  process.stderr.write(told)
  child.stderr?.removeAllListeners('data').pipe(process.stderr, { end: false })
  return { env: answer.env, stop }
}

/** The error that `dev` reported, as our own. */
function startError(error: ReportedError | undefined): SluiceError {
  const code =
    error !== undefined && Object.hasOwn(ERROR_RULES, error.code) ? (error.code as ErrorCode) : 'SLUICE_INTERNAL'
  return new SluiceError(code, error?.message ?? 'the embedded services did not start', { hint: error?.hint })
}

async function firstLine(stream: NodeJS.ReadableStream): Promise<string | null> {
  let text = ''
  stream.setEncoding('utf8')
  for await (const piece of stream) {
    text += String(piece)
    if (text.includes('\n')) return text.slice(0, text.indexOf('\n'))
  }
  return null
}

function parse(output: string, words: readonly string[]): unknown {
  try {
    return JSON.parse(output.trim().split('\n').at(-1) ?? '')
  } catch (error) {
    throw new SluiceError('SLUICE_INTERNAL', `sluice ${words[0] ?? ''} printed no result`, { cause: error })
  }
}

function scriptPath(): string {
  return process.argv[1] ?? ''
}
