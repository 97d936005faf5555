import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Batch, BatchForm, CsvBatch, Value } from '../../src/core/batch.ts'
import { rowCount } from '../../src/core/batch.ts'
import type { Partition } from '../../src/core/job.ts'
import type { Source, SourceReadOptions } from '../../src/core/ports.ts'
import { codeOf, digest, o } from './store-subject.ts'

/** What a source is opened over. Made anew for each test. */
export interface SourceUnderTest {
  /** Another source over the same, as another process would open it. */
  open(): Promise<Source>
  readonly form: BatchForm
  /** What each partition holds, in order of the plan: rows as `rowText` has them, or one digest of its bytes. */
  readonly expected: readonly (readonly string[])[]
  readonly columns: readonly string[]
  /** Replaces what is read by something else, as large. */
  change(): Promise<void>
  /** Files or connections that reading holds open now; absent where that can't be seen. */
  inUse?(): number
  close(): Promise<void>
}

/** What cannot be asked of a source. */
export interface SourceNature {
  /** Standard input. */
  readonly once?: boolean
  /** What is read cannot be pinned, or changed. */
  readonly unpinned?: boolean
  /** Each plan bears a mark of its own in its states: what it keeps on disk is not another's. */
  readonly marked?: boolean
}

/** A row, comparable whatever form it came in. NULL is not the empty string. */
export const rowText = (values: readonly (string | null)[]): string => JSON.stringify(values)

/** The one suite of the contract Source; every implementation passes it unchanged. */
export function describeSource(name: string, setup: () => Promise<SourceUnderTest>, nature: SourceNature = {}): void {
  describe(`source: ${name}`, () => {
    let subject: SourceUnderTest
    let source: Source
    beforeEach(async () => {
      subject = await setup()
      source = await subject.open()
    })
    afterEach(async () => {
      await source.close()
      await subject.close()
    })
    const current = (): Current => ({ subject, source })
    planTests(current, nature)
    readTests(current)
    endingTests(current)
    if (nature.once === true) onceTests(current)
    else replayTests(current)
    if (nature.once !== true && nature.unpinned !== true) pinTests(current)
  })
}

interface Current {
  readonly subject: SourceUnderTest
  readonly source: Source
}

function planTests(current: () => Current, nature: SourceNature): void {
  const comparable = (plan: readonly Partition[]): readonly object[] =>
    nature.marked === true ? plan.map(({ id, url, bytes }) => ({ id, url, bytes })) : plan
  it('plans the same each time, in JSON, each partition by a name of its own', async () => {
    const { source, subject } = current()
    const plan = await source.plan(o)
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
    expect(plan).toHaveLength(subject.expected.length)
    expect(new Set(plan.map((partition) => partition.id)).size).toBe(plan.length)
    expect(comparable(await source.plan(o))).toEqual(comparable(plan))
    const other = await subject.open()
    expect(comparable(await other.plan(o))).toEqual(comparable(plan))
    await other.close()
  })

  it('describes its columns before any row is read, looking at little', async () => {
    const { source, subject } = current()
    if (subject.form === 'bytes') return
    const schema = await source.describe(o)
    expect(schema.columns.map((column) => column.name)).toEqual(subject.columns)
    expect(source.bytesRead()).toBeLessThanOrEqual(1024 * 1024)
    const plan = await source.plan(o)
    expect(await contents(source, plan, { form: subject.form, ...o })).toEqual(subject.expected)
  })
}

function readTests(current: () => Current): void {
  it('gives everything once, in order, in batches that join up', async () => {
    const { source, subject } = current()
    await source.describe(o).catch(() => undefined)
    const plan = await source.plan(o)
    for (const [i, partition] of plan.entries()) {
      const batches = await readAll(source, partition, { form: subject.form, ...o })
      expect(textOf(batches)).toEqual(subject.expected[i])
      expectJoined(batches)
    }
  })

  it('counts what it takes from the store', async () => {
    const { source, subject } = current()
    const [partition] = await source.plan(o)
    if (partition === undefined) return
    const seen: number[] = []
    for await (const batch of source.read(partition, { form: subject.form, ...o }))
      seen.push(batch.end.byte >= 0 ? source.bytesRead() : 0)
    expect(seen.toSorted((a, b) => a - b)).toEqual(seen)
    expect(source.bytesDone?.() ?? source.bytesRead()).toBeGreaterThanOrEqual(partition.bytes ?? 1)
    expect(source.bytesRead()).toBeGreaterThan(0)
  })
}

