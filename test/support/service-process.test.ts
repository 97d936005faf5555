import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { makeFolder, removeFolder, removeStaleFolders, startProcess, waitUntilReady } from './service-process.ts'

const here = fileURLToPath(new URL('service-process.ts', import.meta.url))

/** A test process of its own, that starts a service and a folder and says so. */
const SCRIPT = `
const { runnerImport } = await import('vite')
const { module } = await runnerImport(${JSON.stringify(here)})
const folder = module.makeFolder('orphan')
const { pid } = module.startProcess({ command: 'sleep', args: ['600'], stopSignal: 'SIGTERM' })
console.log(JSON.stringify({ pid, folder }))
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
`

async function startOwner(): Promise<{ owner: ChildProcess; pid: number; folder: string }> {
  const owner = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] })
  const line = await new Promise<string>((resolve, reject) => {
    let text = ''
    owner.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes('\n')) resolve(text)
    })
    owner.on('exit', (code) => reject(new Error(`ended with ${code}`)))
  })
  const said: { pid: number; folder: string } = JSON.parse(line)
  return { owner, ...said }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function untilGone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
}

it('ends a service, and removes its folder, when the process that started it ends', async () => {
  const { owner, pid, folder } = await startOwner()
  expect([isRunning(pid), existsSync(folder)]).toEqual([true, true])
  const ended = new Promise((resolve) => owner.once('exit', resolve))
  owner.stdin?.end()
  expect(await ended).toBe(0)
  await untilGone(pid)
  expect(existsSync(folder)).toBe(false)
})

it('ends a service even when that process is killed; the next run removes the folder', async () => {
  const { owner, pid, folder } = await startOwner()
  const ended = new Promise((resolve) => owner.once('exit', resolve))
  owner.kill('SIGKILL')
  await ended
  await untilGone(pid)
  const own = makeFolder('alive')
  removeStaleFolders()
  expect([existsSync(folder), existsSync(own)]).toEqual([false, true])
  removeFolder(own)
  expect(existsSync(own)).toBe(false)
})

it('kills what does not obey, and tells what a service said that is never ready', async () => {
  const loud = startProcess({
    command: 'sh',
    args: ['-c', 'trap "" TERM; echo no licence; while :; do sleep 1; done'],
    stopSignal: 'SIGTERM',
  })
  await expect(waitUntilReady(loud, () => Promise.resolve(false), 500)).rejects.toThrow(
    /not ready within 500 ms:\nno licence/,
  )
  expect(isRunning(loud.pid)).toBe(false)
  const short = startProcess({ command: 'sh', args: ['-c', 'echo gone; exit 3'], stopSignal: 'SIGTERM' })
  await expect(waitUntilReady(short, () => Promise.resolve(false), 5000)).rejects.toThrow(
    /ended before it was ready:\ngone/,
  )
  const none = startProcess({ command: '/nonexistent/program', args: [], stopSignal: 'SIGTERM' })
  await expect(waitUntilReady(none, () => Promise.resolve(false), 5000)).rejects.toThrow(/ended before it was ready/)
})
