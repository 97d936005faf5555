import type { ColumnType, ColumnVector } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'
import { DecimalReader, numericBytes, numericText } from './binary-numeric.ts'
import { bitmapBytes, grown, trimmed, trimmedOffsets, validityOf } from './column-memory.ts'
import type { ByteSource, StagedColumn, StagedSource } from './column-memory.ts'
import { EPOCH_DAYS, FIRST_DATE, LAST_DATE, dateText, timestampText } from '../unload/special-values.ts'

interface BufferOptions {
  readonly name: string
  readonly onSpecial: 'error' | 'null'
}

/** What `append` does with a value. Small integers, for its switch to be a jump. */
const [BOOL, TWO, FOUR, EIGHT, UUID, BYTES, DATE, TIME, TIMESTAMP, DECIMAL, LIST] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
] as const

/** For each kind: the case of `append`, and bits of a value in `values` (0: none of its own). */
const FORMS: Readonly<Record<ColumnType['kind'], readonly [op: number, bits: number]>> = {
  bool: [BOOL, 1],
  int16: [TWO, 16],
  int32: [FOUR, 32],
  float32: [FOUR, 32],
  int64: [EIGHT, 64],
  float64: [EIGHT, 64],
  uuid: [UUID, 128],
  utf8: [BYTES, 0],
  json: [BYTES, 0],
  binary: [BYTES, 0],
  date: [DATE, 32],
  time: [TIME, 64],
  timestamp: [TIMESTAMP, 64],
  decimal: [DECIMAL, 128],
  list: [LIST, 0],
}

const TWO_32 = 4_294_967_296
const DAY_MICROS = 86_400_000_000
/** 946,684,800 s from 1970 to 2000, in microseconds and 32-bit halves. */
const EPOCH_MICROS = 946_684_800_000_000
const [EPOCH_HIGH, EPOCH_LOW] = [Math.floor(EPOCH_MICROS / TWO_32), EPOCH_MICROS % TWO_32]
/** Bounds of timestamps in microseconds since 2000, and the high halves that lie surely between them. */
const [FIRST_TIMESTAMP, END_TIMESTAMP] = [BigInt(FIRST_DATE) * 86_400_000_000n, BigInt(LAST_DATE + 1) * 86_400_000_000n]
const [FIRST_HIGH, LAST_HIGH] = [Number(FIRST_TIMESTAMP >> 32n) + 1, Number(END_TIMESTAMP >> 32n) - 1]
/** Up to this length a loop copies text faster than a call does (measured). */
const SHORT_BYTES = 64
/** An array's head: dimensions, a flag, the element's type, one length and lower bound, four bytes each (arrayfuncs.c, array_send). */
const [ARRAY_HEAD_BYTES, ARRAY_BOUND, ARRAY_FIRST] = [12, 16, 20]
/** Values and bytes that a column of unknown size has room for at first. */
const [LEAST_VALUES, LEAST_BYTES] = [64, 512]
const NO_BYTES = new Uint8Array(0)
const NO_WORDS = new Int32Array(0)
const NO_VIEW = new DataView(NO_BYTES.buffer)

/** One column of a batch in the making, in Arrow's layout: values of COPY's binary format are appended one by one. */
export class ColumnBuffer {
  readonly type: ColumnType
  readonly name: string
  readonly #op: number
  readonly #bits: number
  readonly #onSpecial: 'error' | 'null'
  readonly #decimal: DecimalReader | null
  readonly items: ColumnBuffer | null
  #length = 0
  #nulls = 0
  #specials = 0
  /** Values that there is room for. */
  #capacity = 0
  #values = NO_BYTES
  /** The same memory, where values are of 32 bits or more. */
  #words = NO_WORDS
  /** The same, where values are texts. */
  #into = NO_VIEW
  /** Bytes of `values` that texts take. */
  #used = 0
  #offsets = NO_WORDS
  /** A bit for each value that is missing; made at the first. */
  #missing: Uint8Array | null = null
  #expectedBytes = LEAST_BYTES

  constructor(type: ColumnType, o: BufferOptions) {
    this.type = type
    this.name = o.name
    this.#onSpecial = o.onSpecial
    const [op, bits] = FORMS[type.kind]
    this.#op = op
    this.#bits = bits
    this.#decimal = type.kind === 'decimal' ? new DecimalReader(type) : null
    this.items = type.kind === 'list' ? new ColumnBuffer(type.item, o) : null
  }

