import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'

/** Most files in writing that stay open while nobody writes to them, of the whole process: many partitions must not use up its descriptors. */
const MOST_IDLE = 128

/** Those that are open and idle, the longest idle first. */
const idle = new Set<ParkedFile>()

/** A file in writing whose descriptor is given back when too many others are open, and taken anew when it is used. */
export class ParkedFile {
  /** Where it is opened anew; to be set when it is renamed. */
  path: string
  #handle: FileHandle | null
  #opening: Promise<FileHandle> | null = null
  #users = 0
  #closed = false

  /** Takes the handle over. */
  constructor(path: string, handle: FileHandle) {
    this.path = path
    this.#handle = handle
    this.#rest()
  }

  /** Runs `work` with the file open; several may at a time. @throws what `open` and `work` do */
  async use<T>(work: (handle: FileHandle) => Promise<T>): Promise<T> {
    this.#users += 1
    idle.delete(this)
    try {
      return await work(this.#handle ?? (await this.#open()))
    } finally {
      this.#users -= 1
      if (this.#users === 0) this.#rest()
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    idle.delete(this)
    const handle = this.#handle
    this.#handle = null
    await handle?.close()
  }

  #open(): Promise<FileHandle> {
    this.#opening ??= open(this.path, constants.O_RDWR)
      .then((handle) => (this.#handle = handle))
      .finally(() => (this.#opening = null))
    return this.#opening
  }

  #rest(): void {
    if (this.#handle === null) return
    // Closed while it was being opened anew.
    if (this.#closed) return this.#park()
    idle.add(this)
    for (const file of idle) {
      if (idle.size <= MOST_IDLE) return
      idle.delete(file)
      file.#park()
    }
  }

  /** What was written stays in the system's hands; a failure to write it back is told by the sync at the end (fsync(2): by the next descriptor, too). */
  #park(): void {
    const handle = this.#handle
    this.#handle = null
    void handle?.close().catch(() => undefined)
  }
}
