import { once } from 'node:events'
import { SluiceError } from '../../core/errors.ts'
import type { Json, Output } from '../../core/job.ts'
import type { Abortable, ObjectWriter, WritableStore, WrittenPart } from '../../core/ports.ts'
import type { SinkRequest } from '../connector.ts'
import { readUploads } from './upload-journal.ts'
import type { UploadEntry, UploadJournal } from './upload-journal.ts'

/** `write`: all of it is to be written; `skip`: `--if-exists skip` leaves what is there; `finished`: an earlier run got to the end. */
export type Beginning =
  { readonly kind: 'write' | 'skip' } | { readonly kind: 'finished'; readonly output: Output; readonly sealed: Json }

/** One output that is written front to back. */
export interface OutputTarget {
  /** Looks for what is in the way and what earlier runs left, before any row is read. */
  begin(o: Abortable): Promise<Beginning>
  /** Takes bytes in order; resolves when there is room for more. */
  write(bytes: readonly Uint8Array[], o: Abortable): Promise<void>
  /** Makes it visible, whole. `sealed` comes back from `begin`, should a kill come between that and the word that it is done. */
  complete(sealed: Json, o: Abortable): Promise<Output>
  abort(): Promise<void>
  close(): Promise<void>
}

/** Standard output: visible as it is written, which is what a pipe is for. */
export function createStreamTarget(stream: NodeJS.WritableStream): OutputTarget {
  let bytes = 0
  return {
    begin: () => Promise.resolve({ kind: 'write' }),
    write: async (chunks, o) => {
      for (const chunk of chunks) {
        bytes += chunk.byteLength
        if (!stream.write(chunk))
          await once(stream, 'drain', { signal: o.signal }).catch((error: unknown) => streamFailed(error, o.signal))
      }
    },
    complete: () => Promise.resolve({ url: '-', rows: null, bytes, etag: null }),
    abort: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

function streamFailed(error: unknown, signal: AbortSignal): never {
  signal.throwIfAborted()
  throw new SluiceError(
    'SLUICE_LOCAL_IO',
    `standard output: ${error instanceof Error ? error.message : String(error)}`,
    { cause: error },
  )
}

/** A file or object made of parts of equal size, up to `inFlight` of them on their way while later ones are made. */
export function createStoreTarget(
  request: SinkRequest,
  where: { store: WritableStore; key: string; url: string },
): OutputTarget {
  return new StoreTarget(request, where)
}

/** Parts in flight where `--parallelism` does not say. */
const PARTS_IN_FLIGHT = 4
/** How long the removal of what earlier runs left may take while a job ends. */
const DISCARD_MS = 8_000

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

  async begin(o: Abortable): Promise<Beginning> {
    const journal = readUploads(this.#request.context.recorded).get(this.#key) ?? null
    const finished = journal === null ? null : await this.#finished(journal, o)
    if (finished !== null) return finished
    await this.#discardIntents(o)
    const { ifExists = 'fail' } = this.#request.options
    if (ifExists === 'overwrite') return { kind: 'write' }
    const there = await this.#store.head(this.#key, o).then(
      (info) => info.ranged,
      (error: unknown) => {
        if (error instanceof SluiceError && error.code === 'SLUICE_NOT_FOUND') return false
        throw error
      },
    )
    if (!there || (journal !== null && (await this.#isOurs(journal, o)))) return { kind: 'write' }
    if (ifExists === 'fail')
      throw new SluiceError('SLUICE_EXISTS', 'the output is there already', { where: { url: this.#url } })
    this.#request.reporter.warn(`${this.#url} is there already: left as it is (--if-exists skip)`)
    return { kind: 'skip' }
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

  async complete(sealed: Json, o: Abortable): Promise<Output> {
    if (this.#bytes > 0 || this.#parts.length + this.#sending.size === 0)
      await this.#send({ size: this.#writer === null ? this.#bytes : null }, o)
    await Promise.all(this.#sending)
    this.#throwFailure()
    const writer = await this.#open(null, o)
    await this.#record({ kind: 'completing', partition: this.#key, bytes: this.#offset, sealed })
    return this.#publish({ writer, parts: this.#parts, bytes: this.#offset }, o)
  }

  async abort(): Promise<void> {
    await Promise.all(this.#sending)
    if (this.#writer !== null) await this.#writer.abort()
    else await this.#discardIntents({ signal: AbortSignal.timeout(DISCARD_MS) })
  }

  async #publish(
    made: { writer: ObjectWriter; parts: readonly WrittenPart[]; bytes: number },
    o: Abortable,
  ): Promise<Output> {
    const info = await made.writer.complete(
      made.parts.toSorted((a, b) => a.number - b.number),
      o,
    )
    await this.#record({ kind: 'completed', partition: this.#key, bytes: made.bytes, etag: info.etag })
    return { url: this.#url, rows: null, bytes: made.bytes, etag: info.etag }
  }

  /** What an earlier run had complete, or all but complete: parts that are all there need no more than their last request. */
  async #finished(journal: UploadJournal, o: Abortable): Promise<Beginning | null> {
    const { completed, completing, token } = journal
    if (completing === null) return null
    const { bytes, sealed } = completing
    if (completed !== null)
      return { kind: 'finished', output: { url: this.#url, rows: null, bytes, etag: completed.etag }, sealed }
    const writer = token === null ? null : await this.#takeUp(token, { size: bytes }, o)
    if (writer === null) return null
    const isWhole = writer.present.length > 0 && writer.present.reduce((sum, part) => sum + part.bytes, 0) === bytes
    if (isWhole)
      return { kind: 'finished', output: await this.#publish({ writer, parts: writer.present, bytes }, o), sealed }
    await writer.abort()
    return null
  }

  /** Whether the store knows the output that is there as an earlier run's: then it is written again in its place. */
  async #isOurs(journal: UploadJournal, o: Abortable): Promise<boolean> {
    this.#writer = journal.token === null ? null : await this.#takeUp(journal.token, { size: null }, o)
    return this.#writer !== null
  }

  /** Null where another's output is in the way. */
  async #takeUp(token: Json, known: { size: number | null }, o: Abortable): Promise<ObjectWriter | null> {
    try {
      return await this.#openWriter({ size: known.size, resume: token }, o)
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'SLUICE_EXISTS') return null
      throw error
    }
  }

  async #discardIntents(o: Abortable): Promise<void> {
    for (const journal of readUploads(this.#request.context.recorded).values())
      if (journal.completed === null) for (const intent of journal.intents) await this.#store.discard(intent, o)
  }

  async #record(entry: UploadEntry): Promise<void> {
    await this.#request.context.record(entry)
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
    if (this.#writer !== null) return this.#writer
    const writer = await this.#openWriter({ size, resume: undefined }, o)
    this.#writer = writer
    await this.#record({ kind: 'token', partition: this.#key, token: writer.token(), partBytes: this.#partBytes })
    return writer
  }

  #openWriter(how: { size: number | null; resume: Json | undefined }, o: Abortable): Promise<ObjectWriter> {
    return this.#store.openWriter(
      this.#key,
      {
        ifExists: this.#request.options.ifExists === 'overwrite' ? 'overwrite' : 'fail',
        size: how.size,
        ...(how.resume === undefined ? {} : { resume: how.resume }),
        record: (intent) => this.#record({ kind: 'intent', partition: this.#key, intent }),
      },
      o,
    )
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure
  }
}
