import { SluiceError, nullIfMissing } from '../../core/errors.ts'
import type { Json, Output, Partition } from '../../core/job.ts'
import type { Abortable, WritableStore } from '../../core/ports.ts'
import type { SinkRequest } from '../connector.ts'
import type { EncodedPiece, FileJoiner, OutputEncoding } from './output-pieces.ts'
import type { OutputNames } from './output-name.ts'
import type { OutputTarget } from './output-target.ts'
import type { PartGate } from './part-gate.ts'
import { readPublication, readUploads } from './upload-journal.ts'
import type { PublishedFile, UploadEntry } from './upload-journal.ts'

/** `write`: it is to be written; `finished`: an earlier run got to the end. */
export type Beginning =
  { readonly kind: 'write' } | { readonly kind: 'finished'; readonly outputs: readonly Output[]; readonly sealed: Json }

export interface OutputSetup {
  readonly request: SinkRequest
  /** Null for standard output, which leaves nothing behind to look after. */
  readonly store: WritableStore | null
  readonly gate: PartGate
  openTarget(place: { readonly key: string; readonly url: string }): OutputTarget
}

/** What there is to write, as `begin` is told. */
export interface OutputPlan {
  readonly partitions: readonly Partition[]
  readonly names: OutputNames
  readonly encoding: OutputEncoding
  /** False for plain bytes. */
  readonly countsRows: boolean
  /** A file that would be longer gets a successor. */
  readonly maxFileBytes: number | null
}

interface OpenFile {
  readonly target: OutputTarget
  readonly joiner: FileJoiner
  begun: boolean
  rows: number
}

/** One file, or a sequence of files, that pieces are appended to. */
interface Slot {
  readonly number: number
  skipped: boolean
  closed: boolean
  sequence: number
  current: OpenFile | null
  readonly files: OpenFile[]
  /** Appends wait for one another, in the order in which they came; as many as there are lanes. */
  queue: Promise<unknown>
}

/** How long the removal of what earlier runs left may take while a job ends. */
const DISCARD_MS = 8_000
const ALL = ''
export const MANIFEST_ID = 'manifest:'

/** The files of an output: all are written while none is visible, then they are made visible one after the other, each journalled. */
export class OutputSet {
  readonly #setup: OutputSetup
  readonly #targets = new Map<string, OutputTarget>()
  readonly #slots = new Map<string, Slot>()
  #plan: OutputPlan | null = null
  /** Whether what is there is all but finished, so that a resume can finish it. */
  #canFinish: boolean
  #outputs: Output[] = []

  constructor(setup: OutputSetup) {
    this.#setup = setup
    this.#canFinish = readPublication(setup.request.context.recorded) !== null
  }

