import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Batch, BatchForm } from '../../src/core/batch.ts'
import { START, type Json, type Partition, type Receipt } from '../../src/core/job.ts'
import type { Sink, SinkContext } from '../../src/core/ports.ts'
import type { Schema } from '../../src/core/schema.ts'
import { Deal } from '../../src/engine/deal.ts'
import { ExtentBuilder, type LoadedExtent } from '../../src/engine/extent-builder.ts'
import { o } from './store-subject.ts'

/** A sink with nothing in it, and a way around it. Made anew for each test. */
export interface SinkUnderTest {
  readonly form: BatchForm
  readonly schema: Schema
  /** What a job brings; enough for several extents. */
  readonly partitions: readonly Partition[]
  readonly batches: ReadonlyMap<string, readonly Batch[]>
  /** Bytes of an extent; null: as the sink likes it. */
  readonly extentBytes: number | null
  open(context: SinkContext): Promise<Sink>
  /** What anyone can see of the rows, in any order; of bytes: the name and digest of each output. */
  visible(): Promise<readonly string[]>
  /** `visible` of these partitions. */
  contents(partitions: readonly string[]): readonly string[]
  /** What a process that is killed leaves to others: its connections end. */
  kill?(): Promise<void>
  /** What lies around besides whole outputs. */
  leftovers(): Promise<readonly string[]>
  close(): Promise<void>
}

/** When what was written can be seen. */
export interface SinkNature {
  /** `write`: a pipe. `seal`: an extent by itself. `partition`: with `endPartition`. `finish`: all at once. */
  readonly visibleAt: 'write' | 'seal' | 'partition' | 'finish'
}

/** What the suite's tests work on. */
export interface SinkSubject {
  readonly subject: SinkUnderTest
  readonly recorded: Json[]
  /** A sink of this job, as this process or, with what is recorded, another one opens it; closed at the end. */
  open(o?: { resumed: boolean }): Promise<OpenSink>
}

export interface OpenSink {
  readonly sink: Sink
  readonly extents: readonly LoadedExtent[]
}

const sharing = fc.record({
  lanes: fc.integer({ min: 1, max: 4 }),
  choices: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 8 }),
})
/** The same each time: what writes to services can't be run a hundred times. `percent` of the extents are written before the kill. */
const SCENARIOS = [0, 30, 60, 100].map((percent, i) => {
  const [kill, rest] = fc.sample(sharing, { numRuns: 2, seed: 20_261_202 + i })
  return { percent, kill, rest }
})

/** The one suite of the contract Sink; every implementation passes it unchanged. */
export function describeSink(name: string, setup: () => Promise<SinkUnderTest>, nature: SinkNature): void {
  describe(`sink: ${name}`, () => {
    let current: SinkSubject
    let opened: Sink[] = []
    beforeEach(async () => {
      const subject = await setup()
      const recorded: Json[] = []
      opened = []
      current = {
        subject,
        recorded,
        open: async ({ resumed } = { resumed: false }) => {
          const sink = await subject.open(contextOf(recorded, resumed))
          opened.push(sink)
          const { form, schema, partitions } = subject
          await sink.prepare({ form, schema, partitions, replayable: true, unordered: false, restarts: false }, o)
          return { sink, extents: cutExtents(subject, sink) }
        },
      }
    })
    afterEach(async () => {
      for (const sink of opened) await sink.close()
      await current.subject.close()
    })
    writingTests(() => current, nature)
    abortTests(() => current, nature)
    if (nature.visibleAt !== 'write') recoveryTests(() => current, nature)
  })
}

/** A sink that is ready for lanes, and the extents for it. */
export async function openForLanes(subject: SinkUnderTest): Promise<OpenSink> {
  const sink = await subject.open(contextOf([], false))
  const { form, schema, partitions } = subject
  await sink.prepare({ form, schema, partitions, replayable: true, unordered: false, restarts: false }, o)
  return { sink, extents: cutExtents(subject, sink) }
}

function contextOf(recorded: Json[], resumed: boolean): SinkContext {
  return {
    jobId: 'job-1',
    fingerprint: 'f1',
    resumed,
    newJob: false,
    recorded,
    record: async (entry) => {
      await Promise.resolve()
      // As it comes back from the disk.
      recorded.push(JSON.parse(JSON.stringify(entry)))
    },
    warn: () => undefined,
    retried: () => undefined,
  }
}

function cutExtents(subject: SinkUnderTest, sink: Sink): LoadedExtent[] {
  const size = { targetBytes: subject.extentBytes ?? sink.extentBytes.target, exact: sink.extentBytes.exact }
  return subject.partitions.flatMap((partition) => {
    let next = 0
    const builder = new ExtentBuilder(partition, size, { nextSequence: () => next++, start: START })
    return [
      ...(subject.batches.get(partition.id) ?? []).flatMap((batch) => [...builder.add(batch)]),
      ...builder.finish(true),
    ]
  })
}

