/**
 * Thrift's compact protocol as Parquet's footers use it, read and written without loss: each field keeps its type and its bytes, also those that
 * this program knows nothing of. hyparquet's and hyparquet-writer's codec forgets 8- and 16-bit integers (which the logical types have) and the
 * element type of empty lists (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
 */
export const TYPE = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  struct: 12,
}

/** Structs and lists in one another: Parquet's own go 6 deep. */
const DEEPEST = 64

export type ThriftValue = boolean | number | bigint | Uint8Array | ThriftList | ThriftStruct

export interface ThriftList {
  /** Type of the elements. Bytes in a list of structs are structs that are written already. */
  readonly of: number
  readonly items: readonly ThriftValue[]
}

interface ThriftField {
  readonly type: number
  readonly value: ThriftValue
}

/** A struct whose fields keep their types. Integers up to 32 bits are numbers, 64 bits bigints, `double` its 8 bytes. */
export class ThriftStruct {
  readonly #fields = new Map<number, ThriftField>()

  get(id: number): ThriftValue | undefined {
    return this.#fields.get(id)?.value
  }

  /** A field of a struct that it may lack; undefined where it is no struct. */
  struct(id: number): ThriftStruct | undefined {
    const value = this.get(id)
    return value instanceof ThriftStruct ? value : undefined
  }

  /** A list's structs; none where it is missing. */
  structs(id: number): readonly ThriftStruct[] {
    return this.list(id).filter((item) => item instanceof ThriftStruct)
  }

  list(id: number): readonly ThriftValue[] {
    const value = this.get(id)
    return typeof value === 'object' && 'items' in value ? value.items : []
  }

  /** An integer of any width that a double holds exactly. */
  integer(id: number): number | undefined {
    const value = this.get(id)
    return typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : undefined
  }

  bytes(id: number): Uint8Array | undefined {
    const value = this.get(id)
    return value instanceof Uint8Array ? value : undefined
  }

  text(id: number): string | undefined {
    const value = this.bytes(id)
    return value === undefined ? undefined : Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString()
  }

  set(id: number, type: number, value: ThriftValue): this {
    this.#fields.set(id, { type, value })
    return this
  }

  delete(id: number): this {
    this.#fields.delete(id)
    return this
  }

  /** Ascending by id. */
  entries(): readonly (readonly [number, ThriftField])[] {
    return [...this.#fields].sort(([a], [b]) => a - b)
  }
}

/** One struct of fields, short: `struct([1, TYPE.i32, 4], …)`. */
export function thriftStruct(...fields: readonly (readonly [number, number, ThriftValue])[]): ThriftStruct {
  const made = new ThriftStruct()
  for (const [id, type, value] of fields) made.set(id, type, value)
  return made
}

/** Reads one struct from the beginning of the bytes. @throws RangeError where they end too soon or are no thrift */
export function readThrift(bytes: Uint8Array): ThriftStruct {
  return new ThriftReader(bytes).struct(0)
}

/** One struct that begins at an offset, and where it ends. @throws RangeError as `readThrift` does */
export function readThriftAt(
  bytes: Uint8Array,
  offset: number,
): { readonly value: ThriftStruct; readonly end: number } {
  const reader = new ThriftReader(bytes, offset)
  const value = reader.struct(0)
  return { value, end: reader.at }
}

class ThriftReader {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Uint8Array, offset = 0) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = offset
  }

  get at(): number {
    return this.#at
  }

  struct(depth: number): ThriftStruct {
    if (depth > DEEPEST) throw new RangeError('thrift nested too deeply')
    const made = new ThriftStruct()
    let id = 0
    for (;;) {
      const head = this.#byte()
      const type = head & 15
      if (type === 0) return made
      id = head >> 4 === 0 ? this.#zigzag32() : id + (head >> 4)
      made.set(id, type, type === TYPE.true || type === TYPE.false ? type === TYPE.true : this.#value(type, depth))
    }
  }

  #value(type: number, depth: number): ThriftValue {
    switch (type) {
      case TYPE.true:
      case TYPE.false:
        return this.#byte() === 1
      case TYPE.byte:
        return (this.#byte() << 24) >> 24
      case TYPE.i16:
      case TYPE.i32:
        return this.#zigzag32()
      case TYPE.i64: {
        const value = this.#varint()
        return (value >> 1n) ^ -(value & 1n)
      }
      case TYPE.double:
        return this.#take(8)
      case TYPE.binary:
        return this.#take(Number(this.#varint()))
      case TYPE.list:
      case TYPE.set:
        return this.#list(depth)
      case TYPE.struct:
        return this.struct(depth + 1)
      default:
        throw new RangeError(`thrift type ${type}, which Parquet does not use`)
    }
  }

  #list(depth: number): ThriftList {
    const head = this.#byte()
    const of = head & 15
    const length = head >> 4 === 15 ? Number(this.#varint()) : head >> 4
    // Each element takes a byte at least: a length that is not there is told before memory is taken for it.
    if (length > this.#bytes.length - this.#at) throw new RangeError('a thrift list longer than the footer')
    const items: ThriftValue[] = []
    for (let i = 0; i < length; i += 1) items.push(this.#value(of, depth + 1))
    return { of, items }
  }

  #byte(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) throw new RangeError('thrift ends in mid-value')
    this.#at += 1
    return byte
  }

  #take(length: number): Uint8Array {
    if (length > this.#bytes.length - this.#at) throw new RangeError('thrift bytes longer than the footer')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  #zigzag32(): number {
    const value = Number(this.#varint() & 0xffffffffn)
    return (value >>> 1) ^ -(value & 1)
  }

  #varint(): bigint {
    // Four bytes fit a number's 31 bits: most values end here.
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte()
      low |= (byte & 127) << shift
      if (byte < 128) return BigInt(low)
    }
    let value = BigInt(low)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
    throw new RangeError('a thrift integer longer than 64 bits')
  }
}

