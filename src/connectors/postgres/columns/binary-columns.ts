import type { ColumnVector } from '../../../core/batch.ts'
import { SluiceError, toSluiceError } from '../../../core/errors.ts'
import { ColumnBuffer } from './column-buffer.ts'
import type { ByteSource } from './column-memory.ts'
import { ColumnStaging } from './column-staging.ts'
import type { ColumnsPlan } from './columns-plan.ts'

export { planColumns, specialsWarning } from './columns-plan.ts'
export type { ColumnsPlan, SourceColumn } from './columns-plan.ts'

/** When a batch is full: at so many rows, or bytes of COPY's payload (or of its columns, where those are more). */
export interface ColumnsLimits {
  readonly rows: number
  readonly bytes: number
}

/** What was built; the memory is the receiver's. */
export interface BuiltColumns {
  readonly vectors: readonly ColumnVector[]
  readonly rows: number
  /** Bytes of all buffers together. */
  readonly bufferBytes: number
  /** Special values that became NULL, by column; those that had none are left out. */
  readonly specials: ReadonlyMap<string, number>
}

/** Rows that were appended at once. `end`: where the first message begins that was not; `payloadBytes`: of the messages, without their heads. */
export interface AppendedRows {
  readonly end: number
  readonly rows: number
  readonly payloadBytes: number
}

/** What begins a binary COPY: a signature of 11 bytes, flags and the length of an extension (documentation of COPY, "Binary Format"). */
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
const HEADER_BYTES = 19
/** Flags of 16 bits and more stand for what a reader must understand; there are none but OIDs, which are gone. */
const CRITICAL_FLAGS = 0xffff0000
const END = -1
/** Largest number of bytes that a walk is told: it counts in 32 bits. */
const MOST_BYTES = 2 ** 30
/** Rows that there is room for in the first batch, before it grows. */
const FIRST_ROWS = 1024

/**
 * Builds columns in Arrow's layout of the rows that `COPY … TO STDOUT (FORMAT binary)` sends for a plan's `select`. One for each COPY; holds one batch,
 * in buffers that grow by doubling.
 */
export class ColumnsBuilder {
  /** Number of the next row to be appended, from 1, for errors: set it where rows were passed over. */
  nextRow = 1
  readonly #columns: readonly ColumnBuffer[]
  readonly #limits: ColumnsLimits
  /** Bytes that a row takes at least. */
  readonly #rowBytes: number
  /** Made when it is needed; null where it can't be. */
  #staging: ColumnStaging | null | undefined
  readonly #source: ByteSource = { bytes: new Uint8Array(0), view: new DataView(new ArrayBuffer(0)) }
  #begun = false
  #ended = false
  #rows = 0
  #bytes = 0
  #capacity = 0
  #expectedRows = FIRST_ROWS

