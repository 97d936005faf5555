import { byteSize, filteredCount, rowCount } from '../core/batch.ts'
import type { Batch, RowsBatch } from '../core/batch.ts'
import type { Extent, Partition, Position } from '../core/job.ts'

/** An extent with its batches: what is dealt. Its memory is free once it is sealed. */
export interface LoadedExtent {
  readonly extent: Extent
  readonly batches: readonly Batch[]
}

/**
 * Gathers batches into extents of about `targetBytes` (exactly, save the last, where `exact`: then batches are cut), and of at most `rows` rows, for
 * which batches of parsed rows are cut. A function is asked anew at each batch. A batch in columns is an extent of its own.
 * An extent is given out only when it is known whether another follows, so that the last one of a partition says so.
 */
export class ExtentBuilder {
  readonly #partition: Partition
  readonly #targetBytes: () => number
  readonly #exact: boolean
  readonly #mostRows: number
  readonly #nextSequence: () => number
  #batches: Batch[] = []
  #bytes = 0
  #rows = 0
  #filtered = 0
  /** Where the extent in the making begins; null before it does. */
  #start: Position | null = null
  #full: LoadedExtent | null = null
  #end: Position

  constructor(
    partition: Partition,
    size: { targetBytes: number | (() => number); exact: boolean; rows?: number | undefined },
    from: { nextSequence: () => number; start: Position },
  ) {
    this.#partition = partition
    const { targetBytes } = size
    this.#targetBytes = typeof targetBytes === 'number' ? () => targetBytes : targetBytes
    this.#exact = size.exact
    this.#mostRows = size.rows ?? Number.POSITIVE_INFINITY
    this.#nextSequence = from.nextSequence
    this.#end = from.start
  }

  /** Adds a batch; returns the extents that are complete now. */
  add(batch: Batch): readonly LoadedExtent[] {
    const complete: LoadedExtent[] = []
    for (const piece of this.#cut(batch)) {
      if (this.#full !== null) complete.push(this.#full)
      this.#full = null
      // Of what was left out whole only the counts go on.
      if (piece.form === 'bytes' || rowCount(piece) > 0) this.#batches.push(piece)
      this.#start ??= piece.start
      this.#filtered += filteredCount(piece)
      this.#bytes += byteSize(piece)
      this.#rows += rowCount(piece)
      this.#end = piece.end
      const isFull = this.#bytes >= this.#targetBytes() || this.#rows >= this.#mostRows || piece.form === 'columns'
      if (isFull && piece.mayEnd) this.#full = this.#take(false)
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
    return this.#start !== null || last ? [this.#take(last)] : []
  }

  #take(last: boolean): LoadedExtent {
    const batches = this.#batches
    const extent: Extent = {
      partition: this.#partition.id,
      sequence: this.#nextSequence(),
      start: this.#start ?? this.#end,
      end: this.#end,
      rows: this.#rows,
      filtered: this.#filtered,
      bytes: this.#bytes,
      last,
    }
    this.#batches = []
    this.#bytes = 0
    this.#rows = 0
    this.#filtered = 0
    this.#start = null
    return { extent, batches }
  }

  #cut(batch: Batch): readonly Batch[] {
    if (batch.form === 'rows') return this.#cutRows(batch)
    if (!this.#exact || batch.form !== 'bytes') return [batch]
    const pieces: Batch[] = []
    const targetBytes = this.#targetBytes()
    let room = targetBytes - this.#bytes
    let at = 0
    while (at < batch.bytes.byteLength) {
      const bytes = batch.bytes.subarray(at, Math.min(batch.bytes.byteLength, at + room))
      const start = { ...batch.start, byte: batch.start.byte + at }
      at += bytes.byteLength
      pieces.push({ ...batch, bytes, start, end: { ...batch.end, byte: batch.start.byte + at } })
      room = targetBytes
    }
    return pieces
  }

  /** Where its rows were cut, a batch's place is that of its first row; what was filtered and the bytes go with the first piece. */
  #cutRows(batch: RowsBatch): readonly Batch[] {
    let room = this.#mostRows - this.#rows
    if (batch.rows.length <= room) return [batch]
    const pieces: Batch[] = []
    const bytesPerRow = batch.sourceBytes / batch.rows.length
    for (let at = 0; at < batch.rows.length; room = this.#mostRows) {
      const next = Math.min(batch.rows.length, at + room)
      pieces.push({
        ...batch,
        rows: batch.rows.slice(at, next),
        places: batch.places.slice(at, next),
        sourceBytes: Math.round(bytesPerRow * next) - Math.round(bytesPerRow * at),
        filtered: at === 0 ? batch.filtered : 0,
        start: at === 0 ? batch.start : positionOf(batch, at),
        end: next === batch.rows.length ? batch.end : positionOf(batch, next),
      })
      at = next
    }
    return pieces
  }
}

function positionOf(batch: RowsBatch, index: number): Position {
  const place = batch.places[index]
  return place === undefined ? batch.end : { byte: place.byte, row: place.row - 1, line: place.line - 1 }
}
