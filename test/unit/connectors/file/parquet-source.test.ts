import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFileSource } from '../../../../src/connectors/file/source.ts'
import type { RowsBatch, Value } from '../../../../src/core/batch.ts'
import type { CopyOptions } from '../../../../src/core/options.ts'
import type { Source, SourceReadOptions } from '../../../../src/core/ports.ts'
import { fileOf, groupsOf, number } from '../../formats/parquet/place.ts'

let folder = ''
const rowsIn = (g: number): Value[][] =>
  Array.from({ length: 5000 }, (_, i) => [number(String(g * 5000 + i)), `name ${i}`])

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-parquet-source-'))
  const columns = [{ name: 'n', type: 'integer' } as const, { name: 's', type: 'string' } as const]
  const file = await fileOf(groupsOf(columns, [rowsIn(0), rowsIn(1)]))
  const empty = await fileOf(groupsOf(columns, []))
  for (const name of ['many', 'mixed']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'two.parquet'), file)
  writeFileSync(join(folder, 'empty.parquet'), empty)
  for (const name of ['two.parq', 'two.pq']) writeFileSync(join(folder, name), file)
  writeFileSync(join(folder, 'plain'), file)
  writeFileSync(join(folder, 'two.parquet.gz'), gzipSync(file))
  writeFileSync(join(folder, 'cut.parquet'), file.subarray(0, 100))
  for (const name of ['a.parquet', 'b.parquet']) writeFileSync(join(folder, 'many', name), file)
  writeFileSync(join(folder, 'mixed', 'a.parquet'), file)
  writeFileSync(join(folder, 'mixed', 'b.csv'), 'n\n1\n')
  for (const year of ['year=2020', 'year=2021']) {
    mkdirSync(join(folder, 'hive', year, 's=x'), { recursive: true })
    writeFileSync(join(folder, 'hive', year, 's=x', 'part-0.parquet'), file)
    writeFileSync(join(folder, 'hive', year, 's=x', '.part-0.parquet.crc'), 'crc')
  }
  for (const name of ['_SUCCESS', '_metadata', '_common_metadata', '_committed_12'])
    writeFileSync(join(folder, 'hive', name), 'PAR1PAR1')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function open(
  name: string,
  o: { options?: CopyOptions; raw?: boolean; warn?: (message: string) => void } = {},
): Promise<Source> {
  const nothing = (): void => undefined
  return createFileSource({
    url: name === '-' ? '-' : join(folder, name),
    options: o.options ?? {},
    env: {},
    reporter: { warn: o.warn ?? nothing, retried: nothing },
    signal: AbortSignal.timeout(20_000),
    retryForMs: 1000,
    spoolDir: folder,
    // oxlint-disable-next-line require-await
    stdin: (async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('PAR1')
    })(),
    ...(o.raw === undefined ? {} : { raw: o.raw }),
  })
}

const signal = AbortSignal.timeout(60_000)

async function batchesOf(source: Source, index: number, o: Partial<SourceReadOptions> = {}): Promise<RowsBatch[]> {
  const partition = (await source.plan({ signal }))[index]
  if (partition === undefined) throw new Error(`no partition ${index}`)
  // As after a resume: what a partition says is JSON.
  const recorded = JSON.parse(JSON.stringify(partition)) as typeof partition
  const batches: RowsBatch[] = []
  for await (const batch of source.read(recorded, { form: 'rows', signal, ...o }))
    if (batch.form === 'rows') batches.push(batch)
  return batches
}

describe('Parquet files as a source', () => {
  it('are a partition a row group, with typed columns', async () => {
    const source = await open('two.parquet')
    const partitions = await source.plan({ signal })
    expect(partitions.map(({ id, rows }) => [id, rows])).toEqual([
      ['two.parquet#0', 5000],
      ['two.parquet#1', 5000],
    ])
    const schema = await source.describe({ signal })
    expect(schema).toMatchObject({ named: true, typed: true, columns: [{ name: 'n', type: 'integer' }, { name: 's' }] })
    const batches = await batchesOf(source, 1)
    expect(batches.flatMap(({ rows }) => rows)).toEqual(rowsIn(1))
    expect(batches.at(-1)?.places.at(-1)?.row).toBe(10_000)
    expect(batches.reduce((sum, { sourceBytes }) => sum + sourceBytes, 0)).toBe(partitions[1]?.bytes)
    await source.close()
  })

  it('go on at every position, and end there', async () => {
    const source = await open('two.parquet')
    const whole = await batchesOf(source, 0)
    expect(whole.length).toBeGreaterThan(1)
    for (const { end } of whole) {
      const before = await batchesOf(source, 0, { until: end })
      const after = await batchesOf(source, 0, { from: end })
      expect([...before, ...after].flatMap(({ rows }) => rows)).toEqual(rowsIn(0))
      expect(before.reduce((sum, { rows }) => sum + rows.length, 0)).toBe(end.row)
    }
    await source.close()
  })

  it('are read under a prefix, with a format that is told, and where there is no row group', async () => {
    const ids = async (source: Source): Promise<string[]> => {
      const partitions = await source.plan({ signal })
      await source.close()
      return partitions.map(({ id }) => id)
    }
    expect(await ids(await open('many/'))).toEqual(['a.parquet#0', 'a.parquet#1', 'b.parquet#0', 'b.parquet#1'])
    expect(await ids(await open('plain', { options: { sourceFormat: 'parquet' } }))).toEqual(['plain#0', 'plain#1'])
    expect(await ids(await open('two.parquet', { raw: true }))).toEqual(['two.parquet'])
    const empty = await open('empty.parquet')
    expect(await batchesOf(empty, 0)).toEqual([])
    await empty.close()
  })

  it.each([
    ['mixed/', {}, 'SLUICE_USAGE', /no Parquet/],
    ['two.parquet.gz', {}, 'SLUICE_USAGE', /inside gzip/],
    ['-', { sourceFormat: 'parquet' }, 'SLUICE_USAGE', /ranges/],
  ] as const)('that cannot be read so are refused (%s)', async (name, options, code, message) => {
    await expect(open(name, { options })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as unknown,
    })
  })

  it('that are cut are told by name', async () => {
    const source = await open('cut.parquet')
    await expect(source.describe({ signal })).rejects.toMatchObject({
      code: 'SLUICE_PARQUET',
      where: { url: expect.stringContaining('cut.parquet') as unknown },
    })
    await source.close()
  })
})

it.each(['two.parq', 'two.pq'])('%s is Parquet by its name', async (name) => {
  const source = await open(name)
  expect((await source.describe({ signal })).columns.map((column) => column.name)).toEqual(['n', 's'])
  await source.close()
})

describe('a folder as Spark and Hive write it', () => {
  it('is read without what stands beside its files, and what its names tell is told to be missing', async () => {
    const warnings: string[] = []
    const source = await open('hive/', { warn: (message) => warnings.push(message) })
    const partitions = await source.plan({ signal })
    expect(partitions.map(({ id }) => id)).toEqual(
      ['year=2020', 'year=2021'].flatMap((year) => [0, 1].map((group) => `${year}/s=x/part-0.parquet#${group}`)),
    )
    for (let i = 0; i < 2; i += 1) await source.describe({ signal })
    expect(warnings).toEqual([
      'passed over, for they tell of files and hold no rows: _SUCCESS, _committed_12, _common_metadata, _metadata, year=2020/s=x/.part-0.parquet.crc and 1 more',
      "no row has what the folders' names tell (year=…): read a folder at a time, with --set year=VALUE",
    ])
    await source.close()
  })
})
