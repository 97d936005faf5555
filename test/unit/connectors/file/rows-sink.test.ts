import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SinkRequest } from '../../../../src/connectors/connector.ts'
import { fileConnector } from '../../../../src/connectors/file/connector.ts'
import { SluiceError } from '../../../../src/core/errors.ts'
import type { Json } from '../../../../src/core/job.ts'
import type { CopyOptions } from '../../../../src/core/options.ts'
import type { Sink, SinkContext } from '../../../../src/core/ports.ts'
import { compileMapping } from '../../../../src/engine/mapping.ts'
import { Progressor } from '../../../../src/engine/progress.ts'
import { runJob } from '../../../../src/engine/run-job.ts'
import { MemorySource, memoryRow } from '../../../support/memory-ends.ts'

/** Rows by partition of a table that is read by several. */
const ROWS = [500, 0, 1200, 1]
const EXPECTED = ROWS.map((count, i) => Array.from({ length: count }, (_, row) => memoryRow(`p${i}`, row)))

interface Setup {
  readonly url: string
  readonly options?: CopyOptions
  readonly recorded?: Json[]
  /** Throws to kill the job when an entry is to be recorded. */
  readonly onRecord?: (entry: Json) => void
  readonly rows?: readonly number[]
  /** The process ends there and then: nothing is tidied up. */
  readonly killed?: boolean
}

function contextOf({ recorded = [], onRecord }: Setup): SinkContext {
  const earlier = [...recorded]
  return {
    jobId: 'job-1',
    fingerprint: 'f',
    resumed: earlier.length > 0,
    newJob: false,
    recorded: earlier,
    record: async (entry) => {
      await Promise.resolve()
      onRecord?.(entry)
      recorded.push(JSON.parse(JSON.stringify(entry)))
    },
    warn: () => undefined,
    retried: () => undefined,
  }
}

async function openSink(setup: Setup): Promise<Sink> {
  const context = contextOf(setup)
  const request: SinkRequest = {
    url: setup.url,
    options: setup.options ?? {},
    env: {},
    raw: false,
    context,
    reporter: context,
    signal: new AbortController().signal,
    retryForMs: 1000,
    spoolDir: tmpdir(),
    sourceUrl: 'postgres://u:secret@h/db?table=public.people',
    tellSql: () => undefined,
  }
  const sink = await fileConnector.openSink?.(request)
  if (sink === undefined) throw new Error('no sink')
  return sink
}

/** What ends sinks that were left as a kill leaves them: their files are still open in this process. */
const killed: (() => Promise<void>)[] = []

async function run(setup: Setup) {
  const signal = new AbortController().signal
  const source = new MemorySource(setup.rows ?? ROWS, { batchRows: 100 })
  const sink = await openSink(setup)
  try {
    const schema = await source.describe()
    const { partitions } = source
    await sink.prepare(
      { schema, partitions, form: 'rows', replayable: true, unordered: true, restarts: true },
      { signal },
    )
    if (setup.killed === true) {
      const abort = sink.abort.bind(sink)
      killed.push(() => abort(null, { resumable: false }))
      sink.abort = () => Promise.resolve()
    }
    return await runJob({
      source,
      sink,
      partitions,
      mapping: compileMapping(schema, {}),
      form: 'rows',
      lanes: 'auto',
      retryForMs: 1000,
      maxMemoryBytes: null,
      bytesTotal: null,
      progressor: new Progressor(undefined),
      signal,
    })
  } finally {
    await sink.close()
  }
}