  get length(): number {
    return this.#length
  }

  /** The case of `append`, which the kernel knows too. */
  get op(): number {
    return this.#op
  }

  /** Whether values are bytes of any length. */
  get isText(): boolean {
    return this.#op === BYTES
  }

  /** Special values that became NULL, in lists too. */
  get specials(): number {
    return this.#specials + (this.items?.specials ?? 0)
  }

  /** Bytes that a value takes at least. */
  get width(): number {
    return this.#bits === 0 ? 4 : this.#bits / 8
  }

  /** Makes room for so many values in all. What is there stays. */
  reserve(capacity: number): void {
    if (capacity <= this.#capacity) return
    this.#capacity = capacity
    if (this.#bits > 0) {
      const bytes = new Uint8Array(Math.ceil((capacity * this.#bits) / 64) * 8)
      bytes.set(this.#values)
      this.#values = bytes
      if (this.#bits >= 32) this.#words = new Int32Array(bytes.buffer)
    } else {
      const offsets = new Int32Array(capacity + 1)
      offsets.set(this.#offsets)
      this.#offsets = offsets
      if (this.#op === BYTES && this.#values.length === 0) this.#holdBytes(this.#expectedBytes)
    }
    if (this.#missing !== null) this.#missing = grown(this.#missing, bitmapBytes(capacity))
  }

  /** Room was reserved. */
  appendNull(): void {
    const at = this.#length
    this.#missing ??= new Uint8Array(bitmapBytes(this.#capacity))
    this.#missing[at >>> 3] = (this.#missing[at >>> 3] ?? 0) | (1 << (at & 7))
    this.#nulls += 1
    this.#length = at + 1
    if (this.#op === BYTES) this.#offsets[at + 1] = this.#used
    else if (this.#op === LIST) this.#offsets[at + 1] = this.items?.length ?? 0
  }

  /**
   * A value of `size` bytes at this offset, all of which are there. Room was reserved.
   *
   * @throws SLUICE_VALUE with the column; SLUICE_PROTOCOL where the size is not the type's
   */
  append(source: ByteSource, at: number, size: number): void {
    const { view } = source
    const index = this.#length
    switch (this.#op) {
      case FOUR:
        if (size !== 4) throw this.#wrongSize(size)
        this.#words[index] = view.getInt32(at)
        break
      case BYTES:
        this.#appendBytes(source, at, size)
        return
      case EIGHT:
        if (size !== 8) throw this.#wrongSize(size)
        this.#words[2 * index] = view.getInt32(at + 4)
        this.#words[2 * index + 1] = view.getInt32(at)
        break
      case TWO:
        if (size !== 2) throw this.#wrongSize(size)
        this.#values[2 * index] = view.getUint8(at + 1)
        this.#values[2 * index + 1] = view.getUint8(at)
        break
      case BOOL:
        if (size !== 1) throw this.#wrongSize(size)
        if (view.getUint8(at) !== 0) this.#values[index >>> 3] = (this.#values[index >>> 3] ?? 0) | (1 << (index & 7))
        break
      case UUID:
        if (size !== 16) throw this.#wrongSize(size)
        for (let i = 0; i < 4; i += 1) this.#words[4 * index + i] = view.getInt32(at + 4 * i, true)
        break
      case DATE:
        return this.#appendDate(view, at, size)
      case TIME:
        return this.#appendTime(view, at, size)
      case TIMESTAMP:
        return this.#appendTimestamp(view, at, size)
      case DECIMAL:
        return this.#appendDecimal(view, at, size)
      default:
        return this.#appendList(source, at, size)
    }
    this.#length = index + 1
  }

  /** Values that the kernel took apart; those that are missing are marked afterwards. Room was reserved. @throws as `append` does */
  appendStaged(staged: StagedColumn, rows: number, origin: StagedSource): void {
    const at = this.#length
    const { bytes, valuesAt } = staged
    if (this.#op >= DECIMAL) return this.#appendPlaces(staged, rows, origin)
    if (this.#op === BYTES) this.#appendTexts(staged, rows)
    else if (this.#op === BOOL) {
      for (let i = 0; i < rows; i += 1)
        if (bytes[valuesAt + i] !== 0)
          this.#values[(at + i) >>> 3] = (this.#values[(at + i) >>> 3] ?? 0) | (1 << ((at + i) & 7))
    } else {
      const width = this.#bits / 8
      this.#values.set(bytes.subarray(valuesAt, valuesAt + rows * width), at * width)
    }
    this.#length = at + rows
  }

  /** Says of a value that was appended that it is none. `from`: its place from the end, below 0. */
  markMissing(from: number): void {
    if (this.#op >= DECIMAL) return
    const at = this.#length + from
    this.#missing ??= new Uint8Array(bitmapBytes(this.#capacity))
    this.#missing[at >>> 3] = (this.#missing[at >>> 3] ?? 0) | (1 << (at & 7))
    this.#nulls += 1
  }

  #appendTexts({ bytes, words, valuesAt, offsetsAt }: StagedColumn, rows: number): void {
    const from = this.#used
    const [first, offsets, at] = [offsetsAt / 4, this.#offsets, this.#length]
    const size = words[first + rows] ?? 0
    if (from + size > this.#values.length) this.#holdBytes(Math.max(from + size, this.#values.length * 2))
    this.#values.set(bytes.subarray(valuesAt, valuesAt + size), from)
    for (let i = 1; i <= rows; i += 1) offsets[at + i] = from + (words[first + i] ?? 0)
    this.#used = from + size
  }

  /** Values that are taken from where they lie; at 0 there is none. */
  #appendPlaces({ words, valuesAt }: StagedColumn, rows: number, { source, from: begin }: StagedSource): void {
    const first = valuesAt / 4
    for (let i = 0; i < rows; i += 1) {
      const from = words[first + 2 * i] ?? 0
      if (from === 0) this.appendNull()
      else this.append(source, begin + from, words[first + 2 * i + 1] ?? 0)
    }
  }

  /** Words of four bytes, of which the last overlaps. */
  #appendBytes({ bytes, view }: ByteSource, at: number, size: number): void {
    const from = this.#used
    const end = from + size
    if (end > this.#values.length) this.#holdBytes(Math.max(end, this.#values.length * 2))
    if (size > SHORT_BYTES) this.#values.set(bytes.subarray(at, at + size), from)
    else if (size >= 4) {
      const into = this.#into
      const last = size - 4
      for (let i = 0; i < last; i += 4) into.setInt32(from + i, view.getInt32(at + i))
      into.setInt32(from + last, view.getInt32(at + last))
    } else for (let i = 0; i < size; i += 1) this.#into.setUint8(from + i, view.getUint8(at + i))
    this.#used = end
    this.#length += 1
    this.#offsets[this.#length] = end
  }

  #holdBytes(size: number): void {
    this.#values = grown(this.#values, size)
    this.#into = new DataView(this.#values.buffer)
  }

  #appendDate(view: DataView, at: number, size: number): void {
    if (size !== 4) throw this.#wrongSize(size)
    const days = view.getInt32(at)
    if (days < FIRST_DATE || days > LAST_DATE) return this.#special(dateText(days))
    this.#words[this.#length] = days + EPOCH_DAYS
    this.#length += 1
  }

  #appendTime(view: DataView, at: number, size: number): void {
    if (size !== 8) throw this.#wrongSize(size)
    const [high, low] = [view.getInt32(at), view.getInt32(at + 4)]
    if (high * TWO_32 + (low >>> 0) >= DAY_MICROS) return this.#special('24:00:00')
    this.#words[2 * this.#length] = low
    this.#words[2 * this.#length + 1] = high
    this.#length += 1
  }

  #appendTimestamp(view: DataView, at: number, size: number): void {
    if (size !== 8) throw this.#wrongSize(size)
    const high = view.getInt32(at)
    const low = view.getUint32(at + 4)
    if ((high < FIRST_HIGH || high > LAST_HIGH) && isOutside(view.getBigInt64(at)))
      return this.#special(timestampText(high, low))
    const sum = low + EPOCH_LOW
    this.#words[2 * this.#length] = sum | 0
    this.#words[2 * this.#length + 1] = high + EPOCH_HIGH + (sum >= TWO_32 ? 1 : 0)
    this.#length += 1
  }

  #appendDecimal(view: DataView, at: number, size: number): void {
    const decimal = this.#decimal
    if (decimal === null || size < 8 || size !== numericBytes(view, at)) throw this.#wrongSize(size)
    if (!decimal.read(view, at)) return this.#special(numericText(view, at))
    const first = 4 * this.#length
    const words = this.#words
    words[first] = decimal.w0
    words[first + 1] = decimal.w1
    words[first + 2] = decimal.w2
    words[first + 3] = decimal.w3
    this.#length += 1
  }

  #appendList(source: ByteSource, at: number, size: number): void {
    const { items } = this
    const { view } = source
    if (items === null || size < ARRAY_HEAD_BYTES) throw this.#wrongSize(size)
    const dimensions = view.getInt32(at)
    if (dimensions > 1) return this.#special(`an array of ${dimensions} dimensions`)
    if (dimensions === 1 && size >= ARRAY_FIRST && view.getInt32(at + ARRAY_BOUND) !== 1)
      return this.#special(`an array whose first index is ${view.getInt32(at + ARRAY_BOUND)}`)
    const end = at + size
    let next = at + (dimensions === 0 ? ARRAY_HEAD_BYTES : ARRAY_FIRST)
    const count = dimensions === 0 || size < ARRAY_FIRST ? 0 : view.getInt32(at + ARRAY_HEAD_BYTES)
    if (count < 0 || count * 4 > end - next) throw this.#wrongSize(size)
    const total = items.length + count
    if (total > items.#capacity) items.reserve(Math.max(total, 2 * items.#capacity, LEAST_VALUES))
    for (let i = 0; i < count; i += 1) {
      const length = next + 4 > end ? -2 : view.getInt32(next)
      next += 4
      if (length === -1) items.appendNull()
      else {
        if (length < 0 || length > end - next) throw this.#wrongSize(size)
        items.append(source, next, length)
        next += length
      }
    }
    if (next !== end) throw this.#wrongSize(size)
    this.#length += 1
    this.#offsets[this.#length] = items.length
  }

  #special(text: string): void {
    if (this.#onSpecial === 'error')
      throw new SluiceError('SLUICE_VALUE', `${text} is no ${formOf(this.type)}`, {
        where: { column: this.name },
        hint:
          this.type.kind === 'decimal'
            ? 'set --on-special null or text, or --numeric to a decimal type that holds it'
            : 'set --on-special null or text',
      })
    this.#specials += 1
    this.appendNull()
  }

  #wrongSize(size: number): SluiceError {
    return new SluiceError('SLUICE_PROTOCOL', `a value of ${size} bytes is no ${formOf(this.type)}`, {
      where: { column: this.name },
    })
  }

  /** The column so far; its memory is the caller's, and the next column begins. */
  take(): ColumnVector {
    const length = this.#length
    const hasOffsets = this.#bits === 0
    const bytes = hasOffsets ? this.#used : Math.ceil((length * this.#bits) / 8)
    const vector: ColumnVector = {
      type: this.type,
      length,
      nulls: this.#nulls,
      validity: this.#missing === null ? null : validityOf(this.#missing, length),
      offsets: hasOffsets ? trimmedOffsets(this.#offsets, length) : null,
      values: trimmed(this.#values, bytes),
      items: this.items?.take() ?? null,
    }
    // The next is about as long; an eighth more, for it to grow seldom.
    this.#expectedBytes = Math.max(LEAST_BYTES, Math.ceil((bytes * 9) / 64) * 8)
    this.#length = this.#nulls = this.#specials = this.#used = this.#capacity = 0
    this.#values = NO_BYTES
    this.#words = this.#offsets = NO_WORDS
    this.#into = NO_VIEW
    this.#missing = null
    return vector
  }
}

function isOutside(micros: bigint): boolean {
  return micros < FIRST_TIMESTAMP || micros >= END_TIMESTAMP
}

/** `decimal(10,2)`, `timestamp of the years 1 to 9999`, `list`: what a value is said not to be. */
function formOf(type: ColumnType): string {
  if (type.kind === 'decimal') return `decimal(${type.precision},${type.scale})`
  if (type.kind === 'date' || type.kind === 'timestamp') return `${type.kind} of the years 1 to 9999`
  return type.kind === 'time' ? 'time before midnight' : type.kind
}