/** Deals extents to so many lanes by a list of choices, ends partitions, and returns all receipts. The lanes stay open, idle. */
async function writeAll(open: OpenSink, how: { lanes: number; choices?: readonly number[] }): Promise<Receipt[]> {
  const { sink, extents: todo } = open
  const receipts: Receipt[] = []
  const count = Math.min(how.lanes, sink.lanes.max)
  const queues: LoadedExtent[][] = Array.from({ length: count }, () => [])
  for (const [i, loaded] of todo.entries()) queues[(how.choices?.[i % how.choices.length] ?? i) % count]?.push(loaded)
  const work = async (queue: readonly LoadedExtent[]): Promise<void> => {
    if (queue.length === 0) return
    const lane = await sink.openLane(o)
    for (const loaded of queue) receipts.push(await writeExtent(lane, loaded))
    await lane.close()
  }
  await Promise.all(queues.map((queue) => work(queue)))
  return receipts
}

export async function writeExtent(lane: Awaited<ReturnType<Sink['openLane']>>, loaded: LoadedExtent): Promise<Receipt> {
  await lane.begin(loaded.extent)
  for (const batch of loaded.batches) await lane.write(batch)
  return lane.seal(loaded.extent)
}

/** What no receipt covers, as the engine sees it: a receipt may stand for a whole partition. */
function uncovered(open: OpenSink, subject: SinkUnderTest, before: readonly Receipt[]): LoadedExtent[] {
  const complete = new Set(new Deal(subject.partitions, before, 1).complete().map((partition) => partition.id))
  return open.extents.filter(
    ({ extent }) => !complete.has(extent.partition) && !before.some((known) => covers(known, extent)),
  )
}

function covers({ extent: known }: Receipt, extent: LoadedExtent['extent']): boolean {
  return (
    known.partition === extent.partition && known.start.byte <= extent.start.byte && known.end.byte >= extent.end.byte
  )
}

export async function endPartitions(sink: Sink, subject: SinkUnderTest, receipts: readonly Receipt[]): Promise<void> {
  for (const partition of subject.partitions)
    await sink.endPartition?.(
      partition,
      receipts.filter((receipt) => receipt.extent.partition === partition.id),
      o,
    )
}

const sorted = (list: readonly string[]): string[] => list.toSorted()

async function expectWhole(subject: SinkUnderTest): Promise<void> {
  expect(sorted(await subject.visible())).toEqual(
    sorted(subject.contents(subject.partitions.map((partition) => partition.id))),
  )
  expect(await subject.leftovers()).toEqual([])
}

function writingTests(current: () => SinkSubject, nature: SinkNature): void {
  it('shows nothing too early, and everything at the end', async () => {
    const { subject, open } = current()
    const opened = await open()
    const { sink, extents } = opened
    expect(extents.length).toBeGreaterThan(2)
    expect(await subject.visible()).toEqual([])
    const receipts = await writeAll(opened, { lanes: 3 })
    expect(receipts.map((receipt) => receipt.extent).toSorted(byPlace)).toEqual(
      extents.map(({ extent }) => extent).toSorted(byPlace),
    )
    expect(receipts.reduce((sum, receipt) => sum + receipt.rowsWritten, 0)).toBe(
      extents.reduce((sum, { extent }) => sum + extent.rows, 0),
    )
    expect(JSON.parse(JSON.stringify(receipts.map((receipt) => receipt.state)))).toEqual(
      receipts.map((receipt) => receipt.state),
    )
    if (nature.visibleAt === 'seal') expect(receipts.every((receipt) => receipt.durable)).toBe(true)
    if (nature.visibleAt === 'partition' || nature.visibleAt === 'finish') expect(await subject.visible()).toEqual([])
    for (const [i, partition] of subject.partitions.entries()) {
      await sink.endPartition?.(
        partition,
        receipts.filter((receipt) => receipt.extent.partition === partition.id),
        o,
      )
      const ended = subject.partitions.slice(0, i + 1).map(({ id }) => id)
      if (nature.visibleAt === 'partition')
        expect(sorted(await subject.visible())).toEqual(sorted(subject.contents(ended)))
      if (nature.visibleAt === 'finish') expect(await subject.visible()).toEqual([])
    }
    const { outputs, lost } = await sink.finish(receipts, o)
    expect(lost).toEqual([])
    expect(outputs.length).toBeGreaterThan(0)
    await expectWhole(subject)
    if (sink.lanes.ordered)
      expect(await subject.visible()).toEqual(subject.contents(subject.partitions.map((partition) => partition.id)))
  })

  it('finishes once, however often it is told to', async () => {
    const { subject, open } = current()
    const opened = await open()
    const receipts = await writeAll(opened, { lanes: 2 })
    await endPartitions(opened.sink, subject, receipts)
    await endPartitions(opened.sink, subject, receipts)
    const first = await opened.sink.finish(receipts, o)
    expect(await opened.sink.finish(receipts, o)).toEqual(first)
    await expectWhole(subject)
  })

  it('can be closed twice, and without a lane', async () => {
    const { subject, open } = current()
    const { sink } = await open()
    await sink.close()
    await sink.close()
    expect(await subject.visible()).toEqual([])
  })
}

