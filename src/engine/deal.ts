import type { Extent, Partition, Position, Receipt } from '../core/job.ts'
import { WakeUps } from '../core/wake-ups.ts'
import type { LoadedExtent } from './extent-builder.ts'

/** A stretch of a partition that no receipt covers. */
export interface Gap {
  readonly partition: Partition
  /** Undefined: from the beginning. */
  readonly from: Position | undefined
  /** Undefined: to the end. */
  readonly until: Position | undefined
  /** Whether it reaches to the end of its partition. */
  readonly last: boolean
}

interface PartitionState {
  readonly partition: Partition
  readonly receipts: Set<Receipt>
  nextSequence: number
  /** Gaps and extents that are not sealed yet. */
  outstanding: number
}

/**
 * What is to be read, what waits for a lane, and what is sealed: extents are dealt to whichever lane is free. At most `capacity`
 * extents wait; with one in each reader's and each lane's hands, that bounds the job's memory.
 */
export class Deal {
  readonly #states = new Map<string, PartitionState>()
  readonly #gaps: Gap[] = []
  readonly #waiting: LoadedExtent[] = []
  readonly #capacity: number
  readonly #changes = new WakeUps()
  #began = false
  #reading = 0
  #writing = 0

  /** `sealed`: what earlier runs of the job left that counts. */
  constructor(partitions: readonly Partition[], sealed: readonly Receipt[], capacity: number) {
    this.#capacity = capacity
    for (const partition of partitions) {
      const receipts = sealed
        .filter((receipt) => receipt.extent.partition === partition.id)
        .toSorted((a, b) => a.extent.start.byte - b.extent.start.byte || a.extent.start.row - b.extent.start.row)
      const gaps = gapsBetween(partition, receipts)
      this.#gaps.push(...gaps)
      const nextSequence = Math.max(-1, ...receipts.map((receipt) => receipt.extent.sequence)) + 1
      this.#states.set(partition.id, { partition, receipts: new Set(receipts), nextSequence, outstanding: gaps.length })
    }
  }

  /** Receipts that count, of all runs. */
  receipts(): Receipt[] {
    return [...this.#states.values()].flatMap((state) => [...state.receipts])
  }

  receiptsOf(partition: string): Receipt[] {
    return [...(this.#states.get(partition)?.receipts ?? [])]
  }

  partition(id: string): Partition | undefined {
    return this.#states.get(id)?.partition
  }

  /** Partitions that are complete. */
  complete(): Partition[] {
    return [...this.#states.values()].filter((state) => state.outstanding === 0).map((state) => state.partition)
  }

  /** Whether rows were ever handed on, in this run. What was sealed may be void again by now. */
  get began(): boolean {
    return this.#began
  }

  get writing(): number {
    return this.#writing
  }

  /** The next gap to read, once there is one; null when all is sealed or dealt for good. */
  async takeGap(signal: AbortSignal): Promise<Gap | null> {
    for (;;) {
      signal.throwIfAborted()
      const gap = this.#gaps.shift()
      if (gap !== undefined) {
        this.#reading += 1
        return gap
      }
      if (this.#isDone()) return null
      await this.#changes.next()
    }
  }

  /** A sequence number that no extent of the partition has yet. */
  nextSequence(partition: string): number {
    const state = this.#states.get(partition)
    if (state === undefined) return 0
    state.nextSequence += 1
    return state.nextSequence - 1
  }

  /** All of the gap is dealt. @returns whether its partition is complete now: nothing was in the gap, or all of it is sealed already */
  gapRead(gap: Gap): boolean {
    this.#reading -= 1
    const state = this.#states.get(gap.partition.id)
    if (state !== undefined) state.outstanding -= 1
    this.#changes.wake()
    return state?.outstanding === 0
  }

  /** Resolves when the extent is taken into the queue: back-pressure for the reader. */
  async offer(extent: LoadedExtent, signal: AbortSignal): Promise<void> {
    while (this.#waiting.length >= this.#capacity) {
      signal.throwIfAborted()
      await this.#changes.next()
    }
    signal.throwIfAborted()
    this.#began = true
    const state = this.#states.get(extent.extent.partition)
    if (state !== undefined) state.outstanding += 1
    this.#waiting.push(extent)
    this.#changes.wake()
  }

  /** Resolves when no extent waits for a lane or is in one's hands. */
  async idle(signal: AbortSignal): Promise<void> {
    while (this.#waiting.length > 0 || this.#writing > 0) {
      signal.throwIfAborted()
      await this.#changes.next()
    }
  }

  /** The next extent for a lane, once there is one that it may take; null when no more can come. */
  async take(signal: AbortSignal, mayTake: () => boolean): Promise<LoadedExtent | null> {
    for (;;) {
      signal.throwIfAborted()
      const extent = mayTake() ? this.#waiting.shift() : undefined
      if (extent !== undefined) {
        this.#writing += 1
        this.#changes.wake()
        return extent
      }
      if (this.#isDone()) return null
      await this.#changes.next()
    }
  }

  /** @returns whether its partition is complete now */
  sealed(receipt: Receipt): boolean {
    this.#writing -= 1
    const state = this.#states.get(receipt.extent.partition)
    state?.receipts.add(receipt)
    if (state !== undefined) state.outstanding -= 1
    this.#changes.wake()
    return state?.outstanding === 0
  }

  /** A lane broke with this extent in its hands: it goes to the next free lane, before all others. */
  putBack(extent: LoadedExtent): void {
    this.#writing -= 1
    this.#waiting.unshift(extent)
    this.#changes.wake()
  }

  /** Sealed extents that turned out lost are to be read again. */
  voided(extents: readonly Extent[]): void {
    for (const extent of extents) {
      const state = this.#states.get(extent.partition)
      if (state === undefined) continue
      for (const receipt of state.receipts) if (sameExtent(receipt.extent, extent)) state.receipts.delete(receipt)
      state.outstanding += 1
      this.#gaps.push({
        partition: state.partition,
        from: extent.start,
        until: extent.last ? undefined : extent.end,
        last: extent.last,
      })
    }
    this.#changes.wake()
  }

  /** Wakes everyone who waits, so that they see that the job was aborted. */
  wakeAll(): void {
    this.#changes.wake()
  }

  #isDone(): boolean {
    return this.#gaps.length === 0 && this.#reading === 0 && this.#waiting.length === 0 && this.#writing === 0
  }
}

function sameExtent(a: Extent, b: Extent): boolean {
  return (
    a.start.byte === b.start.byte &&
    a.start.row === b.start.row &&
    a.end.byte === b.end.byte &&
    a.sequence === b.sequence
  )
}

/** Receipts in order of their start. The first extent of a partition has nothing before it: byte 0, or data row 0 after a header. */
function gapsBetween(partition: Partition, receipts: readonly Receipt[]): Gap[] {
  const gaps: Gap[] = []
  let from: Position | undefined
  for (const { extent } of receipts) {
    const joined =
      from === undefined
        ? extent.start.byte === 0 || (extent.start.row === 0 && extent.end.row > 0)
        : from.byte >= extent.start.byte
    if (!joined) gaps.push({ partition, from, until: extent.start, last: false })
    if (from === undefined || from.byte < extent.end.byte || from.row < extent.end.row) from = extent.end
  }
  if (!receipts.some((receipt) => receipt.extent.last)) gaps.push({ partition, from, until: undefined, last: true })
  return gaps
}
