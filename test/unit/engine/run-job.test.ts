import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { JobEvent } from '../../../src/core/events.ts'
import { SluiceError } from '../../../src/core/errors.ts'
import { compileMapping } from '../../../src/engine/mapping.ts'
import { Progressor } from '../../../src/engine/progress.ts'
import { type JobOutcome, type JobWork, runJob } from '../../../src/engine/run-job.ts'
import {
  MemorySink,
  MemorySource,
  memoryReceipt,
  memoryRow,
  type MemoryStep,
  ROW_BYTES,
} from '../../support/memory-ends.ts'

// Full jitter with no luck: no pause before a second try.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0))
afterEach(() => vi.restoreAllMocks())

const cut = (): SluiceError => new SluiceError('SLUICE_NETWORK', 'cut')

/** Fails the so-many first times that a step is taken. */
function failing(
  step: MemoryStep,
  times: number,
  error: () => SluiceError = cut,
): (at: MemoryStep) => SluiceError | null {
  let left = times
  return (at) => {
    if (at !== step || left === 0) return null
    left -= 1
    return error()
  }
}

interface Given extends Partial<JobWork> {
  readonly source: MemorySource
  readonly sink: MemorySink
}

async function run(given: Given, listener?: (event: JobEvent) => void): Promise<JobOutcome> {
  return runJob({
    partitions: given.source.partitions,
    mapping: compileMapping(await given.source.describe(), {}),
    form: 'rows',
    lanes: 2,
    retryForMs: 60_000,
    maxMemoryBytes: null,
    bytesTotal: null,
    progressor: new Progressor(listener),
    signal: new AbortController().signal,
    ...given,
  })
}

const table = (o: Partial<ConstructorParameters<typeof MemorySink>[0]> = {}): MemorySink =>
  new MemorySink({ durable: false, lanes: 4, extentBytes: 30, ...o })