function endingTests(current: () => Current): void {
  it('can be left early, and holds nothing open then', async () => {
    const { source, subject } = current()
    const [partition] = await source.plan(o)
    if (partition === undefined) return
    for await (const batch of source.read(partition, { form: subject.form, ...o })) if (batch.end.byte > 0) break
    expect(subject.inUse?.() ?? 0).toBe(0)
  })

  it("rejects with the signal's reason when it is aborted, before it begins and on the way", async () => {
    const { source, subject } = current()
    const [partition] = await source.plan(o)
    if (partition === undefined) return
    const reason = new Error('enough')
    const early = { form: subject.form, signal: AbortSignal.abort(reason) }
    await expect(readAll(source, partition, early)).rejects.toBe(reason)
    const controller = new AbortController()
    const reading = async (): Promise<void> => {
      const other = await subject.open()
      try {
        for await (const batch of other.read(partition, { form: subject.form, signal: controller.signal }))
          if (batch.end.byte >= 0) controller.abort(reason)
      } finally {
        await other.close()
      }
    }
    await expect(reading()).rejects.toBe(reason)
    // An abort does not wait for a read that is under way; that ends soon.
    await expect.poll(() => subject.inUse?.() ?? 0).toBe(0)
  })

  it('can be closed twice, and without having been used', async () => {
    const { source, subject } = current()
    await source.close()
    await source.close()
    const other = await subject.open()
    await other.describe(o).catch(() => undefined)
    await other.close()
    await other.close()
    expect(subject.inUse?.() ?? 0).toBe(0)
  })
}

function onceTests(current: () => Current): void {
  it('says that it cannot be read again, and refuses to', async () => {
    const { source, subject } = current()
    await source.describe(o)
    const plan = await source.plan(o)
    expect(source.replayable).toBe(false)
    await contents(source, plan, { form: subject.form, ...o })
    expect(await codeOf(contents(source, plan, { form: subject.form, ...o }))).toBe('SLUICE_NOT_REPLAYABLE')
  })
}

function replayTests(current: () => Current): void {
  it('goes on from the end of any batch, in another process', async () => {
    const { source, subject } = current()
    const plan: readonly Partition[] = JSON.parse(JSON.stringify(await source.plan(o)))
    for (const partition of plan) {
      const batches = await readAll(source, partition, { form: subject.form, ...o })
      for (const at of someOf(batches.length)) {
        const other = await subject.open()
        const rest = await readAll(other, partition, { form: subject.form, from: batches[at]?.end, ...o })
        expect(textOf(rest)).toEqual(textOf(batches.slice(at + 1)))
        expectJoined(rest)
        if (rest[0] !== undefined) expect(rest[0].start).toEqual(batches[at]?.end)
        await other.close()
      }
    }
  })

  it('ends exactly where it is told to, wherever it began', async () => {
    const { source, subject } = current()
    for (const partition of await source.plan(o)) {
      const batches = await readAll(source, partition, { form: subject.form, ...o })
      const places = someOf(batches.length)
      for (const [i, at] of places.entries()) {
        const until = batches[at]?.end
        const begun = await readAll(source, partition, { form: subject.form, until, ...o })
        expect(textOf(begun)).toEqual(textOf(batches.slice(0, at + 1)))
        expect(begun.at(-1)?.end).toEqual(until)
        const before = places[i - 1]
        if (before === undefined) continue
        const between = await readAll(source, partition, {
          form: subject.form,
          from: batches[before]?.end,
          until,
          ...o,
        })
        expect(textOf(between)).toEqual(textOf(batches.slice(before + 1, at + 1)))
        expect(between.at(-1)?.end).toEqual(until)
      }
    }
  })

  it('gives nothing from its end on, and nothing up to its beginning', async () => {
    const { source, subject } = current()
    for (const partition of await source.plan(o)) {
      const batches = await readAll(source, partition, { form: subject.form, ...o })
      const end = batches.at(-1)?.end
      expect(rowsIn(await readAll(source, partition, { form: subject.form, from: end, ...o }))).toBe(0)
      const start = batches[0]?.start
      expect(rowsIn(await readAll(source, partition, { form: subject.form, from: start, until: start, ...o }))).toBe(0)
    }
  })

  it('reads partitions, and one partition twice, at the same time', async () => {
    const { source, subject } = current()
    const plan = await source.plan(o)
    const twice = [...plan, ...plan].map((partition) => readAll(source, partition, { form: subject.form, ...o }))
    const all = await Promise.all(twice)
    expect(all.map((batches) => textOf(batches))).toEqual([...subject.expected, ...subject.expected])
  })
}

