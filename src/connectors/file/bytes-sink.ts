import { SluiceError } from '../../core/errors.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { START } from '../../core/job.ts'
import { giveBack } from '../../core/lent-buffers.ts'
import type { Extent, Json, Output, Partition, Receipt } from '../../core/job.ts'
import type {
  Abortable,
  FinishResult,
  Lane,
  ObjectInfo,
  ObjectWriter,
  Sink,
  SinkPlan,
  WritableStore,
  WrittenPart,
} from '../../core/ports.ts'
import type { Batch, BatchForm } from '../../core/batch.ts'
import type { SinkRequest } from '../connector.ts'
import type { Endpoint } from './endpoint.ts'
import { MadeFolders } from './made-folders.ts'
import { isPrefix, outputKey, outputUrl, requireFileName } from './output-name.ts'
import { requireSameForm } from './same-form.ts'
import { readUploads } from './upload-journal.ts'
import type { UploadEntry, UploadJournal } from './upload-journal.ts'

/** Parts in flight at most where `--parallelism` does not say: with parts of 8 MiB, 128 MiB. */
const MOST_PARTS_IN_FLIGHT = 16
const FIRST_PARTS_IN_FLIGHT = 4

interface Target {
  readonly partition: Partition
  readonly key: string
  readonly url: string
  /** Opened with the first part. */
  writer: Promise<ObjectWriter> | null
  /** It was there already, and `--if-exists skip` leaves it so. */
  skipped: boolean
  output: Output | null
}

/**
 * Writes partitions byte by byte, each to an object or file of its own; an extent is a part, its number follows from its offset.
 * Each appears whole as soon as its last part is in.
 */
export function createBytesSink(request: SinkRequest, where: { store: WritableStore; endpoint: Endpoint }): Sink {
  return new BytesSink(request, where)
}

class BytesSink implements Sink {
  readonly forms: readonly BatchForm[] = ['bytes']
  readonly #request: SinkRequest
  readonly #store: WritableStore
  readonly #endpoint: Endpoint
  readonly #targets = new Map<string, Target>()
  readonly #folders: MadeFolders
  #partBytes = 0

  constructor(request: SinkRequest, where: { store: WritableStore; endpoint: Endpoint }) {
    this.#request = request
    this.#store = where.store
    this.#endpoint = where.endpoint
    this.#folders = new MadeFolders(where.endpoint)
  }

  get lanes(): { max: number; ordered: boolean; first: number } {
    const { parallelism } = this.#request.options
    if (parallelism === undefined || parallelism === 'auto')
      return { max: MOST_PARTS_IN_FLIGHT, ordered: false, first: FIRST_PARTS_IN_FLIGHT }
    const parts = Math.max(1, parallelism)
    return { max: parts, ordered: false, first: parts }
  }

