import { randomBytes } from 'node:crypto'
import { basename, dirname } from 'node:path'
import type { Json } from '../../core/job.ts'

/** What is recorded before an unfinished output is made, and what `token()` returns. */
export interface LocalIntent {
  readonly store: 'local'
  /** The final path, links resolved. */
  readonly path: string
  /** The temporary file; in the same folder. */
  readonly temporary: string
  /** `device:inode:birth` of the temporary file, which becomes the final one's; absent before it is made. */
  readonly identity?: string | undefined
}

const TEMPORARY = /^\..*\.sluice-[0-9a-f]{16}$/s
/** Most file systems allow 255 bytes for a name; the rest is ours. */
const KEPT_NAME_BYTES = 200

/** `.<name>.sluice-<16 hexadecimal digits>`, beside the final path so that a rename stays within the file system. */
export function temporaryPath(path: string): string {
  const name = basename(path)
  const bytes = Buffer.from(name)
  // A character cut in two becomes U+FFFD: longer than its rest by two bytes at most.
  const kept = bytes.byteLength <= KEPT_NAME_BYTES ? name : bytes.subarray(0, KEPT_NAME_BYTES).toString('utf8')
  const folder = dirname(path)
  return `${folder === '/' ? '' : folder}/.${kept}.sluice-${randomBytes(8).toString('hex')}`
}

/** Whether a file name is one of our unfinished outputs. */
export function isTemporaryName(name: string): boolean {
  return TEMPORARY.test(name)
}

/** Null unless it is an intent of ours that names a temporary file beside its final path: nothing else is ever removed. */
export function parseIntent(value: Json | undefined): LocalIntent | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { store, path, temporary, identity } = value as { readonly [key: string]: Json }
  if (store !== 'local' || typeof path !== 'string' || typeof temporary !== 'string') return null
  if (!isTemporaryName(basename(temporary)) || dirname(temporary) !== dirname(path)) return null
  return { store, path, temporary, ...(typeof identity === 'string' ? { identity } : {}) }
}

/** As JSON, for `record` and `token`. */
export function intentJson(intent: LocalIntent): Json {
  const { store, path, temporary, identity } = intent
  return { store, path, temporary, ...(identity === undefined ? {} : { identity }) }
}
