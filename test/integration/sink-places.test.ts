import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult } from '../../src/index.ts'
import { freshBucket, sharedServices } from '../support/services.ts'

let folder: string
let bucket: string
let env: Record<string, string>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-places-'))
  writeFileSync(join(folder, 'in.csv'), 'id,name\n1,Ada\n2,Grace\n')
  writeFileSync(join(folder, 'bad.csv'), 'id,name\n1,Ada\n2,"Grace\n')
  writeFileSync(join(folder, 'plain'), '')
  const store = sharedServices().versitygw
  bucket = await freshBucket(store, 'places')
  env = { ...store.env }
})
afterAll(() => rmSync(folder, { recursive: true }))

const move = (source: string, sink: string, options: CopyOptions = {}): Promise<JobResult> =>
  copy({ source: join(folder, source), sink, options, env, stateDir: join(folder, 'state'), newJob: true })
/** `@` is the test's folder. */
const at = (path: string): string => path.replace('@', folder)

describe('where nothing can be put', () => {
  it.each<[string, string, string, CopyOptions?]>([
    ['a missing folder, as rows', '@/none/x.jsonl', 'SLUICE_NOT_FOUND'],
    ['a missing folder, as Parquet', '@/none/x.parquet', 'SLUICE_NOT_FOUND'],
    ['a missing folder, as bytes', '@/none/x.csv', 'SLUICE_NOT_FOUND'],
    ['a file as the folder', '@/plain/x.jsonl', 'SLUICE_NOT_FOUND'],
    ['a file as the folder of a prefix', '@/plain/', 'SLUICE_NOT_FOUND', { sinkFormat: 'jsonl' }],
    ['a missing bucket, as rows', 's3://none-such/x.jsonl', 'SLUICE_NOT_FOUND'],
    ['a missing bucket, as Parquet', 's3://none-such/x.parquet', 'SLUICE_NOT_FOUND'],
    ['a missing bucket, as bytes', 's3://none-such/x.csv', 'SLUICE_NOT_FOUND'],
    ['a missing bucket below a prefix', 's3://none-such/p/', 'SLUICE_NOT_FOUND', { sinkFormat: 'jsonl' }],
    ['a missing folder of the manifest', '@/x.jsonl', 'SLUICE_NOT_FOUND', { manifest: '@/none/m.json' }],
    ['a missing bucket of the manifest', '@/x.jsonl', 'SLUICE_NOT_FOUND', { manifest: 's3://none-such/m.json' }],
  ])('%s is told before a row is read, and leaves nothing', async (_, sink, code, options = {}) => {
    const before = readdirSync(folder)
    const manifest = options.manifest === undefined ? {} : { manifest: at(options.manifest) }
    const result = await move('in.csv', at(sink), { ...options, ...manifest })
    // `failed` with nothing read is exit code 2.
    expect(result).toMatchObject({ status: 'failed', rowsRead: 0, bytesWritten: 0, error: { code } })
    expect(readdirSync(folder).filter((name) => name !== 'state')).toEqual(before.filter((name) => name !== 'state'))
  })
})

describe('folders that a job makes', () => {
  it.each<[string, CopyOptions]>([
    ['rows', { sinkFormat: 'jsonl' }],
    ['Parquet', { sinkFormat: 'parquet' }],
  ])('go again where it fails: %s', async (_, options) => {
    const result = await move('bad.csv', join(folder, 'made/by/us/'), options)
    expect(result.error?.code).toBe('SLUICE_CSV_UNTERMINATED_QUOTE')
    expect(existsSync(join(folder, 'made'))).toBe(false)
  })

  it('stay where something else is in them, or where they were there', async () => {
    mkdirSync(join(folder, 'there'))
    await move('bad.csv', join(folder, 'there/'), { sinkFormat: 'jsonl' })
    expect(readdirSync(join(folder, 'there'))).toEqual([])
    const result = await move('in.csv', join(folder, 'there/deep/'), {
      sinkFormat: 'jsonl',
      manifest: join(folder, 'there/deep/m.json'),
    })
    expect(result.error).toBeUndefined()
    expect(readdirSync(join(folder, 'there/deep')).toSorted()).toEqual(['in.jsonl', 'm.json'])
  })

  it('a bucket that is there is written to', async () => {
    expect((await move('in.csv', `s3://${bucket}/a/b/`, { sinkFormat: 'jsonl' })).error).toBeUndefined()
  })
})
