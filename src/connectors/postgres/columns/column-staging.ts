import { toSluiceError } from '../../../core/errors.ts'
import { kernels } from '../../../core/wasm-kernel.ts'
import { COLUMN_KERNEL } from './column-kernel.ts'
import type { ColumnBuffer } from './column-buffer.ts'
import type { ByteSource, StagedColumn, StagedSource } from './column-memory.ts'

/** Messages that the kernel is given at once: as many as one read of a socket gives. */
const INPUT_BYTES = 64 * 1024
/** Where the kernel's memory holds what (column-kernel.wat). */
const [COLUMNS_AT, NULLS_AT, AREAS_AT] = [66_560, 93_184, 158_720]
/** A query gives no more (MaxTupleAttributeNumber). */
const MOST_COLUMNS = 1664
const PAGE_BYTES = 64 * 1024
/** Memory for values of fixed width, of all columns, and for texts. */
const [FIXED_BYTES, TEXT_BYTES] = [512 * 1024, 1024 * 1024]
/** Rows that are staged at once; bounded by FIXED_BYTES, too. */
const [LEAST_ROWS, MOST_ROWS] = [16, 4096]
/** A text that is longer than its column's share goes another way. */
const LEAST_TEXT_BYTES = 512
/** Steps of the kernel are 16 bytes wide. */
const SLACK_BYTES = 16
/** The kernel's way for values that JavaScript takes from where they lie. */
const PLACE = 9
const ENTRY_BYTES = 16

/** What column-kernel.wat exports; a unit test holds the two together. */
interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number }
  walk(at: number, end: number, columns: number, most: number, budget: number, least: number): number
  rows(): number
  nulls(): number
  bytes(): number
}

const newKernel = kernels<Kernel>(COLUMN_KERNEL)

interface Room {
  /** Rows that may be taken, and bytes after which no more are. */
  readonly rows: number
  readonly bytes: number
  /** Bytes that a row counts as at least. */
  readonly rowBytes: number
}

/**
 * Takes rows of binary COPY apart by WebAssembly (a row of an integer, a text and an integer costs some 15 ns, a tenth of what JavaScript takes) and hands them
 * to columns some thousand at a time. What it does not take, special values or whatever is wrong, is left to who calls it. Memory: 0.7 MiB to 2 MiB.
 */
export class ColumnStaging {
  readonly #kernel = newKernel()
  readonly #columns: readonly ColumnBuffer[]
  readonly #rows: number
  readonly #bytes: Uint8Array
  readonly #words: Int32Array
  readonly #staged: readonly StagedColumn[]
  #loaded: Uint8Array | null = null
  /** The part of it that the kernel has. */
  #from = 0
  #to = 0
  /** Of the last walk. */
  rows = 0
  payloadBytes = 0
  nextBytes = 0

  private constructor(columns: readonly ColumnBuffer[]) {
    this.#columns = columns
    const width = columns.reduce((sum, column) => sum + stagedWidth(column), 0)
    this.#rows = Math.min(MOST_ROWS, Math.max(LEAST_ROWS, Math.floor(FIXED_BYTES / width)))
    const texts = columns.filter((column) => column.isText).length
    const textBytes = Math.min(
      INPUT_BYTES,
      Math.max(LEAST_TEXT_BYTES, 16 * Math.floor(TEXT_BYTES / 16 / Math.max(1, texts))),
    )
    let at = AREAS_AT
    const take = (bytes: number): number => {
      const begin = at
      at += 16 * Math.ceil((bytes + SLACK_BYTES) / 16)
      return begin
    }
    const places = columns.map((column) => ({
      valuesAt: take(column.isText ? textBytes : this.#rows * stagedWidth(column)),
      offsetsAt: column.isText ? take((this.#rows + 1) * 4) : 0,
    }))
    const { memory } = this.#kernel
    memory.grow(Math.ceil(at / PAGE_BYTES) - 1)
    const [bytes, words] = [new Uint8Array(memory.buffer), new Int32Array(memory.buffer)]
    this.#bytes = bytes
    this.#words = words
    this.#staged = places.map(({ valuesAt, offsetsAt }) => ({ bytes, words, valuesAt, offsetsAt }))
    for (const [i, column] of columns.entries()) {
      const { valuesAt = 0, offsetsAt = 0 } = places[i] ?? {}
      const size = column.isText ? textBytes : stagedWidth(column)
      words.set([Math.min(column.op, PLACE), valuesAt, offsetsAt, size], (COLUMNS_AT + i * ENTRY_BYTES) / 4)
    }
  }

  /** Null where there are no columns, or more than any server sends. */
  static open(columns: readonly ColumnBuffer[]): ColumnStaging | null {
    return columns.length === 0 || columns.length > MOST_COLUMNS ? null : new ColumnStaging(columns)
  }

  /**
   * Stages rows from whole messages, from `at` on. Gives where the first message begins that was not taken; `rows` says how many are staged and wait for
   * `hand`, `payloadBytes` and `nextBytes` what they count as.
   */
  walk(bytes: Uint8Array, at: number, room: Room): number {
    if (bytes !== this.#loaded || at < this.#from || at >= this.#to) this.#load(bytes, at)
    let end = this.#run(at, room)
    if (this.rows === 0 && this.#to < bytes.length && at > this.#from) {
      this.#load(bytes, at)
      end = this.#run(at, room)
    }
    this.payloadBytes = end - at - 5 * this.rows
    return end
  }

  /** Hands the staged rows, the first of which is number `first`, to the columns, which have room for them. @throws what a column objects to, with the row */
  hand(source: ByteSource, first: number): void {
    const { rows } = this
    const nulls = this.#kernel.nulls()
    const origin: StagedSource = { source, from: this.#from }
    for (const [i, staged] of this.#staged.entries()) {
      const column = this.#columns[i]
      if (column === undefined) continue
      const before = column.length
      try {
        column.appendStaged(staged, rows, origin)
      } catch (error) {
        throw toSluiceError(error).at({ row: first + column.length - before })
      }
    }
    const base = NULLS_AT / 4
    for (let i = base; i < base + nulls; i += 1) {
      const entry = this.#words[i] ?? 0
      this.#columns[entry >>> 16]?.markMissing((entry & 0xffff) - rows)
    }
  }

  #load(bytes: Uint8Array, at: number): void {
    this.#loaded = bytes
    this.#from = at
    this.#to = Math.min(bytes.length, at + INPUT_BYTES)
    this.#bytes.set(bytes.subarray(at, this.#to))
  }

  #run(at: number, { rows, bytes, rowBytes }: Room): number {
    const most = Math.min(rows, this.#rows)
    const kernel = this.#kernel
    const columns = this.#columns.length
    const end = kernel.walk(at - this.#from, this.#to - this.#from, columns, most, bytes, rowBytes)
    this.rows = kernel.rows()
    this.nextBytes = kernel.bytes()
    return end + this.#from
  }
}

/** Bytes of a staged value; of a text its end. */
function stagedWidth(column: ColumnBuffer): number {
  if (column.isText) return 4
  return column.op >= PLACE ? 8 : Math.max(1, column.width)
}
