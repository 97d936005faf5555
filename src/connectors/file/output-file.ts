import { SluiceError, nullIfMissing } from '../../core/errors.ts'
import type { Json, Output } from '../../core/job.ts'
import type { Abortable, ObjectInfo, ObjectWriter, WritableStore, WrittenPart } from '../../core/ports.ts'
import type { SinkRequest } from '../connector.ts'
import { isOwnDevice } from './file-format.ts'
import type { OutputTarget } from './output-target.ts'
import type { PartGate } from './part-gate.ts'
import { readUploads } from './upload-journal.ts'
import type { UploadEntry, UploadJournal } from './upload-journal.ts'

export interface OutputPlace {
  readonly store: WritableStore
  readonly key: string
  readonly url: string
  /** Shared by all files of a sink. */
  readonly gate: PartGate
  readonly partBytes: number
  /** Bytes of small files that the store keeps in memory until they are complete, all files of a sink together. */
  readonly held: { bytes: number }
  /** What the journal knows it by, where that is not the key. */
  readonly journalId?: string | undefined
}

/** Past so many bytes held, a file smaller than a part goes up at once as well. */
const MOST_HELD_BYTES = 64 * 1024 * 1024

/**
 * A file or object made of parts of equal size, which are on their way while later ones are made. The upload is opened while the first part is still filled, as
 * soon as half of it is there. Memory: one part, and what the gate lets through.
 */
export function createOutputFile(request: SinkRequest, place: OutputPlace): OutputTarget {
  return new OutputFile(request, place)
}

class OutputFile implements OutputTarget {
  readonly key: string
  readonly url: string
  readonly #id: string
  readonly #request: SinkRequest
  readonly #place: OutputPlace
  /** As earlier runs left it: what is recorded from now on is another attempt. */
  readonly #earlier: UploadJournal | null
  readonly #parts: WrittenPart[] = []
  #writer: ObjectWriter | null = null
  /** The same while it opens. What goes wrong is told when the writer is needed. */
  #opening: Promise<ObjectWriter> | null = null
  /** ETag of what this process made visible. */
  #published: string | null = null
  /** What is in the way is an earlier run's, by its recorded ETag. */
  #replacesOurs = false
  #chunks: Uint8Array[] = []
  #buffered = 0
  #offset = 0

  constructor(request: SinkRequest, place: OutputPlace) {
    this.#request = request
    this.#place = place
    this.key = place.key
    this.url = place.url
    this.#id = place.journalId ?? place.key
    this.#earlier = readUploads(request.context.recorded).get(this.#id) ?? null
  }

  get bytes(): number {
    return this.#offset + this.#buffered
  }

