import type { ColumnType, ColumnVector } from '../../core/batch.ts'
import { emptyVector } from './empty-vector.ts'

/** Bytes of one value; 0 where values are of no fixed width. */
const WIDTH: Readonly<Record<ColumnType['kind'], number>> = {
  bool: 0,
  int16: 2,
  int32: 4,
  int64: 8,
  float32: 4,
  float64: 8,
  utf8: 0,
  json: 0,
  binary: 0,
  uuid: 16,
  date: 4,
  time: 8,
  timestamp: 8,
  decimal: 16,
  list: 0,
}
const FIRST_VALUES = 1024

/** One column in the making: its memory doubles as it fills, and goes with the vector that is taken. */
export class VectorBuilder {
  readonly type: ColumnType
  /** Of a list's elements. */
  readonly items: VectorBuilder | null
  readonly #width: number
  #length = 0
  #nulls = 0
  #validity = new Uint8Array(0)
  #offsets = new Int32Array(0)
  #values = new Uint8Array(0)
  #view = new DataView(this.#values.buffer)
  #text = Buffer.from(this.#values.buffer)
  #end = 0

  constructor(type: ColumnType) {
    this.type = type
    this.items = type.kind === 'list' ? new VectorBuilder(type.item) : null
    this.#width = WIDTH[type.kind]
  }

  get length(): number {
    return this.#length
  }

  /** Bytes that its values take so far. */
  get bytes(): number {
    return this.#end + this.#length * 4 + (this.items?.bytes ?? 0)
  }

  addNull(): void {
    this.#room(this.#width)
    this.#values.fill(0, this.#end, this.#end + this.#width)
    this.#end += this.#width
    this.#nulls += 1
    this.#finish(false)
  }

  addBool(value: boolean): void {
    this.#room(0)
    const at = this.#length >> 3
    if (at >= this.#values.byteLength) this.#grow(at + 1)
    if (value) this.#values[at] = (this.#values[at] ?? 0) | (1 << (this.#length & 7))
    this.#finish(true)
  }

  /** An integer of the column's width: 2, 4, 8 or 16 bytes. */
  addInteger(value: bigint): void {
    this.#room(this.#width)
    if (this.#width === 2) this.#view.setInt16(this.#end, Number(value), true)
    else if (this.#width === 4) this.#view.setInt32(this.#end, Number(value), true)
    else this.#view.setBigInt64(this.#end, BigInt.asIntN(64, value), true)
    if (this.#width === 16) this.#view.setBigInt64(this.#end + 8, value >> 64n, true)
    this.#end += this.#width
    this.#finish(true)
  }

  addFloat(value: number): void {
    this.#room(this.#width)
    if (this.#width === 4) this.#view.setFloat32(this.#end, value, true)
    else this.#view.setFloat64(this.#end, value, true)
    this.#end += this.#width
    this.#finish(true)
  }

  addBytes(value: Uint8Array): void {
    this.#room(value.byteLength)
    this.#values.set(value, this.#end)
    this.#end += value.byteLength
    this.#finish(true)
  }

  addText(value: string): void {
    // UTF-8 takes three bytes a UTF-16 unit at most.
    this.#room(value.length * 3)
    this.#end += this.#text.write(value, this.#end)
    this.#finish(true)
  }

  /** Ends a list whose elements were added to `items`. */
  addList(): void {
    this.#room(0)
    this.#finish(true)
  }

  /** What was added, and begins anew. */
  take(): ColumnVector {
    const length = this.#length
    if (length === 0) return emptyVector(this.type)
    const used = this.type.kind === 'bool' ? (length + 7) >> 3 : this.#end
    const vector: ColumnVector = {
      type: this.type,
      length,
      nulls: this.#nulls,
      validity: this.#nulls === 0 ? null : this.#validity.subarray(0, (length + 7) >> 3),
      offsets: this.#hasOffsets ? this.#offsets.subarray(0, length + 1) : null,
      values: this.#values.subarray(0, used),
      items: this.items?.take() ?? null,
    }
    this.#length = 0
    this.#nulls = 0
    this.#end = 0
    this.#validity = new Uint8Array(0)
    this.#offsets = new Int32Array(0)
    this.#values = new Uint8Array(0)
    this.#view = new DataView(this.#values.buffer)
    this.#text = Buffer.from(this.#values.buffer)
    return vector
  }

  get #hasOffsets(): boolean {
    const { kind } = this.type
    return kind === 'utf8' || kind === 'json' || kind === 'binary' || kind === 'list'
  }

  #finish(present: boolean): void {
    const at = this.#length
    if (present) this.#validity[at >> 3] = (this.#validity[at >> 3] ?? 0) | (1 << (at & 7))
    this.#length += 1
    if (this.#hasOffsets) this.#offsets[this.#length] = this.items?.length ?? this.#end
  }

  #room(bytes: number): void {
    if (this.#length + 1 >= this.#offsets.length && this.#hasOffsets)
      this.#offsets = grown(this.#offsets, new Int32Array(Math.max(FIRST_VALUES, this.#offsets.length * 2)))
    if (this.#length >= this.#validity.length * 8)
      this.#validity = grown(this.#validity, new Uint8Array(Math.max(FIRST_VALUES / 8, this.#validity.length * 2)))
    if (this.#end + bytes > this.#values.byteLength) this.#grow(this.#end + bytes)
    else if (this.type.kind === 'bool' && this.#length >> 3 >= this.#values.byteLength)
      this.#grow((this.#length >> 3) + 1)
  }

  #grow(least: number): void {
    const bytes = Math.max(least + 16, this.#values.byteLength * 2, FIRST_VALUES)
    this.#values = grown(this.#values, new Uint8Array(Math.ceil(bytes / 16) * 16))
    this.#view = new DataView(this.#values.buffer)
    this.#text = Buffer.from(this.#values.buffer)
  }
}

function grown<T extends Uint8Array | Int32Array>(from: T, to: T): T {
  to.set(from)
  return to
}
