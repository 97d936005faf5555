import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { SluiceError } from '../../../src/core/errors.ts'
import type { Json } from '../../../src/core/job.ts'
import type { ByteRange, ObjectInfo, ObjectWriter } from '../../../src/core/ports.ts'
import { createLocalStore } from '../../../src/stores/local-store.ts'

export const o = { signal: new AbortController().signal }
export const ALL: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY }
export const MIB = 1024 * 1024
export const store = createLocalStore()

/** A folder of each test's own. */
export const place = { folder: '' }
export const at = (name: string): string => join(place.folder, name)

beforeEach(() => {
  place.folder = mkdtempSync(join(tmpdir(), 'sluice-local-'))
})

afterEach(() => {
  rmSync(place.folder, { recursive: true, force: true })
})

export function put(name: string, content: string | Uint8Array = name): string {
  writeFileSync(at(name), content)
  return at(name)
}

export async function readAll(info: ObjectInfo, range: ByteRange = ALL): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.read(info, range, o)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export async function keys(prefix: string, enter?: (folder: string) => boolean): Promise<string[]> {
  const found: string[] = []
  for await (const info of store.list(prefix, { ...o, enter })) found.push(info.key.slice(place.folder.length + 1))
  return found
}

export async function errorOf(promise: Promise<unknown>): Promise<SluiceError> {
  const error: unknown = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof SluiceError) return error
  throw new Error('no SluiceError came', { cause: error })
}

export function open(
  key: string,
  how: { ifExists?: 'fail' | 'overwrite'; resume?: Json; intents?: Json[] } = {},
): Promise<ObjectWriter> {
  const record = (intent: Json): Promise<void> => {
    how.intents?.push(intent)
    return Promise.resolve()
  }
  return store.openWriter(key, { ifExists: how.ifExists ?? 'fail', size: null, resume: how.resume, record }, o)
}

export async function write(
  key: string,
  content: string,
  ifExists: 'fail' | 'overwrite' = 'fail',
): Promise<ObjectInfo> {
  const writer = await open(key, { ifExists })
  try {
    return await writer.complete(
      [await writer.writePart({ number: 1, offset: 0, bytes: [Buffer.from(content)] }, o)],
      o,
    )
  } catch (error) {
    await writer.abort()
    throw error
  }
}