function pinTests(current: () => Current): void {
  it('refuses to read what has changed since it was planned', async () => {
    const { source, subject } = current()
    const plan = await source.plan(o)
    await subject.change()
    expect(await codeOf(contents(source, plan, { form: subject.form, ...o }))).toBe('SLUICE_SOURCE_CHANGED')
    const other = await subject.open()
    expect(await codeOf(contents(other, plan, { form: subject.form, ...o }))).toBe('SLUICE_SOURCE_CHANGED')
    await other.close()
  })
}

async function readAll(source: Source, partition: Partition, options: SourceReadOptions): Promise<Batch[]> {
  const batches: Batch[] = []
  for await (const batch of source.read(partition, options)) batches.push(batch)
  return batches
}

async function contents(source: Source, plan: readonly Partition[], options: SourceReadOptions): Promise<string[][]> {
  const all: string[][] = []
  for (const partition of plan) all.push(textOf(await readAll(source, partition, options)))
  return all
}

function rowsIn(batches: readonly Batch[]): number {
  return batches.reduce((sum, batch) => sum + (batch.form === 'bytes' ? batch.bytes.byteLength : rowCount(batch)), 0)
}

/** Each batch begins where the one before ended, and says rightly how many rows it has. */
function expectJoined(batches: readonly Batch[]): void {
  for (const [i, batch] of batches.entries()) {
    const before = batches[i - 1]
    if (before !== undefined) expect(batch.start).toEqual(before.end)
    expect(batch.end.byte).toBeGreaterThanOrEqual(batch.start.byte)
    if (batch.form !== 'bytes') expect(batch.end.row - batch.start.row).toBe(rowCount(batch))
    if (batch.form === 'rows') expect(batch.places).toHaveLength(batch.rows.length)
  }
}

/** At most five places of a list, its first and last among them. */
function someOf(length: number): number[] {
  const places = [0, 1, Math.floor(length / 2), length - 2, length - 1]
  return [...new Set(places.filter((at) => at >= 0 && at < length))].sort((a, b) => a - b)
}

function textOf(batches: readonly Batch[]): string[] {
  const bytes = batches.flatMap((batch) => (batch.form === 'bytes' ? [batch.bytes] : []))
  if (bytes.length > 0) return [digest(Buffer.concat(bytes))]
  return batches.flatMap((batch) => {
    if (batch.form === 'rows') return batch.rows.map((row) => rowText(row.map(valueText)))
    return batch.form === 'csv' ? csvRows(batch) : []
  })
}

function valueText(value: Value): string | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value.text
}

/** A field: quoted (1), plain (2); what ends it: a delimiter or a line end (3). */
function csvRows(batch: CsvBatch): string[] {
  const delimiter = batch.csv.delimiter === '\t' ? '\\t' : batch.csv.delimiter
  const field = new RegExp(`(?:"((?:[^"]|"")*)"|([^"${delimiter}\\r\\n]*))(${delimiter}|\\r?\\n)`, 'gy')
  const rows: string[] = []
  let row: (string | null)[] = []
  for (const match of Buffer.from(batch.bytes).toString('utf8').matchAll(field)) {
    const [, quoted, plain, end] = match
    row.push(quoted === undefined ? (plain === '' ? null : (plain ?? null)) : quoted.replaceAll('""', '"'))
    if (end?.endsWith('\n') !== true) continue
    rows.push(rowText(row))
    row = []
  }
  return rows
}
