import { crc32 } from 'node:zlib'
import type { ColumnVector } from '../../../core/batch.ts'
import type { CopyConsumer } from '../unload/copy-out.ts'
import { checkHash } from '../unload/row-blocks.ts'
import type { RowRange } from '../unload/row-blocks.ts'

/** Rows as vectors: what ColumnsBuilder gives. */
export interface ColumnBlock {
  readonly vectors: readonly ColumnVector[]
  readonly rows: number
  readonly bufferBytes: number
  /** Special values that became NULL, by column. */
  readonly specials: ReadonlyMap<string, number>
}

/** A block of columns, and the bytes of COPY that its rows came in. */
export interface SizedColumnBlock extends ColumnBlock {
  readonly payloadBytes: number
  /** CRC-32 of all messages up to its end, those passed over included; where the range asks for it. */
  readonly hash?: number | undefined
}

/** What makes vectors of rows in COPY's binary format (binary-columns.ts). */
export interface ColumnSink {
  /** Number of the next row, from 1, for errors. */
  nextRow: number
  readonly rows: number
  readonly full: boolean
  /** A message's payload: the preface with or without the first row, or a row. */
  append(chunk: Uint8Array, start: number, end: number): void
  /** As many rows at once as it can, of whole messages from `at` on. */
  appendRows(
    chunk: Uint8Array,
    at: number,
    most: number,
  ): { readonly end: number; readonly rows: number; readonly payloadBytes: number }
  take(): ColumnBlock
}

const COPY_DATA = 0x64
const HEADER_BYTES = 5
/** Signature, flags and length of the extension of COPY's binary format (documentation of COPY, "Binary Format"); the server sends no extension. */
const PREFACE_BYTES = 19
/** A count of fields that says: the end. */
const TRAILER_BYTES = 2

/**
 * Hands rows of COPY's binary format to a builder of columns. One finished block waits at most, since it may be large; the rest of a chunk (64 KiB)
 * already fills the next.
 */
export class ColumnBlocks implements CopyConsumer<SizedColumnBlock> {
  readonly #builder: ColumnSink
  readonly #blocks: SizedColumnBlock[] = []
  readonly #range: RowRange
  #hash = 0
  #skip: number
  #left: number
  #payloadBytes = 0
  #begun = false

  constructor(builder: ColumnSink, range: RowRange) {
    this.#builder = builder
    this.#range = range
    builder.nextRow = range.skip + 1
    this.#skip = range.skip
    this.#left = range.limit
  }

  get sated(): boolean {
    return this.#blocks.length > 0
  }

  get done(): boolean {
    return this.#left <= 0
  }

  get short(): boolean {
    return this.#skip > 0
  }

  shift(): SizedColumnBlock | undefined {
    return this.#blocks.shift()
  }

  finish(): void {
    if (this.#builder.rows === 0) return
    const hash = this.#range.hash === undefined ? undefined : this.#hash
    this.#blocks.push({ ...this.#builder.take(), payloadBytes: this.#payloadBytes, hash })
    this.#payloadBytes = 0
  }

  take(bytes: Buffer, from: number): number {
    const builder = this.#builder
    let [at, hashed] = [from, from]
    // Up to the end of a row, at once for all that lie side by side.
    const hash = (): void => {
      if (this.#range.hash !== undefined && at > hashed) this.#hash = crc32(bytes.subarray(hashed, at), this.#hash)
      hashed = at
    }
    while (bytes.length - at >= HEADER_BYTES && bytes[at] === COPY_DATA && this.#left > 0) {
      if (this.#skip === 0) {
        const taken = builder.appendRows(bytes, at, this.#left)
        if (taken.rows > 0) {
          at = taken.end
          this.#payloadBytes += taken.payloadBytes
          this.#left -= taken.rows
          if (!builder.full && this.#left > 0) continue
          hash()
          this.finish()
          continue
        }
      }
      const end = at + 1 + bytes.readUInt32BE(at + 1)
      if (end > bytes.length) break
      let start = at + HEADER_BYTES
      // The preface comes with the first row, or with the trailer where there is none.
      if (!this.#begun) {
        const rest = Math.min(start + PREFACE_BYTES, end)
        builder.append(bytes, start, rest)
        this.#begun = true
        start = rest
      }
      at = end
      if (end - start < TRAILER_BYTES || (bytes[start] === 0xff && bytes[start + 1] === 0xff)) continue
      if (this.#skip > 0) {
        this.#skip -= 1
        if (this.#skip > 0) continue
        hash()
        checkHash(this.#range, this.#hash)
        continue
      }
      builder.append(bytes, start, end)
      this.#payloadBytes += end - start
      this.#left -= 1
      if (!builder.full && this.#left > 0) continue
      hash()
      this.finish()
    }
    hash()
    return at
  }
}