  async begin(o: Abortable): Promise<'write' | 'skip'> {
    const { ifExists = 'fail' } = this.#request.options
    if (ifExists === 'overwrite') return 'write'
    const there = await nullIfMissing(this.#place.store.head(this.key, o))
    if (there === null || !there.ranged || (await this.#isOurs(there, o))) return 'write'
    if (ifExists === 'fail')
      throw new SluiceError('SLUICE_EXISTS', 'the output is there already', {
        where: { url: this.url },
        hint: isOwnDevice(this.key) ? 'standard output is written -' : undefined,
      })
    this.#request.reporter.warn(`${this.url} is there already: left as it is (--if-exists skip)`)
    return 'skip'
  }

  async write(bytes: readonly Uint8Array[], o: Abortable): Promise<void> {
    const { partBytes } = this.#place
    for (const chunk of bytes) {
      let at = 0
      while (at < chunk.byteLength) {
        const piece = chunk.subarray(at, at + partBytes - this.#buffered)
        this.#chunks.push(piece)
        this.#buffered += piece.byteLength
        at += piece.byteLength
        if (this.#buffered === partBytes) await this.#send(null, o)
        else if (this.#buffered * 2 >= partBytes) void this.#open(null, o).catch(() => undefined)
      }
    }
  }

  async close(o: Abortable): Promise<void> {
    if (this.#buffered === 0 && this.#offset > 0) return
    const { held } = this.#place
    const isWhole = this.#writer === null && this.#opening === null && held.bytes + this.#buffered <= MOST_HELD_BYTES
    if (isWhole) held.bytes += this.#buffered
    await this.#send(isWhole ? this.#buffered : null, o)
  }

  async complete(o: Abortable): Promise<Output> {
    await this.#place.gate.settled()
    this.#place.gate.throwFailure()
    return this.#publish({ writer: await this.#open(null, o), parts: this.#parts, bytes: this.#offset }, o)
  }

  async finishEarlier(bytes: number, o: Abortable): Promise<Output | null> {
    const token = this.#earlier?.token ?? null
    const writer = token === null ? null : await this.#takeUp(token, { size: bytes }, o)
    if (writer === null) return null
    const isWhole = writer.present.length > 0 && writer.present.reduce((sum, part) => sum + part.bytes, 0) === bytes
    if (isWhole) return this.#publish({ writer, parts: writer.present, bytes }, o)
    await writer.abort()
    return null
  }

  async abort(): Promise<void> {
    await this.#place.gate.settled()
    const writer = this.#writer ?? (await this.#opening?.catch(() => null))
    await writer?.abort()
    this.#chunks = []
  }

  async #publish(
    made: { writer: ObjectWriter; parts: readonly WrittenPart[]; bytes: number },
    o: Abortable,
  ): Promise<Output> {
    const info = await made.writer.complete(
      made.parts.toSorted((a, b) => a.number - b.number),
      o,
    )
    this.#published = info.etag
    await this.#record({ kind: 'completed', partition: this.#id, bytes: made.bytes, etag: info.etag })
    return { url: this.url, rows: null, bytes: made.bytes, etag: info.etag }
  }

  /** Whether what is there is an earlier run's: as recorded, or as the store knows it. Then it is written again in its place. */
  async #isOurs(there: ObjectInfo, o: Abortable): Promise<boolean> {
    const journal = this.#earlier
    const known = this.#published ?? journal?.completed?.etag ?? null
    this.#replacesOurs = known !== null && known === there.etag
    if (this.#replacesOurs || journal === null || journal.token === null) return this.#replacesOurs
    const writer = await this.#takeUp(journal.token, { size: null }, o)
    // With parts it is complete (what was not is removed by now), and takes no more: another is to replace it.
    this.#replacesOurs = writer !== null && writer.present.length > 0
    if (!this.#replacesOurs) this.#writer = writer
    return writer !== null
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

  async #record(entry: UploadEntry): Promise<void> {
    await this.#request.context.record(entry)
  }

  async #send(size: number | null, o: Abortable): Promise<void> {
    const writer = await this.#open(size, o)
    const number = Math.floor(this.#offset / this.#place.partBytes) + 1
    const part = { number, offset: this.#offset, bytes: this.#chunks }
    const bytes = this.#buffered
    this.#offset += bytes
    this.#chunks = []
    this.#buffered = 0
    await this.#place.gate.send(async () => {
      this.#parts.push(await writer.writePart(part, o))
    }, bytes)
  }

  #open(size: number | null, o: Abortable): Promise<ObjectWriter> {
    // Not the writer itself: nothing is written before its token is recorded.
    if (this.#opening === null && this.#writer !== null) return Promise.resolve(this.#writer)
    this.#opening ??= this.#begin(size, o)
    return this.#opening
  }

  async #begin(size: number | null, o: Abortable): Promise<ObjectWriter> {
    const writer = await this.#openWriter({ size, resume: undefined }, o)
    this.#writer = writer
    await this.#record({
      kind: 'token',
      partition: this.#id,
      token: writer.token(),
      partBytes: this.#place.partBytes,
    })
    return writer
  }

  #openWriter(how: { size: number | null; resume: Json | undefined }, o: Abortable): Promise<ObjectWriter> {
    const overwrite = this.#replacesOurs || this.#request.options.ifExists === 'overwrite'
    return this.#place.store.openWriter(
      this.key,
      {
        ifExists: overwrite ? 'overwrite' : 'fail',
        size: how.size,
        ...(how.resume === undefined ? {} : { resume: how.resume }),
        record: (intent) => this.#record({ kind: 'intent', partition: this.#id, intent }),
      },
      o,
    )
  }
}