function byPlace(a: LoadedExtent['extent'], b: LoadedExtent['extent']): number {
  return a.partition < b.partition ? -1 : a.partition > b.partition ? 1 : a.start.byte - b.start.byte
}

function abortTests(current: () => SinkSubject, nature: SinkNature): void {
  it('leaves things as they were when it is aborted', async () => {
    const { subject, open } = current()
    const opened = await open()
    const receipts = await writeAll({ ...opened, extents: opened.extents.slice(0, 2) }, { lanes: 2 })
    await opened.sink.abort(new Error('no more'), { resumable: false })
    await opened.sink.abort(new Error('no more'), { resumable: false })
    if (nature.visibleAt === 'seal')
      expect(await subject.visible()).toHaveLength(receipts.reduce((sum, receipt) => sum + receipt.rowsWritten, 0))
    else if (nature.visibleAt !== 'write') expect(await subject.visible()).toEqual([])
    expect(await subject.leftovers()).toEqual([])
  })

  it('can be aborted before anything was written', async () => {
    const { subject, open } = current()
    const { sink } = await open()
    await sink.abort(new Error('no'), { resumable: false })
    expect(await subject.visible()).toEqual([])
    expect(await subject.leftovers()).toEqual([])
  })
}

function recoveryTests(current: () => SinkSubject, nature: SinkNature): void {
  it('goes on after a kill, wherever it came, and holds everything once', async () => {
    const { open, subject } = current()
    const first = await open()
    const half = { ...first, extents: first.extents.slice(0, Math.ceil(first.extents.length / 2)) }
    await writeAll(half, { lanes: 2 })
    await subject.kill?.()
    const again = await open({ resumed: true })
    const before = (await again.sink.recover?.(o)) ?? []
    if (nature.visibleAt === 'seal') expect(before.length).toBe(half.extents.length)
    await finishRest(current(), again, before)
    await expectWhole(subject)
  })

  it('goes on after a kill between the end of one partition and the next', async () => {
    const { open, subject } = current()
    const first = await open()
    const receipts = await writeAll(first, { lanes: 2 })
    const [partition] = subject.partitions
    if (partition !== undefined)
      await first.sink.endPartition?.(
        partition,
        receipts.filter((receipt) => receipt.extent.partition === partition.id),
        o,
      )
    await subject.kill?.()
    const again = await open({ resumed: true })
    await finishRest(current(), again, (await again.sink.recover?.(o)) ?? [])
    await expectWhole(subject)
  })

  it('knows after a kill at its very end that all is done', async () => {
    const { open, subject } = current()
    const first = await open()
    const receipts = await writeAll(first, { lanes: 3 })
    await endPartitions(first.sink, subject, receipts)
    await first.sink.finish(receipts, o)
    await subject.kill?.()
    const again = await open({ resumed: true })
    const before = (await again.sink.recover?.(o)) ?? []
    expect(uncovered(again, subject, before).map(({ extent }) => extent)).toEqual([])
    await finishRest(current(), again, before)
    await expectWhole(subject)
  })

  it.each(SCENARIOS)(
    'holds everything once, whoever writes what and whenever a kill comes: $percent %',
    async ({ percent, kill, rest }) => {
      const { open, subject, recorded } = current()
      const first = await open()
      const extents = first.extents.slice(0, Math.floor((first.extents.length * percent) / 100))
      await writeAll({ ...first, extents }, kill ?? { lanes: 1 })
      await subject.kill?.()
      expect(JSON.parse(JSON.stringify(recorded))).toEqual(recorded)
      const again = await open({ resumed: true })
      await finishRest(current(), again, (await again.sink.recover?.(o)) ?? [], rest)
      await expectWhole(subject)
    },
  )
}

// oxlint-disable-next-line max-params -- how, besides what every test gives
async function finishRest(
  { subject }: SinkSubject,
  again: OpenSink,
  before: readonly Receipt[],
  how: { lanes: number; choices?: readonly number[] } = { lanes: 3 },
): Promise<void> {
  const extents = uncovered(again, subject, before)
  const receipts = [...before, ...(await writeAll({ ...again, extents }, how))]
  await endPartitions(again.sink, subject, receipts)
  const { lost } = await again.sink.finish(receipts, o)
  expect(lost).toEqual([])
}
