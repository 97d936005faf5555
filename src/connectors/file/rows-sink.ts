import { availableParallelism } from 'node:os'
import type { Batch, BatchForm } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Output, Partition, Receipt } from '../../core/job.ts'
import { pieceBytes } from '../../core/options.ts'
import type { Abortable, CompressionName, FinishResult, FormatName, Lane, Sink, SinkPlan } from '../../core/ports.ts'
import { redactUrl } from '../../core/redact.ts'
import type { SinkRequest } from '../connector.ts'
import type { MadeFolders } from './made-folders.ts'
import { Manifest } from './manifest.ts'
import { formsOf, hasFixedColumns, openEncoding, rawEncoding } from './output-encoding.ts'
import type { LaneEncoder, OutputEncoding } from './output-pieces.ts'
import type { OutputNames } from './output-name.ts'
import { OutputSet } from './output-set.ts'
import type { OutputSetup } from './output-set.ts'
import { NOTHING_SEALED, sealedFromJson, sealedToJson, wholeReceipt, wholeReceipts } from './sealed-rows.ts'
import type { SealedRows } from './sealed-rows.ts'

const MIB = 1024 * 1024
/** Source bytes of an extent: a unit of work between two looks at the signal. Small, for the first part to leave early (4 MiB cost as much CPU in all). */
const EXTENT_BYTES = MIB
/** DuckDB's row group too, so that its readers find work for each thread; cli.md. */
const ROW_GROUP_ROWS = 122_880
const ROW_GROUP_BYTES = 32 * MIB
/** Lanes, each with a thread at work for it, where `--workers` does not say. */
const MOST_LANES = 4
const DISCARD_MS = 8_000

/** Types of DynamoDB that CSV and JSON have no form of, as a warning names them. */
const LOST_TYPES: Readonly<Record<string, string>> = {
  SS: 'string sets became arrays',
  NS: 'number sets became arrays',
  BS: 'binary sets became arrays of base64',
  B: 'binary values became base64',
}

export interface RowsOutput extends Omit<OutputSetup, 'request'> {
  readonly format: FormatName
  readonly compression: CompressionName
  /** Null for standard output. */
  readonly folders: MadeFolders | null
  /** Names of the files, now that the number of partitions is known. @throws SLUICE_USAGE */
  names(partitions: number): OutputNames
}

/**
 * Rows, or bytes as they are, to files: of a source with an order in its order, by one lane; of a table by several lanes, each of which makes its
 * extents ready by itself. Nothing is visible before all is written. After a kill all is written from the beginning, and what an earlier run
 * began is removed, unless that had all of it and lacked but the last requests.
 */
export function createRowsSink(request: SinkRequest, how: RowsOutput): Sink {
  return new RowsSink(request, how)
}

class RowsSink implements Sink {
  readonly forms: readonly BatchForm[]
  readonly wantsTypes: boolean
  readonly anyColumns: boolean
  readonly #request: SinkRequest
  readonly #how: RowsOutput
  readonly #set: OutputSet
  #unordered = false
  #partitions: readonly Partition[] = []
  #encoding: OutputEncoding | null = null
  #manifest: Manifest | null = null
  /** What an earlier run, which got to the end, wrote. */
  #earlier: { readonly outputs: readonly Output[]; readonly sealed: ReadonlyMap<string, SealedRows> } | null = null
  #told = false

  constructor(request: SinkRequest, how: RowsOutput) {
    this.#request = request
    this.#how = how
    this.#set = new OutputSet({ ...how, request })
    this.forms = request.raw ? ['bytes'] : formsOf(how.format)
    this.anyColumns = !hasFixedColumns(how.format)
    this.wantsTypes = how.format === 'parquet' && !request.raw
  }

