import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JobResult } from '../../src/core/job.ts'
import type { HttpFaultProxy, HttpFaultRule } from '../support/fault-proxy-http.ts'
import { s3Do, s3Request, type S3Address } from '../support/services.ts'
import { cli, ended, startCli } from './cli-process.ts'

export const MIB = 1024 * 1024

/** A scratch folder with a state folder of its own, and sluice run in it against one S3. */
export interface Place {
  readonly folder: string
  path(name: string): string
  sluice(words: readonly string[]): ReturnType<typeof cli>
  start(words: readonly string[], o?: { stdin?: 'open' }): ReturnType<typeof startCli>
  /** Runs `copy … --json`; the object and the exit code. */
  copy(...words: string[]): Promise<{ code: number | null; result: JobResult; stderr: string }>
  resume(id: string, ...words: string[]): Promise<{ code: number | null; result: JobResult; stderr: string }>
  remove(): void
}

export function makePlace(address: { readonly env: Readonly<Record<string, string>> }): Place {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bytes-'))
  mkdirSync(join(folder, 'state'))
  const options = { cwd: folder, env: { XDG_STATE_HOME: join(folder, 'state'), ...address.env } }
  const json = async (words: readonly string[]) => {
    const { code, stdout, stderr } = await cli([...words, '--json'], options)
    return { code, result: lastJson(stdout === '' ? stderr : stdout), stderr }
  }
  return {
    folder,
    path: (name) => join(folder, name),
    sluice: (words) => cli(words, options),
    start: (words, o) => startCli(words, { ...options, ...o }),
    copy: (...words) => json(['copy', ...words]),
    resume: (id, ...words) => json(['resume', id, ...words]),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function lastJson(text: string): JobResult {
  return JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as JobResult
}

/** Bytes that no compression and no accident makes equal. */
export const noise = (bytes: number): Buffer => randomBytes(bytes)

export const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** An object's bytes, past sluice. */
export async function objectOf(store: S3Address, path: string): Promise<Buffer> {
  return (await s3Do(store, { method: 'GET', path })).body
}

export async function putObject(store: S3Address, path: string, body: Uint8Array | string): Promise<void> {
  await s3Do(store, { method: 'PUT', path, body })
}

export async function isThere(store: S3Address, path: string): Promise<boolean> {
  return (await s3Request(store, { method: 'HEAD', path })).status === 200
}

/** Ids of unfinished uploads in a bucket. */
export async function uploadsIn(store: S3Address, bucket: string): Promise<string[]> {
  const { body } = await s3Do(store, { method: 'GET', path: `/${bucket}`, query: { uploads: '' } })
  return [...body.toString().matchAll(/<UploadId>([^<]+)<\/UploadId>/g)].map((match) => match[1] ?? '')
}

/** Sizes of objects under a bucket by key. */
export async function keysIn(store: S3Address, bucket: string): Promise<string[]> {
  const { body } = await s3Do(store, { method: 'GET', path: `/${bucket}`, query: { 'list-type': '2' } })
  return [...body.toString().matchAll(/<Key>([^<]+)<\/Key>/g)].map((match) => match[1] ?? '').sort()
}

/** A pattern that tells when a request matched it, for a fault proxy's rule. */
export class WatchedPattern extends RegExp {
  readonly hit: Promise<void>
  #left: number
  #tell: () => void = () => undefined

  /** `nth`: counted from 1 among the requests that match. */
  constructor(pattern: RegExp, nth = 1) {
    super(pattern)
    this.#left = nth
    this.hit = new Promise((resolve) => {
      this.#tell = resolve
    })
  }

  override test(text: string): boolean {
    const matched = super.test(text)
    if (matched) this.#left -= 1
    if (this.#left <= 0) this.#tell()
    return matched
  }
}

/** Ids of the jobs that a place's state folder knows; none where nothing ran yet. */
export function jobIds(place: Place): string[] {
  try {
    return readdirSync(join(place.folder, 'state', 'sluice', 'jobs')).sort()
  } catch {
    return []
  }
}

/** Starts a copy, and kills it once a request has come to the proxy; `settled` waits for what the store does with it. The job's id. */
export async function killAt(
  { place, proxy }: { readonly place: Place; readonly proxy: HttpFaultProxy },
  words: readonly string[],
  at: { readonly rule: HttpFaultRule & { url: RegExp }; readonly settled: () => Promise<boolean> | boolean },
): Promise<string> {
  const before = jobIds(place)
  const watched = new WatchedPattern(at.rule.url, at.rule.nth)
  const remove = proxy.add({ ...at.rule, url: watched })
  const child = place.start(['copy', ...words])
  const end = ended(child)
  const first = await Promise.race([watched.hit, end])
  if (first !== undefined) throw new Error(`ended by itself: ${first.stderr}`)
  await until(at.settled)
  child.kill('SIGKILL')
  await end
  remove()
  const id = jobIds(place).find((one) => !before.includes(one))
  if (id === undefined) throw new Error('no job was begun')
  return id
}

/** Polls until it holds. @throws after 20 s */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const end = Date.now() + 20_000
  while (!(await holds())) {
    if (Date.now() > end) throw new Error('it did not come to pass within 20 s')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
