import { byteSize, rowCount } from '../core/batch.ts'
import type { Batch } from '../core/batch.ts'
import type { Extent, Partition, Position } from '../core/job.ts'

/** An extent with its batches: what is dealt. Its memory is free once it is sealed. */
export interface LoadedExtent {
  readonly extent: Extent
  readonly batches: readonly Batch[]
}

/**
 * Gathers batches into extents of about `targetBytes` (exactly, save the last, where `exact`: then batches are cut).
 * An extent is given out only when it is known whether another follows, so that the last one of a partition says so.
 */
export class ExtentBuilder {
  readonly #partition: Partition
  readonly #targetBytes: number
  readonly #exact: boolean
  readonly #nextSequence: () => number
  #batches: Batch[] = []
  #bytes = 0
  #full: LoadedExtent | null = null
  #end: Position

  constructor(
    partition: Partition,
    size: { targetBytes: number; exact: boolean },
    from: { nextSequence: () => number; start: Position },
  ) {
    this.#partition = partition
    this.#targetBytes = size.targetBytes
    this.#exact = size.exact
    this.#nextSequence = from.nextSequence
    this.#end = from.start
  }

  /** Adds a batch; returns the extents that are complete now. */
  add(batch: Batch): readonly LoadedExtent[] {
    const complete: LoadedExtent[] = []
    for (const piece of this.#cut(batch)) {
      if (this.#full !== null) complete.push(this.#full)
      this.#full = null
      this.#batches.push(piece)
      this.#bytes += byteSize(piece)
      this.#end = piece.end
      if (this.#bytes >= this.#targetBytes && piece.mayEnd) this.#full = this.#take(false)
    }
    return complete
  }

  /** What is left. Where `last`, there is always one, empty if the partition is, that is marked as the end of its partition. */
  finish(last: boolean): readonly LoadedExtent[] {
    if (this.#full !== null) {
      const full = this.#full
      this.#full = null
      return [{ ...full, extent: { ...full.extent, last } }]
    }
    return this.#batches.length > 0 || last ? [this.#take(last)] : []
  }

  #take(last: boolean): LoadedExtent {
    const batches = this.#batches
    const extent: Extent = {
      partition: this.#partition.id,
      sequence: this.#nextSequence(),
      start: batches[0]?.start ?? this.#end,
      end: this.#end,
      rows: batches.reduce((sum, batch) => sum + rowCount(batch), 0),
      filtered: batches.reduce((sum, batch) => sum + (batch.form === 'rows' ? batch.filtered : 0), 0),
      bytes: this.#bytes,
      last,
    }
    this.#batches = []
    this.#bytes = 0
    return { extent, batches }
  }

  #cut(batch: Batch): readonly Batch[] {
    if (!this.#exact || batch.form !== 'bytes') return [batch]
    const pieces: Batch[] = []
    let room = this.#targetBytes - this.#bytes
    let at = 0
    while (at < batch.bytes.byteLength) {
      const bytes = batch.bytes.subarray(at, Math.min(batch.bytes.byteLength, at + room))
      const start = { ...batch.start, byte: batch.start.byte + at }
      at += bytes.byteLength
      pieces.push({ ...batch, bytes, start, end: { ...batch.end, byte: batch.start.byte + at } })
      room = this.#targetBytes
    }
    return pieces
  }
}
