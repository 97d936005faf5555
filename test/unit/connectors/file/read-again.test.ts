import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createFileSource } from '../../../../src/connectors/file/source.ts'
import type { Batch } from '../../../../src/core/batch.ts'
import type { Position } from '../../../../src/core/job.ts'
import type { Source, SourceReadOptions } from '../../../../src/core/ports.ts'
import { startMisbehavingHttp, type MisbehavingHttp } from '../../../support/misbehaving-http.ts'
import { buildZip } from '../../compression/build-zip.ts'

const signal = new AbortController().signal
const ROWS = 30_000
const csv = (note: string): Buffer =>
  Buffer.from(`id,note\n${Array.from({ length: ROWS }, (_, i) => `${i},${note} ${i * 7}\n`).join('')}`)

let http: MisbehavingHttp
let folder = ''
let source: Source

beforeAll(async () => {
  http = await startMisbehavingHttp()
  folder = mkdtempSync(join(tmpdir(), 'sluice-again-'))
})
afterAll(async () => {
  await http.stop()
  rmSync(folder, { recursive: true })
})
afterEach(() => source.close())

async function opened(url: string): Promise<Source> {
  const reporter = { warn: () => undefined, retried: () => undefined }
  source = await createFileSource({ url, options: {}, env: {}, reporter, signal, retryForMs: 1000, spoolDir: folder })
  await source.describe({ signal })
  return source
}

async function read(o: Omit<SourceReadOptions, 'signal'>): Promise<readonly Batch[]> {
  const [partition] = await source.plan({ signal })
  if (partition === undefined) throw new Error('no partition')
  const batches: Batch[] = []
  for await (const batch of source.read(partition, { ...o, signal })) batches.push(batch)
  return batches
}

const textOf = (batches: readonly Batch[]): string =>
  batches.map((batch) => (batch.form === 'csv' ? Buffer.from(batch.bytes).toString() : '')).join('')
const gets = (path: string): number => http.requests(path).filter(({ method }) => method === 'GET').length

describe('what is read again', () => {
  const PACKED = {
    '/a.zip': (bytes: Buffer) => buildZip([{ name: 'a.csv', data: bytes }]),
    '/a.csv.gz': (bytes: Buffer) => gzipSync(bytes),
    '/a.csv': (bytes: Buffer) => bytes,
  }
  it.each(Object.entries(PACKED))('%s is not fetched again, and is what it was', async (path, pack) => {
    const bytes = csv('first')
    await opened(http.file(path, { bytes: pack(bytes) }))
    const first = await read({ form: 'csv', readAgain: true })
    expect(textOf(first)).toBe(bytes.toString().slice('id,note\n'.length))
    const before = gets(path)
    // Whoever changed it meanwhile: what types were inferred from is what is loaded.
    http.file(path, { bytes: pack(csv('other')) })
    expect(textOf(await read({ form: 'csv' }))).toBe(textOf(first))
    const end = first.find((batch) => batch.end.row >= ROWS / 2)?.end as Position
    const rest = first.filter((batch) => batch.start.byte >= end.byte)
    expect(textOf(await read({ form: 'csv', from: end }))).toBe(textOf(rest))
    expect(textOf(await read({ form: 'csv', until: end }))).toBe(textOf(first.filter((one) => !rest.includes(one))))
    expect(gets(path)).toBe(before)
    expect(readdirSync(folder)).toEqual([])
  })

  it('is fetched again where it was not read to its end', async () => {
    const bytes = csv('first')
    await opened(http.file('/b.zip', { bytes: PACKED['/a.zip'](bytes) }))
    const [partition] = await source.plan({ signal })
    if (partition === undefined) throw new Error('no partition')
    for await (const batch of source.read(partition, { form: 'csv', readAgain: true, signal }))
      if (batch.end.row > 0) break
    const before = gets('/b.zip')
    expect(textOf(await read({ form: 'csv' }))).toBe(bytes.toString().slice('id,note\n'.length))
    expect(gets('/b.zip')).toBeGreaterThan(before)
  })
})
