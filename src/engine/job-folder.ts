import { randomBytes } from 'node:crypto'
import { appendFile, open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { SluiceError } from '../core/errors.ts'
import type { Json, JobResult, JobStatus, Partition } from '../core/job.ts'
import type { CopyOptions } from '../core/options.ts'
import { acquireLock, isLocked, releaseLock } from './job-lock.ts'
import { makeFolders } from './make-folders.ts'

/** What is known of a job when it begins. Never holds a secret: URLs are redacted. */
export interface JobHeader {
  readonly jobId: string
  /** ISO 8601. */
  readonly createdAt: string
  readonly source: string
  readonly sink: string
  readonly options: CopyOptions
  /** Same source, sink (paths from the root) and options: the same fingerprint. */
  readonly fingerprint: string
  readonly resumable: boolean
  /** Where it was begun: paths of source and sink may be relative to it. Absent in jobs of older versions. */
  readonly folder?: string
}

/** One line of checkpoint.jsonl. */
export type JobEntry =
  | { readonly kind: 'run'; readonly at: string }
  | { readonly kind: 'partitions'; readonly partitions: readonly Partition[] }
  | { readonly kind: 'sink'; readonly entry: Json }
  | {
      readonly kind: 'end'
      readonly at: string
      readonly status: JobStatus
      readonly bytesRead: number
      readonly retries: number
      readonly throttles: number
      readonly wallMs: number
      readonly cpuMs: number
    }

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/**
 * A job's folder in the state folder: `jobs/ID/{job.json, checkpoint.jsonl, result.json, lock}`. One process at a time works on a job.
 * Entries are synced to disk before `append` resolves; there are as many as partitions, parts' intents and lanes, not as rows.
 */
export class JobFolder {
  readonly header: JobHeader
  readonly #path: string
  readonly #entries: JobEntry[]
  readonly #release: () => Promise<void>
  #checkpoint: FileHandle | null = null
  /** Appends queue up behind one another: at most as many as there are lanes. */
  #tail: Promise<void> = Promise.resolve()

  private constructor(path: string, header: JobHeader, rest: { entries: JobEntry[]; release: () => Promise<void> }) {
    this.#path = path
    this.header = header
    this.#entries = rest.entries
    this.#release = rest.release
  }

  /** @throws SLUICE_JOB_EXISTS, SLUICE_STATE, SLUICE_USAGE */
  static async create(stateDir: string, header: JobHeader): Promise<JobFolder> {
    if (!ID.test(header.jobId))
      throw new SluiceError('SLUICE_USAGE', `"${header.jobId}" cannot be a job id`, {
        hint: 'letters, digits, dots, dashes and underscores, 100 at most',
      })
    const path = join(stateDir, 'jobs', header.jobId)
    // Made under another name and renamed once it is whole and locked: a kill in between leaves no half job behind.
    const making = join(stateDir, 'jobs', `.${header.jobId}-${randomBytes(4).toString('hex')}`)
    try {
      await makeFolders(making, 0o700)
      await acquireLock(making)
      await writeWhole(join(making, 'job.json'), JSON.stringify(header, null, 2))
      await rename(making, path)
    } catch (error) {
      await rm(making, { recursive: true, force: true }).catch(() => undefined)
      if (isCode(error, 'EEXIST') || isCode(error, 'ENOTEMPTY'))
        throw new SluiceError('SLUICE_JOB_EXISTS', `job ${header.jobId} is there already`, {
          hint: `go on with it by --job-id ${header.jobId} --resume, or choose another id`,
        })
      throw stateError(error, path)
    }
    const release = (): Promise<void> => releaseLock(path)
    if (header.resumable) await rememberFingerprint(stateDir, header)
    return new JobFolder(path, header, { entries: [], release })
  }

  /** Opens a job to go on with it. @throws SLUICE_JOB_UNKNOWN, SLUICE_JOB_RUNNING, SLUICE_STATE */
  static async open(stateDir: string, jobId: string): Promise<JobFolder> {
    const path = jobPath(stateDir, jobId)
    const header = await readHeader(path, jobId)
    const release = await acquireLock(path)
    try {
      return new JobFolder(path, header, { entries: await readEntries(path, { mend: true }), release })
    } catch (error) {
      await release()
      throw error
    }
  }

  get entries(): readonly JobEntry[] {
    return this.#entries
  }

  get path(): string {
    return this.#path
  }

  /** Durable once resolved. @throws SLUICE_STATE, SLUICE_DISK_FULL */
  append(entry: JobEntry): Promise<void> {
    this.#entries.push(entry)
    const done = this.#tail.then(async () => {
      try {
        this.#checkpoint ??= await open(join(this.#path, 'checkpoint.jsonl'), 'a', 0o600)
        await this.#checkpoint.appendFile(`${JSON.stringify(entry)}\n`)
        await this.#checkpoint.datasync()
      } catch (error) {
        throw stateError(error, this.#path)
      }
    })
    this.#tail = done.catch(() => undefined)
    return done
  }

  /** The job is over, one way or the other; a stopped one has no result yet. */
  async writeResult(result: JobResult): Promise<void> {
    await writeWhole(join(this.#path, 'result.json'), JSON.stringify(result, null, 2))
  }

  async close(): Promise<void> {
    await this.#tail
    await this.#checkpoint?.close()
    this.#checkpoint = null
    await this.#release()
  }
}

/** What a job's folder tells without working on it. */
export interface JobView {
  readonly header: JobHeader
  readonly entries: readonly JobEntry[]
  readonly result: JobResult | null
  readonly running: boolean
}

/** @throws SLUICE_JOB_UNKNOWN, SLUICE_STATE */
export async function viewJob(stateDir: string, jobId: string): Promise<JobView> {
  const path = jobPath(stateDir, jobId)
  const header = await readHeader(path, jobId)
  const result = await readFile(join(path, 'result.json'), 'utf8').then(
    (text) => parseAs<JobResult>(text),
    () => null,
  )
  return { header, entries: await readEntries(path, { mend: false }), result, running: await isLocked(path) }
}

/** Ids of all jobs, oldest first as far as ids were made by sluice. */
export async function listJobIds(stateDir: string): Promise<readonly string[]> {
  try {
    const found = await readdir(join(stateDir, 'jobs'), { withFileTypes: true })
    return found
      .filter((entry) => entry.isDirectory() && ID.test(entry.name))
      .map((entry) => entry.name)
      .toSorted()
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw stateError(error, stateDir)
  }
}

/** The unfinished job with this fingerprint, if there is one. */
export async function findUnfinished(stateDir: string, fingerprint: string): Promise<JobView | null> {
  try {
    const jobId = (await readFile(join(stateDir, 'fingerprints', fingerprint), 'utf8')).trim()
    const view = await viewJob(stateDir, jobId)
    return view.result === null ? view : null
  } catch (error) {
    if (isCode(error, 'ENOENT') || (error instanceof SluiceError && error.code === 'SLUICE_JOB_UNKNOWN')) return null
    throw stateError(error, stateDir)
  }
}

/** Sorts by time: `20261202-141530-3f9a2c`. */
export function newJobId(now: Date): string {
  const stamp = now.toISOString().replaceAll('-', '').replaceAll(':', '').slice(0, 15).replace('T', '-')
  return `${stamp}-${randomBytes(3).toString('hex')}`
}

async function rememberFingerprint(stateDir: string, header: JobHeader): Promise<void> {
  await makeFolders(join(stateDir, 'fingerprints'), 0o700)
  await writeWhole(join(stateDir, 'fingerprints', header.fingerprint), header.jobId)
}

function jobPath(stateDir: string, jobId: string): string {
  if (!ID.test(jobId)) throw new SluiceError('SLUICE_JOB_UNKNOWN', `no job is called "${jobId}"`)
  return join(stateDir, 'jobs', jobId)
}

async function readHeader(path: string, jobId: string): Promise<JobHeader> {
  try {
    return parseAs<JobHeader>(await readFile(join(path, 'job.json'), 'utf8'))
  } catch (error) {
    if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR'))
      throw new SluiceError('SLUICE_JOB_UNKNOWN', `no job is called "${jobId}"`)
    throw stateError(error, path)
  }
}

/**
 * A torn last line is what a kill in mid-append leaves: it was never promised, and is passed over. `mend` cuts it off; only who holds the lock may
 * do so, since the process that works on the job appends to the very file.
 */
async function readEntries(path: string, o: { mend: boolean }): Promise<JobEntry[]> {
  const file = join(path, 'checkpoint.jsonl')
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw stateError(error, path)
  }
  const whole = text.lastIndexOf('\n') + 1
  if (o.mend && whole < text.length) await writeWhole(file, text.slice(0, whole))
  try {
    return text
      .slice(0, whole)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => parseAs<JobEntry>(line))
  } catch (error) {
    throw stateError(error, file)
  }
}

/** Our own files, written by this version or an older one; what they hold is checked where it is used. */
function parseAs<T>(text: string): T {
  const parsed: unknown = JSON.parse(text)
  return parsed as T
}

async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await writeFile(temporary, '', { mode: 0o600 })
    await appendFile(temporary, text, { flush: true })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw stateError(error, path)
  }
}

function stateError(error: unknown, path: string): SluiceError {
  if (error instanceof SluiceError) return error
  const reason = error instanceof Error ? error.message : String(error)
  const code = isCode(error, 'ENOSPC') || isCode(error, 'EDQUOT') ? 'SLUICE_DISK_FULL' : 'SLUICE_STATE'
  return new SluiceError(code, `the job's state cannot be kept: ${reason}`, { where: { url: path }, cause: error })
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