describe('runJob', () => {
  it("tells how many bytes will have come, where a partition's are not those that are read", async () => {
    const source = new MemorySource([200], { batchRows: 10 })
    // Pages are four times what is read of them.
    const pages = Object.assign(source, { bytesDone: () => 4 * source.bytesRead() })
    const progressor = new Progressor(undefined)
    const start = vi.spyOn(progressor, 'start')
    const total = 4 * 200 * ROW_BYTES
    const outcome = await run({ source: pages, sink: table(), bytesTotal: total, progressor })
    expect(outcome.error).toBeNull()
    expect(start.mock.calls.map(([view]) => view())).toMatchObject([{ bytesRead: total / 4, bytesTotal: total / 4 }])
  })

  it('gives up when there was no progress for as long as retryForMs, and lets the sink keep what a resume can use', async () => {
    let nowMs = 1000
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
    let asked = 0
    const sink = table({
      fault: (step) => {
        if (step !== 'write') return null
        asked += 1
        nowMs += 100
        return cut()
      },
    })
    const outcome = await run({ source: new MemorySource([3], { batchRows: 3 }), sink, lanes: 1, retryForMs: 350 })
    expect(outcome.error).toMatchObject({ code: 'SLUICE_NETWORK' })
    expect(asked).toBe(4)
    expect(sink.aborts).toEqual([{ reason: outcome.error, resumable: true }])
  })

  it('counts that time from the last extent that was sealed', async () => {
    let nowMs = 1000
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
    let writes = 0
    const sink = table({
      durable: true,
      fault: (step) => {
        if (step !== 'write') return null
        writes += 1
        nowMs += 100
        return writes % 3 === 0 ? null : cut()
      },
    })
    const outcome = await run({ source: new MemorySource([30], { batchRows: 3 }), sink, lanes: 1, retryForMs: 350 })
    expect(outcome.error).toBeNull()
    expect(sink.table).toHaveLength(30)
    expect(nowMs).toBe(1000 + 30 * 100)
  })

  it('never tries again without a budget', async () => {
    const sink = table({ fault: failing('begin', 1) })
    const outcome = await run({ source: new MemorySource([3], { batchRows: 3 }), sink, retryForMs: -1 })
    expect(outcome.error).toMatchObject({ code: 'SLUICE_NETWORK' })
  })

  it('does not wait for a Retry-After that is longer than the budget', async () => {
    const sink = table({
      fault: failing('open', 1, () => new SluiceError('SLUICE_THROTTLED', 'slow', { retryAfterMs: 70_000 })),
    })
    const outcome = await run({ source: new MemorySource([3], { batchRows: 3 }), sink })
    expect(outcome.error).toMatchObject({ code: 'SLUICE_THROTTLED' })
  })

  it('tells of what it tries again', async () => {
    const events: JobEvent[] = []
    const sink = table({ fault: failing('seal', 2) })
    const outcome = await run({ source: new MemorySource([3], { batchRows: 3 }), sink }, (event) => events.push(event))
    expect(outcome.error).toBeNull()
    expect(events.filter((event) => event.kind === 'retry')).toHaveLength(2)
  })

  it('ends where a source that can be read once has lost sealed rows with a lane', async () => {
    const source = new MemorySource([9], { batchRows: 3, replayable: false })
    let begun = 0
    const sink = table({ lanes: 1, fault: (step) => (step === 'begin' && ++begun === 2 ? cut() : null) })
    const outcome = await run({ source, sink })
    expect(outcome.error).toMatchObject({ code: 'SLUICE_NETWORK' })
    expect(sink.aborts.map((abort) => abort.resumable)).toEqual([false])
    expect(sink.table).toEqual([])
  })

  it('goes on where such a source has lost nothing but what is still in memory', async () => {
    const source = new MemorySource([9], { batchRows: 3, replayable: false })
    const sink = table({ lanes: 1, durable: true, fault: failing('write', 3) })
    expect((await run({ source, sink })).error).toBeNull()
    expect(sink.table).toHaveLength(9)
  })

  it('ends where such a source lost rows at the end', async () => {
    const source = new MemorySource([9], { batchRows: 3, replayable: false })
    const sink = table({ loses: () => true })
    expect((await run({ source, sink })).error).toMatchObject({ code: 'SLUICE_NOT_REPLAYABLE' })
  })

  it('ends where a sink loses at its end what it had, again and again', async () => {
    const sink = table({ loses: () => true })
    const outcome = await run({ source: new MemorySource([9], { batchRows: 3 }), sink })
    expect(outcome.error).toMatchObject({ code: 'SLUICE_SERVER_GONE' })
    expect(sink.finishes).toBe(10)
  })

  it('brings rows in the order of the source where the sink wants that, and tries nothing again there', async () => {
    const rows = [7, 0, 5]
    const source = new MemorySource(rows, { batchRows: 2 })
    const sink = table({ lanes: 1, ordered: true })
    expect((await run({ source, sink, lanes: 6 })).error).toBeNull()
    expect(sink.table).toEqual(
      rows.flatMap((count, i) => Array.from({ length: count }, (_, row) => memoryRow(`p${i}`, row))),
    )
    const broken = table({ lanes: 1, ordered: true, fault: failing('write', 1) })
    expect((await run({ source, sink: broken })).error).toMatchObject({ code: 'SLUICE_NETWORK' })
  })

  it('begins extents in order in all lanes of such a sink, whatever --concurrency says', async () => {
    const sink = table({ lanes: 3, ordered: true })
    const begun: number[] = []
    let [opened, most, sealing] = [0, 0, 0]
    const openLane = sink.openLane.bind(sink)
    sink.openLane = async () => {
      // Later ones are ready sooner.
      opened += 1
      await new Promise((resolve) => setTimeout(resolve, 40 - opened * 10))
      const lane = await openLane()
      return {
        ...lane,
        begin: (extent) => {
          begun.push(extent.sequence)
          return lane.begin(extent)
        },
        seal: async (extent) => {
          sealing += 1
          most = Math.max(most, sealing)
          await new Promise((resolve) => setTimeout(resolve, 5))
          sealing -= 1
          return lane.seal(extent)
        },
      }
    }
    const outcome = await run({ source: new MemorySource([60], { batchRows: 2 }), sink, lanes: 1 })
    expect(outcome).toMatchObject({ error: null, rowsWritten: 60 })
    expect(begun).toEqual(begun.map((_, i) => i))
    expect({ extents: begun.length > 5, most }).toEqual({ extents: true, most: 3 })
  })

  it("ends with the signal's reason, and closes all that is open", async () => {
    const controller = new AbortController()
    const reason = new SluiceError('SLUICE_INTERRUPTED', 'SIGINT')
    const source = new MemorySource([500], { batchRows: 1 })
    let writes = 0
    const sink = table({
      fault: (step) => {
        if (step === 'write' && ++writes === 20) controller.abort(reason)
        return null
      },
    })
    const outcome = await run({ source, sink, signal: controller.signal })
    expect(outcome.error).toBe(reason)
    expect(sink.aborts).toEqual([{ reason, resumable: true }])
    expect({ reading: source.reading, lanes: sink.openLanes, table: sink.table }).toEqual({
      reading: 0,
      lanes: 0,
      table: [],
    })
  })

  it('does nothing where it is aborted before it begins', async () => {
    const sink = table()
    const outcome = await run({
      source: new MemorySource([9], { batchRows: 3 }),
      sink,
      signal: AbortSignal.abort(new Error('no')),
    })
    expect(outcome.error).toMatchObject({ message: 'no' })
    expect(sink.table).toEqual([])
  })

  it('does not trust a sink that wrote another number of rows than it was given', async () => {
    const short = { ...memoryReceipt('p0', 0, 3, { last: false }), rowsWritten: 2 }
    const outcome = await run({ source: new MemorySource([9], { batchRows: 3 }), sink: table({ recovered: [short] }) })
    expect(outcome.error).toMatchObject({
      code: 'SLUICE_COUNTS',
      message: '9 rows were read, but 8 written and 0 skipped',
    })
  })

  it('ends where a partition can not be ended, although its rows are sealed', async () => {
    const sink = table({ durable: true, fault: failing('end-partition', 1) })
    const outcome = await run({ source: new MemorySource([3], { batchRows: 3 }), sink })
    expect(outcome.error).toMatchObject({ code: 'SLUICE_NETWORK' })
    expect(sink.table).toHaveLength(3)
  })

  it('ends where a source breaks, and leaves no lane open', async () => {
    const error = new SluiceError('SLUICE_CSV_QUOTE', 'bad')
    const source = new MemorySource([9, 9], { batchRows: 1, step: failingStep(5, error) })
    const sink = table()
    expect((await run({ source, sink })).error).toBe(error)
    expect({ reading: source.reading, lanes: sink.openLanes }).toEqual({ reading: 0, lanes: 0 })
  })

  it('ends all partitions of a job that earlier runs had all but finished', async () => {
    const sink = table({ recovered: [memoryReceipt('p0', 0, 4, { last: true })] })
    const outcome = await run({ source: new MemorySource([4], { batchRows: 3 }), sink })
    expect(outcome).toMatchObject({ error: null, rowsRead: 4, rowsWritten: 4 })
    expect(sink.ended).toEqual(['p0'])
    expect(sink.table).toEqual([])
  })
})

function failingStep(after: number, error: Error): () => Promise<void> {
  let left = after
  return () => {
    left -= 1
    return left < 0 ? Promise.reject(error) : Promise.resolve()
  }
}
