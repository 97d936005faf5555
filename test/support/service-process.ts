import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** Who a service runs as; empty: as this process. */
export interface Identity {
  readonly uid?: number
  readonly gid?: number
}

/** What is started, and how it is told to end. */
export interface ServiceCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly identity?: Identity
  /** What asks it to end at once but in order. */
  readonly stopSignal: NodeJS.Signals
}

/** A running service. */
export interface ServiceProcess {
  readonly pid: number
  /** The last 8 KiB of what it printed, for errors. */
  output(): string
  exited(): boolean
  /** Ends it by its stop signal, after 10 s by SIGKILL; resolves when it is gone. */
  stop(): Promise<void>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
}

const OUTPUT_CHARS = 8192
const STOP_MS = 10_000
const FOLDER_PREFIX = 'sluice-test-'

const liveChildren = new Set<ChildProcess>()
const liveFolders = new Set<string>()

process.on('exit', () => {
  for (const child of liveChildren) child.kill('SIGKILL')
  for (const folder of liveFolders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

/** A new folder below the system's temporary one, removed by `removeFolder` or when this process ends. */
export function makeFolder(name: string, identity: Identity = {}): string {
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-${name}-`))
  liveFolders.add(folder)
  if (identity.uid !== undefined && identity.gid !== undefined) chownSync(folder, identity.uid, identity.gid)
  return folder
}

/** Removes a folder of `makeFolder`. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  liveFolders.delete(folder)
}

/** Removes the folders of test processes that were killed: those whose process id, which is in their name, is no more. */
export function removeStaleFolders(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = /^sluice-test-(\d+)-/.exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    rmSync(join(tmpdir(), name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/**
 * Starts a service that ends with this process, however that ends: on Linux the kernel sends it its stop signal
 * (PR_SET_PDEATHSIG, prctl(2), set by util-linux's setpriv, which `exec` keeps).
 */
export function startProcess(what: ServiceCommand): ServiceProcess {
  const linux = process.platform === 'linux'
  const command = linux ? 'setpriv' : what.command
  const args = linux ? ['--pdeathsig', what.stopSignal.slice(3), '--', what.command, ...what.args] : [...what.args]
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: tmpdir(), TZ: 'UTC', ...what.env },
    ...(what.cwd === undefined ? {} : { cwd: what.cwd }),
    ...what.identity,
  })
  let printed = ''
  const keep = (chunk: Buffer): void => {
    printed = (printed + chunk.toString()).slice(-OUTPUT_CHARS)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  let gone = false
  const end = new Promise<void>((resolve) => {
    const onEnd = (): void => {
      gone = true
      liveChildren.delete(child)
      resolve()
    }
    child.once('exit', onEnd)
    child.once('error', (error) => {
      printed += String(error)
      onEnd()
    })
  })
  liveChildren.add(child)
  child.unref()
  const signalAndWait = async (signal: NodeJS.Signals): Promise<void> => {
    if (gone) return
    child.ref()
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await end
    clearTimeout(timer)
  }
  return {
    pid: child.pid ?? -1,
    output: () => printed,
    exited: () => gone,
    stop: () => signalAndWait(what.stopSignal),
    kill: () => signalAndWait('SIGKILL'),
  }
}

/**
 * Waits until `probe` is true; every 50 ms, for at most `timeoutMs`.
 *
 * @throws an Error with the service's output where it ends first or the time is over
 */
export async function waitUntilReady(
  service: ServiceProcess,
  probe: () => Promise<boolean>,
  timeoutMs: number,
): Promise<void> {
  const endMs = performance.now() + timeoutMs
  while (!service.exited() && performance.now() < endMs) {
    if (await probe()) return
    await delay(50)
  }
  const why = service.exited() ? 'the service ended before it was ready' : `not ready within ${timeoutMs} ms`
  await service.kill()
  throw new Error(`${why}:\n${service.output()}`)
}
