import { createHash } from 'node:crypto'
import { SluiceError } from '../../src/core/errors.ts'
import type { ByteRange, ObjectInfo, Store } from '../../src/core/ports.ts'

/** A store with nothing in it, and a way around it. Made anew for each test. */
export interface StoreUnderTest {
  readonly store: Store
  /** Puts an object there by other means than the store, or replaces it; its key. */
  put(name: string, bytes: Uint8Array): Promise<string>
  /** The key of an object that is not there; `put` with the same name gives the same. */
  keyOf(name: string): string
  /** What lies around besides whole objects: temporary files, unfinished uploads. */
  leftovers(): Promise<readonly string[]>
  close(): Promise<void>
}

export const ALL: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY }
/** A signal that never comes. */
export const o = { signal: new AbortController().signal }

export const ODD_NAMES = [
  'a+b.csv',
  '100%.bin',
  'with blank .csv',
  'ümläut-日本.csv',
  'quote\'"&<>.csv',
  'a=b&c#d?e.csv',
  'deep/er/x.csv',
  '~tilde*(1).csv',
]

/** All bytes of a range. */
export async function readAll(store: Store, info: ObjectInfo, range: ByteRange): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.read(info, range, o)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** What the object of this name holds, as `digest` has it. */
export async function objectDigest(subject: StoreUnderTest, name: string): Promise<string> {
  return digest(await readAll(subject.store, await subject.store.head(subject.keyOf(name), o), ALL))
}

/** Length and hash: a failing comparison of megabytes would be printed in full. */
export function digest(bytes: Uint8Array): string {
  return `${bytes.byteLength} bytes, ${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}`
}

/** The order of keys in a listing: of their bytes. */
export function sorted(keys: readonly string[]): string[] {
  return [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

/** The error of what has to fail. */
export async function errorOf(promise: Promise<unknown>): Promise<SluiceError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof SluiceError) return error
  throw new Error('no SluiceError came', { cause: error })
}

/** Its code. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return (await errorOf(promise)).code
}

/** Bytes that repeat nowhere near a power of two, so that no shifted or swapped piece looks right. */
export function patterned(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length)
  let state = seed
  for (let at = 0; at < length; at += 1) {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    bytes[at] = state >>> 16
  }
  return bytes
}
