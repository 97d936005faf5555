import { once } from 'node:events'
import { SluiceError } from '../../core/errors.ts'
import type { Output } from '../../core/job.ts'
import type { Abortable, ObjectWriter, WritableStore, WrittenPart } from '../../core/ports.ts'
import type { SinkRequest } from '../connector.ts'
import { readUploads } from './upload-journal.ts'

/** One output that is written front to back. */
export interface OutputTarget {
  /** Looks for what is in the way, before any row is read. @returns false where `--if-exists skip` leaves it */
  begin(o: Abortable): Promise<boolean>
  /** Takes bytes in order; resolves when there is room for more. */
  write(bytes: readonly Uint8Array[], o: Abortable): Promise<void>
  /** Makes it visible, whole. */
  complete(o: Abortable): Promise<Output>
  abort(): Promise<void>
  close(): Promise<void>
}

/** Standard output: visible as it is written, which is what a pipe is for. */
export function createStreamTarget(stream: NodeJS.WritableStream): OutputTarget {
  let bytes = 0
  return {
    begin: () => Promise.resolve(true),
    write: async (chunks, o) => {
      for (const chunk of chunks) {
        bytes += chunk.byteLength
        if (!stream.write(chunk)) await once(stream, 'drain', { signal: o.signal }).catch((error: unknown) => streamFailed(error, o.signal))
      }
    },
    complete: () => Promise.resolve({ url: '-', rows: null, bytes, etag: null }),
    abort: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

function streamFailed(error: unknown, signal: AbortSignal): never {
  signal.throwIfAborted()
  throw new SluiceError('SLUICE_LOCAL_IO', `standard output: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
}

/** A file or object made of parts of equal size, up to `inFlight` of them on their way while later ones are made. */
export function createStoreTarget(request: SinkRequest, where: { store: WritableStore; key: string; url: string }): OutputTarget {
  return new StoreTarget(request, where)
}

/** Parts in flight where `--parallelism` does not say. */
const PARTS_IN_FLIGHT = 4

class StoreTarget implements OutputTarget {
  readonly #request: SinkRequest
  readonly #store: WritableStore
  readonly #key: string
  readonly #url: string
  readonly #partBytes: number
  readonly #inFlight: number
  readonly #sending = new Set<Promise<void>>()
  readonly #parts: WrittenPart[] = []
  #failure: unknown
  #writer: ObjectWriter | null = null
  #chunks: Uint8Array[] = []
  #bytes = 0
  #offset = 0

  constructor(request: SinkRequest, where: { store: WritableStore; key: string; url: string }) {
    this.#request = request
    this.#store = where.store
    this.#key = where.key
    this.#url = where.url
    this.#partBytes = where.store.partBytes(null, request.options.partSize ?? null)
    const { parallelism } = request.options
    this.#inFlight = parallelism === undefined || parallelism === 'auto' ? PARTS_IN_FLIGHT : Math.max(1, parallelism)
  }

  async begin(o: Abortable): Promise<boolean> {
    for (const journal of readUploads(this.#request.context.recorded).values())
      if (journal.completed === null) for (const intent of journal.intents) await this.#store.discard(intent, o)
    const { ifExists = 'fail' } = this.#request.options
    if (ifExists === 'overwrite') return true
    const there = await this.#store.head(this.#key, o).then(
      (info) => info.ranged,
      (error: unknown) => {
        if (error instanceof SluiceError && error.code === 'SLUICE_NOT_FOUND') return false
        throw error
      },
    )
    if (!there) return true
    if (ifExists === 'fail') throw new SluiceError('SLUICE_EXISTS', 'the output is there already', { where: { url: this.#url } })
    this.#request.reporter.warn(`${this.#url} is there already: left as it is (--if-exists skip)`)
    return false
  }

  async write(bytes: readonly Uint8Array[], o: Abortable): Promise<void> {
    for (const chunk of bytes) {
      let at = 0
      while (at < chunk.byteLength) {
        const piece = chunk.subarray(at, at + this.#partBytes - this.#bytes)
        this.#chunks.push(piece)
        this.#bytes += piece.byteLength
        at += piece.byteLength
        if (this.#bytes === this.#partBytes) await this.#send({ size: null }, o)
      }
    }
  }

  async complete(o: Abortable): Promise<Output> {
    if (this.#bytes > 0 || this.#parts.length + this.#sending.size === 0) await this.#send({ size: this.#writer === null ? this.#bytes : null }, o)
    await Promise.all(this.#sending)
    this.#throwFailure()
    const writer = await this.#open(null, o)
    const info = await writer.complete(this.#parts.toSorted((a, b) => a.number - b.number), o)
    await this.#request.context.record({ kind: 'completed', partition: this.#key, bytes: this.#offset, etag: info.etag })
    return { url: this.#url, rows: null, bytes: this.#offset, etag: info.etag }
  }

  async abort(): Promise<void> {
    await Promise.all(this.#sending)
    await this.#writer?.abort()
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async #send(known: { size: number | null }, o: Abortable): Promise<void> {
    const writer = await this.#open(known.size, o)
    const part = { number: Math.floor(this.#offset / this.#partBytes) + 1, offset: this.#offset, bytes: this.#chunks }
    this.#offset += this.#bytes
    this.#chunks = []
    this.#bytes = 0
    const sending = writer.writePart(part, o).then(
      (written) => {
        this.#parts.push(written)
      },
      (error: unknown) => {
        this.#failure ??= error
      },
    )
    const tracked = sending.finally(() => this.#sending.delete(tracked))
    this.#sending.add(tracked)
    if (this.#request.options.parallelism === 0) await tracked
    while (this.#sending.size >= this.#inFlight) await Promise.race(this.#sending)
    this.#throwFailure()
  }

  async #open(size: number | null, o: Abortable): Promise<ObjectWriter> {
    this.#writer ??= await this.#store.openWriter(
      this.#key,
      {
        ifExists: this.#request.options.ifExists === 'overwrite' ? 'overwrite' : 'fail',
        size,
        record: (intent) => this.#request.context.record({ kind: 'intent', partition: this.#key, intent }),
      },
      o,
    )
    return this.#writer
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure
  }
}
