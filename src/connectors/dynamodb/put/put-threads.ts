import { availableParallelism } from 'node:os'
import type { CopyOptions } from '../../../core/options.ts'
import type { InFlightBounds } from './in-flight.ts'
import type { PutThreadData, SharedCells } from './put-message.ts'
import type { PutWaysOptions } from './put-ways.ts'
import type { DynamoTarget } from '../url.ts'

/** Requests in flight where `--concurrency` does not say: of each thread to begin with, of each at most, which is also what all together begin with at most. */
const FIRST_IN_FLIGHT = 24
export const MOST_IN_FLIGHT = 128
/** Some million small items a second, more than tables take: the main thread's share, 0.3 µs a row of CSV where a thread's is 4 µs, would feed more. */
const MOST_THREADS = 8
/** With fewer cores the threads, the main one and what else runs there would only take turns. */
const CORES_FOR_THREADS = 3

/**
 * How many threads put items, and when. `auto` begins in the main thread, since most tables are slower than it, and starting a thread takes 0.1 s to 0.3 s.
 */
export function threadsFor(
  { workers = 'auto', concurrency, dedupe }: CopyOptions,
  cores: number = availableParallelism(),
): { readonly count: number; readonly when: PutWaysOptions['threads'] } {
  const most = typeof concurrency === 'number' ? concurrency : Number.POSITIVE_INFINITY
  if (workers !== 'auto') return { count: Math.min(workers, most), when: workers === 0 ? 'never' : 'always' }
  // Keys that this thread has seen are not known to others.
  if (cores < CORES_FOR_THREADS || dedupe === 'error') return { count: 0, when: 'never' }
  return { count: Math.min(cores - 1, MOST_THREADS, most), when: 'busy' }
}

/** A thread's share of the requests in flight: `--concurrency` holds for all threads together. */
export function inFlightOf(
  concurrency: number | null,
  { sharers, index }: { readonly sharers: number; readonly index: number },
): InFlightBounds {
  if (concurrency === null) {
    const min = sharers === 1 ? 2 : 1
    const initial = Math.max(min, Math.min(FIRST_IN_FLIGHT, Math.floor(MOST_IN_FLIGHT / sharers)))
    return { initial, min, max: MOST_IN_FLIGHT }
  }
  const own = Math.floor(concurrency / sharers) + (index < concurrency % sharers ? 1 : 0)
  return { initial: own, min: own, max: own }
}

export interface ThreadsDataOptions extends Pick<
  PutThreadData,
  'table' | 'keys' | 'dedupe' | 'retryForMs' | 'nulls' | 'writeUnits' | 'signRequest'
> {
  readonly target: DynamoTarget
  readonly concurrency: number | null
}

/** What each of so many threads is begun with. */
export function threadsData(o: ThreadsDataOptions, count: number): readonly PutThreadData[] {
  const { target, concurrency, ...same } = o
  const shared: SharedCells = {
    units: new BigInt64Array(new SharedArrayBuffer(8)),
    progress: new BigInt64Array(new SharedArrayBuffer(8)),
    trace: new Int32Array(new SharedArrayBuffer(8)),
    lastBlock: new Int32Array(new SharedArrayBuffer(4)).fill(2 ** 31 - 1),
  }
  return Array.from({ length: count }, (_, index) => ({
    ...same,
    region: target.region,
    url: target.url,
    endpoint: target.endpoint?.href ?? null,
    inFlight: inFlightOf(concurrency, { sharers: count, index }),
    threads: count,
    shared,
  }))
}