  get lanes(): Sink['lanes'] {
    const { workers = 'auto' } = this.#request.options
    const alternating = this.#how.gate.waits
    const threads = workers === 'auto' ? Math.min(MOST_LANES, availableParallelism()) : Math.max(1, workers)
    const max = this.#unordered && !alternating ? threads : 1
    return { max, ordered: !this.#unordered, first: max, final: true, alternating }
  }

  get extentBytes(): { target: number; exact: boolean; rows?: number } {
    const { options } = this.#request
    const { rowGroupBytes = ROW_GROUP_BYTES, rowGroupRows = ROW_GROUP_ROWS } = options
    if (this.wantsTypes) return { target: pieceBytes(options, rowGroupBytes), exact: false, rows: rowGroupRows }
    return { target: pieceBytes(options, EXTENT_BYTES), exact: false }
  }

  async prepare(plan: SinkPlan, o: Abortable): Promise<void> {
    const { raw, options } = this.#request
    this.#unordered = plan.unordered && !raw
    this.#partitions = plan.partitions
    const names = this.#how.names(plan.partitions.length)
    if (options.manifest !== undefined) this.#manifest = await Manifest.open(this.#request, options.manifest)
    const encoding = raw ? rawEncoding() : await this.#openEncoding(plan)
    this.#encoding = encoding
    const { key } = names.place(1, 1)
    await this.#how.folders?.make(key)
    await this.#how.store?.checkPlace(key, o)
    await this.#manifest?.begin(o)
    const { partitions } = plan
    const maxFileBytes = options.maxFileSize ?? null
    const beginning = await this.#set.begin({ partitions, names, encoding, countsRows: !raw, maxFileBytes }, o)
    if (beginning.kind === 'finished')
      this.#earlier = { outputs: beginning.outputs, sealed: sealedFromJson(beginning.sealed) }
  }

  recover(): Promise<readonly Receipt[]> {
    if (this.#earlier !== null) return Promise.resolve(wholeReceipts(this.#partitions, this.#earlier.sealed))
    const skipped = this.#partitions.filter((partition) => this.#set.isSkipped(partition.id))
    return Promise.resolve(skipped.map((partition) => wholeReceipt(partition, NOTHING_SEALED)))
  }

  openLane(o: Abortable): Promise<Lane> {
    if (this.#encoding === null) throw new SluiceError('SLUICE_INTERNAL', 'a lane before the sink was prepared')
    return Promise.resolve(this.#lane(this.#encoding.openLane(), o))
  }

  async endPartition(partition: Partition, _receipts: readonly Receipt[], o: Abortable): Promise<void> {
    if (this.#earlier === null) await this.#set.endPartition(partition.id, o)
  }

  async finish(receipts: readonly Receipt[], o: Abortable): Promise<FinishResult> {
    const outputs = this.#earlier?.outputs ?? (await this.#set.finish(sealedToJson(receipts), o))
    this.#tellLostTypes()
    await this.#manifest?.write(outputs, { ...o, format: this.#how.format })
    return { outputs, lost: [] }
  }

  async abort(_reason: unknown, o: { readonly resumable: boolean }): Promise<void> {
    await this.#set.abort(o)
    await this.#manifest?.abort({ signal: AbortSignal.timeout(DISCARD_MS) })
    await this.#how.folders?.remove()
  }

  async close(): Promise<void> {
    await this.#encoding?.close()
    await this.#manifest?.close()
    await this.#how.store?.close()
  }

  #lane(encoder: LaneEncoder, o: Abortable): Lane {
    return {
      begin: () => Promise.resolve(),
      write: (batch: Batch) => encoder.write(batch),
      seal: async (extent) => {
        const pieces = await encoder.take()
        o.signal.throwIfAborted()
        const bytesWritten = await this.#set.append(extent.partition, { pieces, rows: extent.rows }, o)
        return { extent, durable: false, rowsWritten: extent.rows, bytesWritten, state: null }
      },
      abort: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }
  }

  #openEncoding(plan: SinkPlan): Promise<OutputEncoding> {
    const { options, url, sourceUrl, context } = this.#request
    const { format, compression } = this.#how
    return openEncoding({
      ...{ format, compression, options, url: redactUrl(url), schema: plan.schema, form: plan.form },
      lanes: this.lanes.max,
      metadata: { 'sluice.source': redactUrl(sourceUrl), 'sluice.job': context.jobId },
    })
  }

  /** One warning of all values that lost their type, where the source is one that has such types. */
  #tellLostTypes(): void {
    const { sourceUrl, options, context } = this.#request
    if (this.#told) return
    this.#told = true
    // Sets say by themselves that they come from DynamoDB; binary is in other sources, too.
    const isDynamo = /^dynamodb:/i.test(sourceUrl) || options.sourceFormat === 'dynamodb-json'
    const counted = [...(this.#encoding?.lost() ?? [])].filter(([type]) => isDynamo || type !== 'B')
    const lost = counted.map(([type, count]) => `${count} ${LOST_TYPES[type] ?? type}`)
    if (lost.length > 0)
      context.warn(`${lost.join(', ')}: ${this.#how.format} has no such type; dynamodb-json keeps it (--sink-format)`)
  }
}