  /** Finishes what an earlier run had all but finished, else removes what is left of it and looks for what is in the way. @throws SLUICE_EXISTS */
  async begin(plan: OutputPlan, o: Abortable): Promise<Beginning> {
    this.#plan = plan
    const finished = await this.#finishEarlier(o)
    if (finished !== null) return finished
    this.#canFinish = false
    await this.#discardIntents(o)
    const ids = plan.names.perPartition ? plan.partitions.map((partition) => partition.id) : [ALL]
    for (const [index, id] of ids.entries()) {
      const target = this.#target(plan.names.place(index + 1, 1))
      const skipped = (await target.begin(o)) === 'skip'
      this.#slots.set(id, {
        number: index + 1,
        skipped,
        closed: false,
        sequence: 1,
        current: skipped ? null : newFile(target, plan),
        files: [],
        queue: Promise.resolve(),
      })
    }
    return { kind: 'write' }
  }

  /** Whether `--if-exists skip` leaves a partition's file as it is. */
  isSkipped(partition: string): boolean {
    return this.#slots.get(this.#plan?.names.perPartition === true ? partition : ALL)?.skipped ?? false
  }

  /** Appends what an extent became, undivided where its pieces are not whole rows; resolves with the bytes that were written, once there is room for more. */
  append(partition: string, made: { pieces: readonly EncodedPiece[]; rows: number }, o: Abortable): Promise<number> {
    const slot = this.#slot(partition)
    return inTurn(slot, () => this.#append(slot, made, o))
  }

  /** Nothing more comes of a partition: its file's memory is given free. Idempotent. */
  async endPartition(partition: string, o: Abortable): Promise<void> {
    if (this.#plan?.names.perPartition !== true || !this.#slots.has(partition)) return
    const slot = this.#slot(partition)
    await inTurn(slot, () => this.#closeSlot(slot, o))
  }

  /** Makes all visible. `sealed` comes back from `begin`, should a kill come between that and the word that the job is done. Idempotent. */
  async finish(sealed: Json, o: Abortable): Promise<readonly Output[]> {
    const slots = [...this.#slots.values()]
    for (const slot of slots) await inTurn(slot, () => this.#closeSlot(slot, o))
    await this.#setup.gate.settled()
    this.#setup.gate.throwFailure()
    const files = slots.flatMap((slot) => slot.files)
    if (!this.#canFinish)
      await this.#record({
        kind: 'publishing',
        partition: '',
        files: files.map((file) => this.#published(file)),
        sealed,
      })
    this.#canFinish = true
    for (const file of files.slice(this.#outputs.length))
      this.#outputs.push({ ...(await file.target.complete(o)), rows: this.#rows(file.rows) })
    await this.#deleteObsolete(new Set(files.map(({ target }) => target.key)), o)
    return this.#outputs
  }

  /** Leaves nothing behind, save what a resume finishes by itself. Never throws. */
  async abort({ resumable }: { resumable: boolean }): Promise<void> {
    await this.#setup.gate.settled()
    const kept = resumable && this.#canFinish && this.#isKept()
    this.#tellHalf({ kept })
    if (kept) return
    const o = { signal: AbortSignal.timeout(DISCARD_MS) }
    await Promise.all([...this.#targets.values()].map((target) => target.abort().catch(() => undefined)))
    await this.#discardIntents(o).catch(() => undefined)
    await this.#takeBack(o).catch(() => undefined)
  }

  /** Several files are not replaced in one go: where some were and others not, that is told, for who reads them has both. */
  #tellHalf({ kept }: { kept: boolean }): void {
    const { request } = this.#setup
    const publication = readPublication(request.context.recorded)
    const [done, all] = [publication?.completed.size ?? 0, publication?.files.length ?? 0]
    if (request.options.ifExists !== 'overwrite' || done === 0 || done === all) return
    const rest = kept
      ? 'resume makes the others visible'
      : 'the others are as they were: run it again for all to be new'
    request.reporter.warn(`${done} of ${all} files of the output were made visible before this ended; ${rest}`)
  }

  /** Parts of uploads outlive a process and are found again; what a local file had on the disk is not known. */
  #isKept(): boolean {
    return /^s3:/i.test(this.#setup.request.url)
  }

  async #finishEarlier(o: Abortable): Promise<Beginning | null> {
    const publication = readPublication(this.#setup.request.context.recorded)
    if (publication === null) return null
    const outputs: Output[] = []
    for (const { key, url, bytes, rows } of publication.files) {
      const etag = publication.completed.get(key)
      const output =
        etag === undefined ? await this.#target({ key, url }).finishEarlier(bytes, o) : { url, bytes, etag, rows: null }
      if (output === null) return null
      outputs.push({ ...output, rows })
    }
    this.#outputs = outputs
    return { kind: 'finished', outputs, sealed: publication.sealed }
  }

  #slot(partition: string): Slot {
    const slot = this.#slots.get(this.#plan?.names.perPartition === true ? partition : ALL)
    if (slot === undefined) throw new SluiceError('SLUICE_INTERNAL', `no output for partition ${partition}`)
    return slot
  }

  #target(place: { key: string; url: string }): OutputTarget {
    const target = this.#targets.get(place.key) ?? this.#setup.openTarget(place)
    this.#targets.set(place.key, target)
    return target
  }

  async #append(slot: Slot, made: { pieces: readonly EncodedPiece[]; rows: number }, o: Abortable): Promise<number> {
    if (slot.closed) throw new SluiceError('SLUICE_INTERNAL', 'more of a partition that had ended')
    const apart = this.#plan?.maxFileBytes === null ? null : piecesApart(made.pieces)
    let bytes = 0
    for (const one of apart ?? [made]) if (one.pieces.length > 0) bytes += await this.#appendWhole(slot, one, o)
    return bytes
  }

  /** Into one file. */
  async #appendWhole(
    slot: Slot,
    made: { pieces: readonly EncodedPiece[]; rows: number },
    o: Abortable,
  ): Promise<number> {
    const file = await this.#fileFor(slot, made, o)
    const before = file.target.bytes
    await beginFile(file, o)
    for (const piece of made.pieces) await file.target.write([file.joiner.add(piece)], o)
    file.rows += made.rows
    return file.target.bytes - before
  }

  /** The file in hand, or its successor where the pieces would make it too long. */
  async #fileFor(slot: Slot, made: { pieces: readonly EncodedPiece[] }, o: Abortable): Promise<OpenFile> {
    const plan = this.#plan
    const file = slot.current
    if (plan === null || file === null) throw new SluiceError('SLUICE_INTERNAL', 'rows before the output was begun')
    const bytes = file.target.bytes + made.pieces.reduce((sum, piece) => sum + pieceBytes(piece), 0)
    if (plan.maxFileBytes === null || !file.begun || bytes + file.joiner.tailBytes <= plan.maxFileBytes) return file
    await closeFile(file, o)
    slot.files.push(file)
    slot.sequence += 1
    const target = this.#target(plan.names.place(slot.number, slot.sequence))
    if ((await target.begin(o)) === 'skip')
      throw new SluiceError('SLUICE_EXISTS', 'a later file of the output is there already', {
        where: { url: target.url },
        hint: 'remove it, or --if-exists overwrite',
      })
    slot.current = newFile(target, plan)
    return slot.current
  }

  async #closeSlot(slot: Slot, o: Abortable): Promise<void> {
    if (slot.closed) return
    if (slot.current !== null) {
      await closeFile(slot.current, o)
      slot.files.push(slot.current)
    }
    slot.current = null
    slot.closed = true
  }

  #rows(rows: number): number | null {
    return this.#plan?.countsRows === false ? null : rows
  }

  #published({ target, rows }: OpenFile): PublishedFile {
    return { key: target.key, url: target.url, bytes: target.bytes, rows: this.#rows(rows) }
  }

  async #discardIntents(o: Abortable): Promise<void> {
    const { store, request } = this.#setup
    for (const { partition, completed, intents } of readUploads(request.context.recorded).values())
      if (completed === null && !partition.startsWith(MANIFEST_ID))
        for (const intent of intents) await store?.discard(intent, o)
  }

  /** Files that an earlier run of the job, of another snapshot, made visible and this one does not have. */
  async #deleteObsolete(current: ReadonlySet<string>, o: Abortable): Promise<void> {
    for (const { partition, completed } of readUploads(this.#setup.request.context.recorded).values())
      if (!current.has(partition) && !partition.startsWith(MANIFEST_ID)) await this.#deleteOurs(partition, completed, o)
  }

  /** A set of which not all became visible is taken back where it replaced nothing. */
  async #takeBack(o: Abortable): Promise<void> {
    const { request } = this.#setup
    if (request.options.ifExists === 'overwrite') return
    for (const output of this.#outputs) {
      const target = [...this.#targets.values()].find(({ url }) => url === output.url)
      if (target !== undefined) await this.#deleteOurs(target.key, output, o)
    }
    const publication = readPublication(request.context.recorded)
    if (publication === null || publication.completed.size === publication.files.length) return
    for (const [key, etag] of publication.completed) await this.#deleteOurs(key, { etag }, o)
  }

  async #deleteOurs(key: string, made: { readonly etag: string | null } | null, o: Abortable): Promise<void> {
    const { store } = this.#setup
    if (store === null || made === null || made.etag === null) return
    const there = await nullIfMissing(store.head(key, o))
    if (there?.etag === made.etag) await store.delete(key, o)
  }

  async #record(entry: UploadEntry): Promise<void> {
    await this.#setup.request.context.record(entry)
  }
}

