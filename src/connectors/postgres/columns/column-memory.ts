/** Bytes that came, and the same for reading numbers. One object for all chunks: the engine sees one shape. */
export interface ByteSource {
  bytes: Uint8Array
  view: DataView
}

/** Values of one column for some rows, in the kernel's memory. */
export interface StagedColumn {
  readonly bytes: Uint8Array
  readonly words: Int32Array
  /** Where values begin; for texts, where offsets begin too: one more than rows. Bytes from the memory's begin. */
  readonly valuesAt: number
  readonly offsetsAt: number
}

/** Where values lie that were not taken apart: in the messages, which the kernel had from `from` on. */
export interface StagedSource {
  readonly source: ByteSource
  readonly from: number
}

/** In whole 64-bit words, as Arrow pads buffers. */
export function bitmapBytes(values: number): number {
  return Math.ceil(values / 64) * 8
}

export function grown(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(size)
  larger.set(bytes)
  return larger
}

/** Without the room that is left where that is more than a quarter: it would travel, and be held, with the values. */
export function trimmed(bytes: Uint8Array<ArrayBuffer>, used: number): Uint8Array {
  return used * 4 < bytes.length * 3 ? bytes.slice(0, used) : bytes.subarray(0, used)
}

export function trimmedOffsets(offsets: Int32Array<ArrayBuffer>, length: number): Int32Array {
  if (offsets.length <= length) return new Int32Array(length + 1)
  return (length + 1) * 4 < offsets.length * 3 ? offsets.slice(0, length + 1) : offsets.subarray(0, length + 1)
}

/** Turns the bits of what is missing into those of what is there, in place; behind the last value they are 0. */
export function validityOf(missing: Uint8Array, length: number): Uint8Array {
  const bytes = missing.subarray(0, Math.ceil(length / 8))
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = ~(bytes[i] ?? 0)
  const rest = length & 7
  if (rest > 0) bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) & ((1 << rest) - 1)
  return bytes
}