describe('files of a source without order', () => {
  let folder: string
  const files = (): string[] => readdirSync(folder).toSorted()
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  const lines = (text: string): string[] => text.split('\n').slice(1, -1)
  const rowsOf = (names: readonly string[]): string[] => names.flatMap((name) => lines(read(name))).toSorted()
  const all = EXPECTED.flat().toSorted()
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-rows-'))))
  afterEach(async () => {
    for (const close of killed.splice(0)) await close()
    rmSync(folder, { recursive: true })
  })

  it('one, named, has all rows under one header', async () => {
    const outcome = await run({ url: join(folder, 'x.csv') })
    expect(outcome.error).toBeNull()
    expect(rowsOf(['x.csv'])).toEqual(all)
    expect(outcome.outputs).toMatchObject([{ rows: all.length, bytes: read('x.csv').length }])
  })

  it('one a partition under a prefix, an empty one too, and the manifest says which', async () => {
    const manifest = join(folder, 'list.json')
    const outcome = await run({ url: `${folder}/`, options: { sinkFormat: 'csv', manifest, workers: 3 } })
    expect(outcome.error).toBeNull()
    const names = [1, 2, 3, 4].map((number) => `people-0000${number}.csv`)
    expect(files()).toEqual(['list.json', ...names])
    expect(names.map((name) => lines(read(name)).toSorted())).toEqual(EXPECTED.map((rows) => rows.toSorted()))
    expect(names.every((name) => read(name).startsWith('name\n'))).toBe(true)
    expect(JSON.parse(read('list.json'))).toEqual({
      entries: outcome.outputs.map(({ url, bytes, rows, etag }) => ({
        url,
        mandatory: true,
        meta: { content_length: bytes, record_count: rows },
        etag,
      })),
      jobId: 'job-1',
      source: 'postgres://u:***@h/db?table=public.people',
      format: 'csv',
    })
    expect(outcome.outputs.map(({ rows }) => rows)).toEqual(ROWS)
  })

  it('--single-file makes one under the prefix', async () => {
    expect((await run({ url: `${folder}/`, options: { sinkFormat: 'csv', singleFile: true } })).error).toBeNull()
    expect(files()).toEqual(['people.csv'])
    expect(rowsOf(['people.csv'])).toEqual(all)
  })

  it('gzip is one member, whoever made its blocks', async () => {
    expect((await run({ url: join(folder, 'x.csv.gz') })).error).toBeNull()
    const text = gunzipSync(readFileSync(join(folder, 'x.csv.gz'))).toString()
    expect(lines(text).toSorted()).toEqual(all)
  })

  it('Parquet has row groups of at most so many rows', async () => {
    expect((await run({ url: join(folder, 'x.parquet'), options: { rowGroupRows: 150 } })).error).toBeNull()
    const file = Uint8Array.from(readFileSync(join(folder, 'x.parquet'))).buffer
    const metadata = parquetMetadata(file)
    expect(metadata.row_groups.map((group) => Number(group.num_rows)).every((rows) => rows > 0 && rows <= 150)).toBe(
      true,
    )
    expect(metadata.key_value_metadata).toContainEqual({ key: 'sluice.job', value: 'job-1' })
    const rows = await parquetReadObjects({ file })
    expect(rows.map((row) => row['name']).toSorted()).toEqual(all)
  })

  it('an empty table is a file of a header, and a Parquet file of a schema', async () => {
    expect((await run({ url: join(folder, 'x.csv'), rows: [0] })).error).toBeNull()
    expect(read('x.csv')).toBe('name\n')
    expect((await run({ url: join(folder, 'x.parquet'), rows: [0, 0] })).error).toBeNull()
    const metadata = parquetMetadata(Uint8Array.from(readFileSync(join(folder, 'x.parquet'))).buffer)
    expect([metadata.num_rows, metadata.schema.map(({ name }) => name)]).toEqual([0n, expect.arrayContaining(['name'])])
  })

  it('--max-file-size begins another file, and cuts none in the middle of a row', async () => {
    const setup = { url: `${folder}/`, options: { sinkFormat: 'csv', maxFileSize: 200_000 } as const, rows: [60_000] }
    expect((await run(setup)).error).toBeNull()
    expect(files().length).toBeGreaterThan(2)
    expect(files()[1]).toBe('people-00002.csv')
    expect(files().every((name) => read(name).startsWith('name\np') && read(name).length <= 200_000)).toBe(true)
    expect(rowsOf(files())).toHaveLength(60_000)
    await expect(run({ url: join(folder, 'y.csv'), options: { maxFileSize: 5 } })).rejects.toThrow(/need a prefix/)
  })

  it('what is in the way is seen before a row is read', async () => {
    writeFileSync(join(folder, 'people-00003.csv'), 'mine')
    await expect(run({ url: `${folder}/`, options: { sinkFormat: 'csv' } })).rejects.toMatchObject({
      code: 'SLUICE_EXISTS',
    })
    expect(files()).toEqual(['people-00003.csv'])
    const skipping = await run({ url: `${folder}/`, options: { sinkFormat: 'csv', ifExists: 'skip' } })
    expect([skipping.error, skipping.rowsWritten, read('people-00003.csv')]).toEqual([null, 501, 'mine'])
  })

  it('nothing is left of a job that failed, and what was to be replaced is as it was', async () => {
    writeFileSync(join(folder, 'people-00003.csv'), 'old')
    const onRecord = (entry: Json): void => {
      if (JSON.stringify(entry).includes('"publishing"')) throw new SluiceError('SLUICE_STATE', 'no space')
    }
    const options = { sinkFormat: 'csv', ifExists: 'overwrite', manifest: join(folder, 'list.json') } as const
    const outcome = await run({ url: `${folder}/`, options, onRecord })
    expect(outcome.error?.code).toBe('SLUICE_STATE')
    expect([files(), read('people-00003.csv')]).toEqual([['people-00003.csv'], 'old'])
  })

  it.each(['"publishing"', '"completed"'])('a kill at %s: the next run makes all of it, and no more', async (at) => {
    for (const nth of [1, 3]) {
      const recorded: Json[] = []
      let seen = 0
      const onRecord = (entry: Json): void => {
        if (!JSON.stringify(entry).includes(at)) return
        seen += 1
        if (seen >= nth) throw new SluiceError('SLUICE_INTERNAL', 'killed')
      }
      const setup = { url: `${folder}/`, options: { sinkFormat: 'csv', manifest: join(folder, 'm.json') } as const }
      const first = await run({ ...setup, recorded, onRecord, killed: true })
      if (at === '"publishing"' && nth > 1) expect(first.error).toBeNull()
      else expect(first.error?.code).toBe('SLUICE_INTERNAL')
      // The table has fewer partitions by now.
      const again = await run({ ...setup, recorded, rows: [500, 700, 300] })
      expect(again.error).toBeNull()
      const names = files().filter((name) => name !== 'm.json')
      expect(rowsOf(names)).toHaveLength(again.rowsWritten)
      expect(JSON.parse(read('m.json'))).toMatchObject({
        entries: names.map((name) => ({ url: expect.stringContaining(name) })),
      })
      for (const name of files()) rmSync(join(folder, name))
    }
  })
})