  constructor(plan: ColumnsPlan, limits: ColumnsLimits) {
    this.#limits = limits
    this.#columns = plan.columns.map(
      ({ name, layout }) => new ColumnBuffer(layout, { name, onSpecial: plan.onSpecial }),
    )
    this.#rowBytes = this.#columns.reduce((sum, column) => sum + column.width, 0)
  }

  /** Of the batch in the making. */
  get rows(): number {
    return this.#rows
  }

  /** Whether it is to be taken before the next row. */
  get full(): boolean {
    return this.#rows >= this.#limits.rows || this.#bytes >= this.#limits.bytes
  }

  /** Whether the trailer has come. */
  get ended(): boolean {
    return this.#ended
  }

  /**
   * The payload of one CopyData message, `[start, end)` of a chunk: a row, the header with or without the first row, or the trailer. Copies what it keeps.
   *
   * @throws SLUICE_VALUE with row and column for a special value, unless the plan makes NULLs of them; SLUICE_PROTOCOL for what is no such row. The
   * batch is void then.
   */
  append(chunk: Uint8Array, start: number, end: number): void {
    const source = this.#sourceOf(chunk)
    try {
      const at = this.#begun ? start : this.#skipHeader(source, start, end)
      if (at < end) this.#appendRow(source, at, end)
    } catch (error) {
      throw toSluiceError(error).at({ row: this.nextRow })
    }
  }

  /**
   * Appends, at once, as many rows as it can of the whole CopyData messages from `at` on, `most` at most and none once the batch is full. Where it stops a
   * message may lie that only `append` takes, or says what is wrong with.
   *
   * @throws as `append` does
   */
  appendRows(chunk: Uint8Array, at: number, most: number): AppendedRows {
    const { rows, bytes } = this.#limits
    if (!this.#begun) return { end: at, rows: 0, payloadBytes: 0 }
    if (this.#staging === undefined) this.#staging = ColumnStaging.open(this.#columns)
    const staging = this.#staging
    if (staging === null) return { end: at, rows: 0, payloadBytes: 0 }
    const room = {
      rows: Math.min(most, rows - this.#rows),
      bytes: Math.min(bytes - this.#bytes, MOST_BYTES),
      rowBytes: this.#rowBytes,
    }
    const end = staging.walk(chunk, at, room)
    const taken = staging.rows
    if (taken === 0) return { end, rows: 0, payloadBytes: 0 }
    while (this.#capacity < this.#rows + taken) this.#grow()
    staging.hand(this.#sourceOf(chunk), this.nextRow)
    this.#rows += taken
    this.nextRow += taken
    this.#bytes += staging.nextBytes
    return { end, rows: taken, payloadBytes: staging.payloadBytes }
  }

  #sourceOf(chunk: Uint8Array): ByteSource {
    const source = this.#source
    if (source.bytes !== chunk) {
      source.bytes = chunk
      source.view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    }
    return source
  }

  #skipHeader({ bytes, view }: ByteSource, start: number, end: number): number {
    this.#begun = true
    const isWhole = end - start >= HEADER_BYTES && SIGNATURE.equals(bytes.subarray(start, start + SIGNATURE.length))
    if (!isWhole || (view.getUint32(start + 11) & CRITICAL_FLAGS) !== 0)
      throw malformed('it begins with no header that is known')
    return start + HEADER_BYTES + view.getUint32(start + 15)
  }

  #appendRow(source: ByteSource, start: number, end: number): void {
    const { view } = source
    const columns = this.#columns
    const fields = end - start < 2 ? NaN : view.getInt16(start)
    if (fields === END) {
      this.#ended = true
      return
    }
    if (fields !== columns.length) throw malformed(`${fields} fields came, ${columns.length} were asked for`)
    if (this.#rows === this.#capacity) this.#grow()
    let at = start + 2
    for (const column of columns) {
      if (end - at < 4) throw malformed('a row is cut')
      const size = view.getInt32(at)
      at += 4
      if (size === -1) column.appendNull()
      else {
        if (size < 0 || size > end - at) throw malformed('a field is longer than its row')
        column.append(source, at, size)
        at += size
      }
    }
    if (at !== end) throw malformed('bytes are left behind the last field')
    this.#rows += 1
    this.nextRow += 1
    this.#bytes += Math.max(end - start, this.#rowBytes)
  }

  #grow(): void {
    this.#capacity =
      this.#capacity === 0
        ? Math.min(this.#expectedRows, Math.max(this.#limits.rows, 1))
        : Math.max(this.#capacity + 1, Math.min(this.#capacity * 2, this.#limits.rows))
    for (const column of this.#columns) column.reserve(this.#capacity)
  }

  /** The batch so far, also one of no rows; the next begins. */
  take(): BuiltColumns {
    const specials = new Map(
      this.#columns.filter((column) => column.specials > 0).map((column) => [column.name, column.specials]),
    )
    const vectors = this.#columns.map((column) => column.take())
    const rows = this.#rows
    // The next is about as long: memory is asked for once.
    this.#expectedRows = Math.max(rows, FIRST_ROWS)
    this.#rows = this.#bytes = this.#capacity = 0
    return { vectors, rows, bufferBytes: vectors.reduce((sum, vector) => sum + bytesOf(vector), 0), specials }
  }
}

function bytesOf({ validity, offsets, values, items }: ColumnVector): number {
  const own = (validity?.byteLength ?? 0) + (offsets?.byteLength ?? 0) + values.byteLength
  return own + (items === null ? 0 : bytesOf(items))
}

function malformed(what: string): SluiceError {
  return new SluiceError('SLUICE_PROTOCOL', `binary COPY: ${what}`)
}