/** The bytes of a struct. What `readThrift` read, unchanged, comes out byte by byte as other writers of the compact protocol have it. */
export function writeThrift(value: ThriftStruct): Uint8Array {
  const out = new ThriftWriter()
  out.struct(value)
  return out.take()
}

class ThriftWriter {
  #bytes = Buffer.allocUnsafe(256)
  #at = 0

  take(): Uint8Array {
    return this.#bytes.subarray(0, this.#at)
  }

  struct(value: ThriftStruct): void {
    let last = 0
    for (const [id, field] of value.entries()) {
      const type = typeof field.value === 'boolean' ? (field.value ? TYPE.true : TYPE.false) : field.type
      const delta = id - last
      last = id
      if (delta > 0 && delta < 16) this.#byte((delta << 4) | type)
      else {
        this.#byte(type)
        this.#zigzag(BigInt(id))
      }
      if (typeof field.value !== 'boolean') this.#value(type, field.value)
    }
    this.#byte(0)
  }

  #listHeader(of: number, length: number): void {
    this.#byte((Math.min(length, 15) << 4) | of)
    if (length >= 15) this.#varint(BigInt(length))
  }

  #value(type: number, value: ThriftValue): void {
    if (value instanceof ThriftStruct) this.struct(value)
    else if (value instanceof Uint8Array) {
      if (type === TYPE.binary) this.#varint(BigInt(value.byteLength))
      this.#append(value)
    } else if (typeof value === 'object') {
      this.#listHeader(value.of, value.items.length)
      for (const item of value.items) this.#value(value.of, item)
    } else if (typeof value === 'boolean') this.#byte(value ? 1 : 2)
    else if (type === TYPE.byte) this.#byte(Number(value) & 255)
    else this.#zigzag(BigInt(value))
  }

  #zigzag(value: bigint): void {
    this.#varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)))
  }

  #varint(value: bigint): void {
    let rest = value
    for (; rest > 127n; rest >>= 7n) this.#byte(Number(rest & 127n) | 128)
    this.#byte(Number(rest))
  }

  #byte(value: number): void {
    this.#room(1)
    this.#bytes[this.#at] = value
    this.#at += 1
  }

  #append(bytes: Uint8Array): void {
    this.#room(bytes.byteLength)
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.byteLength
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const more = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + bytes))
    more.set(this.#bytes.subarray(0, this.#at))
    this.#bytes = more
  }
}
