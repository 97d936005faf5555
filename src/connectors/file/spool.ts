import { mkdir, mkdtemp, open, rm, statfs } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { ByteRange } from '../../core/ports.ts'
import { translateLocalError } from '../../stores/local/local-error.ts'
import { readAhead, readPiece } from '../../stores/local/read-ahead.ts'

/** Bytes kept at most, and never more than half of what the disk has left. What does not fit is read from its store again. */
const MOST_BYTES = 4 * 1024 * 1024 * 1024

interface Kept {
  /** Offset in the spool. */
  readonly start: number
  readonly bytes: number
}

/**
 * Decompressed bytes of partitions between their first and their second reading, in one file that has no name any more once it is open: it is
 * gone with the process, however that ends. A disk that is full, or cannot be written to, keeps less, and nothing fails by it.
 */
export class Spool {
  readonly #folder: string
  readonly #mostBytes: number
  readonly #kept = new Map<string, Kept>()
  #file: Promise<FileHandle | null> | null = null
  /** Set where opening found less room. */
  #room: number
  /** Where the next partition begins. */
  #end = 0
  /** Whether a partition is being written: only one is at a time. */
  #writing = false

  constructor(folder: string, o: { readonly mostBytes?: number } = {}) {
    this.#folder = folder
    this.#mostBytes = o.mostBytes ?? MOST_BYTES
    this.#room = this.#mostBytes
  }

  has(partition: string): boolean {
    return this.#kept.has(partition)
  }

  /**
   * Passes chunks on, and keeps them if they come to their end and fit.
   * `leastBytes`: what they are known to have, so that nothing is written that cannot fit.
   */
  async *keep(
    partition: string,
    chunks: AsyncIterable<Uint8Array>,
    { leastBytes = 0 }: { readonly leastBytes?: number } = {},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const file = this.#writing || this.has(partition) ? null : await this.#open()
    if (file === null || this.#end + leastBytes > this.#room) return yield* chunks
    this.#writing = true
    const start = this.#end
    let at: number | null = start
    try {
      for await (const chunk of chunks) {
        // Written before it is handed on: who takes a chunk may give its memory to the next.
        if (at !== null) at = await this.#write(file, chunk, at)
        yield chunk
      }
      if (at === null) return
      this.#kept.set(partition, { start, bytes: at - start })
      this.#end = at
    } finally {
      this.#writing = false
      if (this.#end === start) await file.truncate(start).catch(() => undefined)
    }
  }

  /** Bytes of a partition that `has` says is there. @throws SLUICE_LOCAL_IO */
  async *read(partition: string, range: ByteRange): AsyncGenerator<Uint8Array, void, undefined> {
    const kept = this.#kept.get(partition)
    const file = await this.#open()
    if (kept === undefined || file === null) return
    const [start, end] = [kept.start + range.start, kept.start + Math.min(kept.bytes, range.end)]
    yield* readAhead({ start, end }, (piece) => this.#read(file, piece))
  }

  async close(): Promise<void> {
    const file = await this.#file
    this.#file = Promise.resolve(null)
    this.#kept.clear()
    await file?.close()
  }

  /** Where the next chunk goes; null where this one did not fit. */
  async #write(file: FileHandle, chunk: Uint8Array, at: number): Promise<number | null> {
    if (at + chunk.byteLength > this.#room) return null
    try {
      for (let done = 0; done < chunk.byteLength;) {
        const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, at + done)
        done += bytesWritten
      }
      return at + chunk.byteLength
    } catch {
      return null
    }
  }

  async #read(file: FileHandle, piece: ByteRange): Promise<Uint8Array> {
    const fail = (error: unknown): Error => translateLocalError(error, this.#folder, piece.start)
    const chunk = await readPiece(file, piece).catch((error: unknown) => {
      throw fail(error)
    })
    if (chunk.byteLength === 0) throw fail(new Error('the spool is shorter than what was written to it'))
    return chunk
  }

  #open(): Promise<FileHandle | null> {
    this.#file ??= this.#make().catch(() => null)
    return this.#file
  }

  async #make(): Promise<FileHandle> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const folder = await mkdtemp(join(this.#folder, 'spool-'))
    try {
      const { bavail, bsize } = await statfs(folder)
      this.#room = Math.min(this.#mostBytes, Math.floor((bavail * bsize) / 2))
      return await open(join(folder, 'decompressed'), 'wx+', 0o600)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}
