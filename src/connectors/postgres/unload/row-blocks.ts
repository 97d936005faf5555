import { crc32 } from 'node:zlib'
import { SluiceError } from '../../../core/errors.ts'
import { kernels } from '../../../core/wasm-kernel.ts'
import type { CopyConsumer } from './copy-out.ts'
import { ROW_KERNEL } from './row-kernel.ts'

/** Rows as COPY writes them in its text and CSV formats, each ended by LF. The bytes are the receiver's. */
export interface RowBlock {
  readonly bytes: Uint8Array
  readonly rows: number
  /** CRC-32 of all payloads up to its end, those passed over included; where the range asks for it. */
  readonly hash?: number | undefined
}

export interface RowRange {
  /** Rows that are passed over first. */
  readonly skip: number
  /** Rows that are given then; Infinity: all. */
  readonly limit: number
  /** Blocks carry hashes; with a number: that of the rows to be passed over must be this. */
  readonly hash?: number | null | undefined
  /** Where a block is given sooner than at 512 KiB. */
  readonly blockBytes?: number | undefined
}

/** @throws SLUICE_SOURCE_CHANGED where rows that were given before are not the same any more */
export function checkHash(range: RowRange, hash: number): void {
  if (typeof range.hash === 'number' && range.hash !== hash)
    throw new SluiceError('SLUICE_SOURCE_CHANGED', 'the connection broke, and the query gives other rows now', {
      hint: 'ORDER BY something unique, and leave out now(), random() and the like; or resume, which begins anew',
    })
}

/** A block is given when the next row would not fit: large enough to cost nothing by itself, small enough for a few to wait. */
const BLOCK_BYTES = 512 * 1024
/** Where messages end and payloads begin in the kernel's memory. */
const INPUT_BYTES = 128 * 1024
/** Finished blocks that wait before the socket pauses. */
const MOST_WAITING = 2
const COPY_DATA = 0x64
const MOST_ROWS = 0x7fffffff

/** What row-kernel.wat exports; a unit test holds the two together. */
interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer }
  walk(at: number, end: number, out: number, limit: number, most: number): number
  out(): number
  rows(): number
}

/** An instance of its own for each reader: 704 KiB. */
const newKernel = kernels<Kernel>(ROW_KERNEL)

/**
 * Gathers rows from CopyData messages into blocks of about 512 KiB: headers are walked and payloads moved together by WebAssembly (a row of 21 bytes costs
 * about 5 ns). Holds two finished blocks, one in the making, and what one chunk brings besides.
 */
export class RowBlocks implements CopyConsumer<RowBlock> {
  readonly #kernel = newKernel()
  readonly #memory = new Uint8Array(this.#kernel.memory.buffer)
  readonly #blocks: RowBlock[] = []
  readonly #range: RowRange
  #hash = 0
  #skip: number
  #left: number
  /** Where no payload of a block may end beyond, in the kernel's memory. */
  readonly #blockEnd: number
  /** Where the payloads of the block in the making end. */
  #out = INPUT_BYTES
  #rows = 0

  constructor(range: RowRange) {
    this.#range = range
    this.#blockEnd = INPUT_BYTES + Math.min(BLOCK_BYTES, range.blockBytes ?? BLOCK_BYTES)
    this.#skip = range.skip
    this.#left = range.limit
  }

  get sated(): boolean {
    return this.#blocks.length >= MOST_WAITING
  }

  get done(): boolean {
    return this.#left <= 0
  }

  /** Rows were to be passed over that never came. */
  get short(): boolean {
    return this.#skip > 0
  }

  shift(): RowBlock | undefined {
    return this.#blocks.shift()
  }

  finish(): void {
    if (this.#skip === 0 && this.#rows > 0) this.#push(this.#memory.slice(INPUT_BYTES, this.#out), this.#rows)
    this.#out = INPUT_BYTES
    this.#rows = 0
  }

  take(bytes: Buffer, from: number): number {
    let at = from
    while (at < bytes.length && !this.done) {
      const piece = bytes.subarray(at, at + INPUT_BYTES)
      this.#memory.set(piece)
      const taken = this.#walk(piece.length)
      if (taken > 0) at += taken
      else {
        const long = this.#takeLong(bytes, at)
        if (long === at) return at
        at = long
      }
    }
    return at
  }

  /** Bytes of the input that were taken. */
  #walk(end: number): number {
    let at = 0
    while (!this.done) {
      const most = Math.min(this.#skip > 0 ? this.#skip : this.#left, MOST_ROWS)
      at = this.#kernel.walk(at, end, this.#out, this.#blockEnd, most)
      this.#out = this.#kernel.out()
      const rows = this.#kernel.rows()
      this.#count(rows)
      if (this.#endsBlock(at, end)) this.finish()
      else if (rows < most) break
    }
    return at
  }

  /** Whether a whole message is there that the block has no room for. */
  #endsBlock(at: number, end: number): boolean {
    if (end - at < 5 || this.#memory[at] !== COPY_DATA) return false
    const size = this.#sizeAt(this.#memory, at)
    return at + 1 + size <= end && this.#out + size - 4 > this.#blockEnd
  }

  /** Counts rows that were walked over, and forgets them where they are to be passed over. */
  #count(rows: number): void {
    if (this.#skip > 0) {
      this.#pass(this.#memory.subarray(INPUT_BYTES, this.#out), rows)
      this.#out = INPUT_BYTES
      return
    }
    this.#rows += rows
    this.#left -= rows
    if (this.#left <= 0) this.finish()
  }

  /** A message that the kernel has no room for is a block of its own. */
  #takeLong(bytes: Buffer, at: number): number {
    if (bytes.length - at < 5 || bytes[at] !== COPY_DATA) return at
    const end = at + 1 + this.#sizeAt(bytes, at)
    if (end > bytes.length) return at
    const payload = bytes.subarray(at + 5, end)
    if (this.#skip > 0) this.#pass(payload, 1)
    else {
      this.finish()
      this.#push(Uint8Array.from(payload), 1)
      this.#left -= 1
    }
    return end
  }

  #push(bytes: Uint8Array, rows: number): void {
    if (this.#range.hash === undefined) this.#blocks.push({ bytes, rows })
    else {
      this.#hash = crc32(bytes, this.#hash)
      this.#blocks.push({ bytes, rows, hash: this.#hash })
    }
  }

  #pass(bytes: Uint8Array, rows: number): void {
    this.#skip -= rows
    if (this.#range.hash === undefined) return
    this.#hash = crc32(bytes, this.#hash)
    if (this.#skip === 0) checkHash(this.#range, this.#hash)
  }

  #sizeAt(bytes: Uint8Array, at: number): number {
    const [high = 0, ...low] = bytes.subarray(at + 1, at + 5)
    return low.reduce((sum, byte) => sum * 256 + byte, high)
  }
}