  get extentBytes(): { target: number; exact: boolean } {
    return { target: this.#partBytes, exact: true }
  }

  async prepare(plan: SinkPlan, o: Abortable): Promise<void> {
    const sizes = plan.partitions.map((partition) => partition.bytes)
    const known = sizes.filter((size) => size !== null)
    const largest = known.length === sizes.length ? Math.max(0, ...known) : null
    const { partSize, parallelism } = this.#request.options
    const inFlight = typeof parallelism === 'number' ? parallelism : 1
    this.#partBytes = this.#store.partBytes(largest, partSize ?? null, inFlight)
    for (const partition of plan.partitions) {
      requireFileName(this.#endpoint, partition.id)
      const key = outputKey(this.#endpoint, partition.id)
      this.#targets.set(partition.id, {
        partition,
        key,
        url: outputUrl(this.#endpoint, key),
        writer: null,
        skipped: false,
        output: null,
      })
    }
    if (this.#targets.size > 1 && new Set([...this.#targets.values()].map((target) => target.key)).size === 1)
      throw new SluiceError('SLUICE_USAGE', `${plan.partitions.length} objects cannot become one`, {
        where: { url: this.#endpoint.url },
        hint: 'end the sink in / to put each under it, or say --source-format for their rows in one',
      })
    requireSameForm(plan, this.#endpoint, this.#request.options)
    const [first] = this.#targets.values()
    // Folders under a prefix are made as they are needed.
    if (first !== undefined && !(this.#endpoint.scheme === 'file' && isPrefix(this.#endpoint)))
      await this.#store.checkPlace(first.key, o)
    await this.#checkExisting(o)
  }

  async recover(o: Abortable): Promise<readonly Receipt[]> {
    const receipts: Receipt[] = []
    for (const journal of readUploads(this.#request.context.recorded).values()) {
      const target = this.#targets.get(journal.partition)
      if (target === undefined) continue
      receipts.push(...(await this.#recoverOne(target, journal, o)))
    }
    for (const target of this.#targets.values())
      if (target.skipped) receipts.push(wholeReceipt(target.partition, target.partition.bytes ?? 0, { written: false }))
    return receipts
  }

  openLane(o: Abortable): Promise<Lane> {
    return Promise.resolve(new PartLane((extent, batches) => this.#writePart(extent, batches, o)))
  }

  async endPartition(partition: Partition, receipts: readonly Receipt[], o: Abortable): Promise<void> {
    const target = this.#targets.get(partition.id)
    if (target === undefined || target.skipped || target.output !== null) return
    const writer = await this.#writer(
      target,
      receipts.reduce((sum, receipt) => sum + receipt.extent.bytes, 0),
      o,
    )
    const parts = receipts.map((receipt) => partFromJson(receipt.state)).toSorted((a, b) => a.number - b.number)
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
    await this.#record({ kind: 'completing', partition: partition.id, bytes, sealed: null })
    const info = await this.#complete(target, { writer, parts }, o)
    if (info === null) return
    target.output = { url: target.url, rows: null, bytes, etag: info.etag }
    await this.#record({ kind: 'completed', partition: partition.id, bytes, etag: info.etag })
  }

  finish(): Promise<FinishResult> {
    const outputs = [...this.#targets.values()].flatMap((target) => (target.output === null ? [] : [target.output]))
    return Promise.resolve({ outputs, lost: [] })
  }

  async abort(_reason: unknown, o: { readonly resumable: boolean }): Promise<void> {
    // A local file is begun again by a resume: what there is of it would only take room.
    if (o.resumable && this.#endpoint.scheme !== 'file') return
    for (const target of this.#targets.values())
      if (target.output === null)
        await target.writer?.then(
          (writer) => writer.abort(),
          () => undefined,
        )
    for (const journal of readUploads(this.#request.context.recorded).values())
      if (journal.completed === null && (this.#targets.get(journal.partition)?.writer ?? null) === null)
        for (const intent of journal.intents)
          await this.#store.discard(intent, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined)
    await this.#folders.remove()
  }

  async close(): Promise<void> {
    await this.#store.close()
  }

  /** Null where another's output came in between, and `--if-exists skip` leaves it. */
  async #complete(
    target: Target,
    made: { writer: ObjectWriter; parts: readonly WrittenPart[] },
    o: Abortable,
  ): Promise<ObjectInfo | null> {
    try {
      return await made.writer.complete(made.parts, o)
    } catch (error) {
      if (this.#request.options.ifExists !== 'skip' || !isCode(error, 'SLUICE_EXISTS')) throw error
      await made.writer.abort()
      this.#skip(target)
      return null
    }
  }

  #skip(target: Target): void {
    target.skipped = true
    this.#request.reporter.warn(`${target.url} is there already: left as it is (--if-exists skip)`)
  }

  /** Tells of an existing output before any byte moves; the store enforces it again at the end. What earlier runs began is looked at by `recover`. */
  async #checkExisting(o: Abortable): Promise<void> {
    const { ifExists = 'fail' } = this.#request.options
    if (ifExists === 'overwrite') return
    const begun = readUploads(this.#request.context.recorded)
    for (const target of this.#targets.values()) {
      if (begun.has(target.partition.id) || (await this.#head(target, o)) === null) continue
      if (ifExists === 'fail')
        throw new SluiceError('SLUICE_EXISTS', 'the output is there already', { where: { url: target.url } })
      this.#skip(target)
    }
  }

  async #head(target: Target, o: Abortable): Promise<ObjectInfo | null> {
    try {
      const info = await this.#store.head(target.key, o)
      return this.#endpoint.scheme === 'file' && !info.ranged ? null : info
    } catch (error) {
      if (isCode(error, 'SLUICE_NOT_FOUND')) return null
      throw error
    }
  }

  /** What a run before this one left of an output: complete, in the making, or nothing. */
  async #recoverOne(target: Target, journal: UploadJournal, o: Abortable): Promise<readonly Receipt[]> {
    const { completed, completing, token } = journal
    if (completed !== null) return [this.#taken(target, completed.bytes, completed.etag)]
    const size = target.partition.bytes ?? completing?.bytes ?? null
    const writer = token === null ? null : await this.#takeUp(target, { size, resume: token }, o)
    if (target.skipped) return []
    const parts = writer?.present.filter((part) => part.offset === (part.number - 1) * this.#partBytes) ?? []
    const kept = parts.flatMap((part) => this.#partReceipt({ ...target.partition, bytes: size }, part))
    if (writer !== null && token !== null && this.#endpoint.scheme === 'file') {
      // Nothing of it is kept, but the writer knows whether the file under the final name is its own.
      target.writer = Promise.resolve(writer)
      return []
    }
    if (writer === null || kept.length === 0) {
      await writer?.abort()
      for (const intent of journal.intents) await this.#store.discard(intent, o)
      return []
    }
    target.writer = Promise.resolve(writer)
    return kept
  }

  async #takeUp(
    target: Target,
    how: { size: number | null; resume: Json },
    o: Abortable,
  ): Promise<ObjectWriter | null> {
    try {
      return await this.#openWriter(target, how, o)
    } catch (error) {
      if (this.#request.options.ifExists !== 'skip' || !isCode(error, 'SLUICE_EXISTS')) throw error
      this.#skip(target)
      return null
    }
  }

  #taken(target: Target, bytes: number, etag: string | null): Receipt {
    target.output = { url: target.url, rows: null, bytes, etag }
    return wholeReceipt(target.partition, bytes, { written: true })
  }

  /** A part that is there counts if it is exactly what an extent of this run would be. */
  #partReceipt(partition: Partition, part: WrittenPart): Receipt[] {
    const size = partition.bytes
    if (size === null) return []
    const end = Math.min(size, part.offset + this.#partBytes)
    if (part.bytes !== end - part.offset || (part.bytes === 0 && size > 0)) return []
    return [partReceipt(partition, part, { last: end === size, written: true })]
  }

  async #writePart(extent: Extent, bytes: readonly Uint8Array[], o: Abortable): Promise<Receipt> {
    const target = this.#targets.get(extent.partition)
    if (target === undefined) throw new SluiceError('SLUICE_INTERNAL', `no target for partition ${extent.partition}`)
    const writer = await this.#writer(target, extent.last ? extent.end.byte : null, o)
    const number = Math.floor(extent.start.byte / this.#partBytes) + 1
    const part = await writer.writePart({ number, offset: extent.start.byte, bytes }, o)
    return { ...partReceipt(target.partition, part, { last: extent.last, written: true }), extent }
  }

  /** `bytes`: the whole size, where this part shows it to be known now. */
  #writer(target: Target, bytes: number | null, o: Abortable): Promise<ObjectWriter> {
    target.writer ??= this.#openWriter(target, { size: target.partition.bytes ?? bytes, resume: undefined }, o)
    return target.writer
  }

  async #openWriter(
    target: Target,
    how: { size: number | null; resume: Json | undefined },
    o: Abortable,
  ): Promise<ObjectWriter> {
    await this.#folders.make(target.key)
    const writer = await this.#store.openWriter(
      target.key,
      {
        ifExists: this.#request.options.ifExists === 'overwrite' ? 'overwrite' : 'fail',
        size: how.size,
        ...(how.resume === undefined ? {} : { resume: how.resume }),
        record: (intent) => this.#record({ kind: 'intent', partition: target.partition.id, intent }),
      },
      o,
    )
    if (how.resume === undefined)
      await this.#record({
        kind: 'token',
        partition: target.partition.id,
        token: writer.token(),
        partBytes: this.#partBytes,
      })
    return writer
  }

  async #record(entry: UploadEntry): Promise<void> {
    await this.#request.context.record(entry)
  }
}

/** A lane holds one part. */
class PartLane implements Lane {
  readonly #write: (extent: Extent, bytes: readonly Uint8Array[]) => Promise<Receipt>
  #bytes: Uint8Array[] = []

  constructor(write: (extent: Extent, bytes: readonly Uint8Array[]) => Promise<Receipt>) {
    this.#write = write
  }

  begin(): Promise<void> {
    return Promise.resolve()
  }

  write(batch: Batch): Promise<void> {
    if (batch.form !== 'bytes') throw new SluiceError('SLUICE_INTERNAL', `a lane for bytes was given ${batch.form}`)
    this.#bytes.push(batch.bytes)
    return Promise.resolve()
  }

  async seal(extent: Extent): Promise<Receipt> {
    const bytes = this.#bytes
    this.#bytes = []
    const receipt = await this.#write(extent, bytes)
    for (const piece of bytes) giveBack(piece)
    return receipt
  }

  abort(): Promise<void> {
    this.#bytes = []
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function partReceipt(partition: Partition, part: WrittenPart, o: { last: boolean; written: boolean }): Receipt {
  const [start, end] = [part.offset, part.offset + part.bytes].map((byte) => ({ ...START, byte }))
  const extent: Extent = {
    partition: partition.id,
    sequence: part.number - 1,
    start: start ?? START,
    end: end ?? START,
    rows: 0,
    filtered: 0,
    bytes: part.bytes,
    last: o.last,
  }
  return { extent, durable: true, rowsWritten: 0, bytesWritten: o.written ? part.bytes : 0, state: { ...part } }
}

function wholeReceipt(partition: Partition, bytes: number, o: { written: boolean }): Receipt {
  return partReceipt(partition, { number: 1, offset: 0, bytes, etag: null }, { last: true, written: o.written })
}

function partFromJson(state: Json): WrittenPart {
  if (
    typeof state === 'object' &&
    state !== null &&
    'number' in state &&
    'offset' in state &&
    'bytes' in state &&
    'etag' in state
  ) {
    const { number, offset, bytes, etag } = state
    if (
      typeof number === 'number' &&
      typeof offset === 'number' &&
      typeof bytes === 'number' &&
      (typeof etag === 'string' || etag === null)
    )
      return { number, offset, bytes, etag }
  }
  throw new SluiceError('SLUICE_INTERNAL', 'a receipt that is none of a part')
}

function isCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof SluiceError && error.code === code
}
