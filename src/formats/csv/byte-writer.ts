/** Bytes that grow: twice the memory where it does not suffice, so that each byte is copied twice at most. */
export class ByteWriter {
  #bytes: Buffer
  #length = 0

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(64, capacity))
  }

  get length(): number {
    return this.#length
  }

  byte(value: number): void {
    if (this.#length >= this.#bytes.byteLength) this.#room(1)
    this.#bytes[this.#length] = value
    this.#length += 1
  }

  /** `[start, end)` of other bytes. */
  copy(from: Uint8Array, start: number, end: number): void {
    const length = end - start
    if (this.#length + length > this.#bytes.byteLength) this.#room(length)
    // A call costs more than a few bytes do.
    if (length < 24)
      for (let i = start, at = this.#length; i < end; i += 1, at += 1) this.#bytes[at] = from[i] as number
    else this.#bytes.set(from.subarray(start, end), this.#length)
    this.#length += length
  }

  /** Text in UTF-8. */
  text(value: string): void {
    // A UTF-16 unit is 3 bytes at most.
    if (this.#length + value.length * 3 > this.#bytes.byteLength) this.#room(value.length * 3)
    this.#length += this.#bytes.write(value, this.#length, 'utf8')
  }

  /** What was written: a view, of the writer's own memory. */
  take(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #room(more: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(this.#bytes.byteLength * 2, this.#length + more))
    bytes.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = bytes
  }
}