function newFile(target: OutputTarget, plan: OutputPlan): OpenFile {
  return { target, joiner: plan.encoding.openFile(), begun: false, rows: 0 }
}

async function beginFile(file: OpenFile, o: Abortable): Promise<void> {
  if (file.begun) return
  file.begun = true
  await file.target.write(await file.joiner.begin(), o)
}

async function closeFile(file: OpenFile, o: Abortable): Promise<void> {
  await beginFile(file, o)
  await file.target.write([file.joiner.end()], o)
  await file.target.close(o)
}

/** Each piece by itself, with its rows; null where they belong together. */
function piecesApart(pieces: readonly EncodedPiece[]): { pieces: readonly EncodedPiece[]; rows: number }[] | null {
  const apart = pieces.flatMap((piece) =>
    piece.kind === 'bytes' && piece.rows !== null ? [{ pieces: [piece], rows: piece.rows }] : [],
  )
  return apart.length === pieces.length ? apart : null
}

function pieceBytes(piece: EncodedPiece): number {
  if (piece.kind === 'bytes') return piece.bytes.byteLength
  return piece.kind === 'block' ? piece.block.bytes.byteLength : piece.group.body.byteLength
}

/** What failed once fails for all that comes after. */
function inTurn<T>(slot: Slot, task: () => Promise<T>): Promise<T> {
  const turn = slot.queue.then(task)
  slot.queue = turn
  turn.catch(() => undefined)
  return turn
}
