import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SluiceError } from '../../src/core/errors.ts'
import { compileMapping } from '../../src/engine/mapping.ts'
import { Progressor } from '../../src/engine/progress.ts'
import { runJob } from '../../src/engine/run-job.ts'
import { memoryReceipt, memoryRow, MemorySink, MemorySource, type MemoryStep } from '../support/memory-ends.ts'

const STEPS: readonly MemoryStep[] = ['open', 'begin', 'write', 'seal', 'commit']

const jobs = fc.record({
  rows: fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 4 }),
  batchRows: fc.integer({ min: 1, max: 7 }),
  extentBytes: fc.integer({ min: 1, max: 120 }),
  lanes: fc.integer({ min: 1, max: 5 }),
  wanted: fc.oneof(fc.constant('auto' as const), fc.integer({ min: 1, max: 6 })),
  durable: fc.boolean(),
  /** After how many asked steps each fault comes. */
  faults: fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 10 }),
  losses: fc.array(fc.boolean(), { maxLength: 4 }),
  pauses: fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 30 }),
})

type Job = typeof jobs extends fc.Arbitrary<infer T> ? T : never

/** Waits for some turns of the microtask queue, as the generated list says, so that interleavings differ. */
function pacer(pauses: readonly number[]): () => Promise<void> {
  let at = 0
  return async () => {
    const turns = pauses[at % pauses.length] ?? 0
    at += 1
    if (turns === 5) await new Promise((resolve) => setImmediate(resolve))
    else for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
  }
}

function faultsOf(job: Job, error: () => SluiceError): (step: MemoryStep) => SluiceError | null {
  const faults = [...job.faults]
  return (step) => {
    const next = faults[0]
    if (next === undefined || !STEPS.includes(step)) return null
    if (next > 0) {
      faults[0] = next - 1
      return null
    }
    faults.shift()
    return error()
  }
}

const allRows = (rows: readonly number[]): string[] =>
  rows.flatMap((count, i) => Array.from({ length: count }, (_, row) => memoryRow(`p${i}`, row))).sort()

async function run(job: Job, sink: MemorySink, source: MemorySource) {
  return runJob({
    source,
    sink,
    partitions: source.partitions,
    mapping: compileMapping(await source.describe(), {}),
    form: 'rows',
    lanes: job.wanted,
    retryForMs: 600_000,
    maxMemoryBytes: null,
    bytesTotal: null,
    progressor: new Progressor(undefined),
    signal: new AbortController().signal,
  })
}

describe('runJob', () => {
  // Full jitter with no luck: no pause before a second try.
  beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0))
  afterEach(() => vi.restoreAllMocks())

  it('writes each row exactly once, whatever breaks and however things interleave', async () => {
    await fc.assert(
      fc.asyncProperty(jobs, async (job) => {
        const step = pacer(job.pauses)
        const losses = [...job.losses]
        const source = new MemorySource(job.rows, { batchRows: job.batchRows, step })
        const fault = faultsOf(job, () => new SluiceError('SLUICE_NETWORK', 'cut'))
        const sink = new MemorySink({ ...job, fault, step, loses: () => losses.pop() ?? false })
        const outcome = await run(job, sink, source)
        expect(outcome.error).toBeNull()
        expect(sink.table.toSorted()).toEqual(allRows(job.rows))
        expect(outcome.rowsWritten).toBe(sink.table.length)
        expect(outcome.rowsRead).toBe(sink.table.length)
        expect([...new Set(sink.ended)].toSorted()).toEqual(source.partitions.map((partition) => partition.id))
        expect({ open: sink.openLanes, reading: source.reading, aborts: sink.aborts }).toEqual({
          open: 0,
          reading: 0,
          aborts: [],
        })
      }),
      { numRuns: 400 },
    )
  })

  it('goes on with what earlier runs left, and writes none of it again', async () => {
    const pieces = fc.array(fc.record({ rows: fc.integer({ min: 1, max: 9 }), sealed: fc.boolean() }), {
      minLength: 1,
      maxLength: 8,
    })
    await fc.assert(
      fc.asyncProperty(jobs, fc.array(pieces, { minLength: 1, maxLength: 3 }), async (job, partitions) => {
        const left = partitions.map((list, i) => {
          let at = 0
          return list.flatMap(({ rows, sealed }, piece) => {
            at += rows
            return sealed ? [memoryReceipt(`p${i}`, at - rows, at, { last: piece === list.length - 1 })] : []
          })
        })
        const rows = partitions.map((list) => list.reduce((sum, piece) => sum + piece.rows, 0))
        const step = pacer(job.pauses)
        const source = new MemorySource(rows, { batchRows: job.batchRows, step })
        const fault = faultsOf(job, () => new SluiceError('SLUICE_THROTTLED', 'slow down'))
        const sink = new MemorySink({ ...job, fault, step, recovered: left.flat() })
        const outcome = await run(job, sink, source)
        const before = left
          .flat()
          .flatMap(({ extent }) =>
            Array.from({ length: extent.rows }, (_, i) => memoryRow(extent.partition, extent.start.row + i)),
          )
        expect(outcome.error).toBeNull()
        expect([...sink.table, ...before].sort()).toEqual(allRows(rows))
        expect(outcome.rowsWritten).toBe(allRows(rows).length)
        expect([...new Set(sink.ended)].toSorted()).toEqual(source.partitions.map((partition) => partition.id))
      }),
      { numRuns: 300 },
    )
  })

  it('ends with the error that can not be helped, and aborts the sink once', async () => {
    await fc.assert(
      fc.asyncProperty(jobs, async (job) => {
        const step = pacer(job.pauses)
        const source = new MemorySource(job.rows, { batchRows: job.batchRows, step })
        let thrown = 0
        const fault = faultsOf(job, () => {
          thrown += 1
          return new SluiceError('SLUICE_VALUE', 'bad')
        })
        const sink = new MemorySink({ ...job, fault, step })
        const outcome = await run(job, sink, source)
        expect(outcome.error?.code).toBe(thrown === 0 ? undefined : 'SLUICE_VALUE')
        expect(sink.aborts.map((abort) => abort.resumable)).toEqual(thrown === 0 ? [] : [false])
        if (thrown > 0 && !job.durable) expect(sink.table).toEqual([])
        expect({ open: sink.openLanes, reading: source.reading }).toEqual({ open: 0, reading: 0 })
        expect(new Set(sink.table).size).toBe(sink.table.length)
      }),
      { numRuns: 300 },
    )
  })
})
