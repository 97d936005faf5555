import { rowCount } from '../../core/batch.ts'
import type { Batch, BatchForm } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Extent, Output, Receipt } from '../../core/job.ts'
import type { Abortable, CompressionName, FinishResult, FormatEncoder, FormatName, Lane, Sink, SinkPlan } from '../../core/ports.ts'
import type { SinkRequest } from '../connector.ts'
import { openEncoder } from './file-format.ts'
import type { OutputTarget } from './output-target.ts'

/** Source bytes of an extent: a unit of work between two looks at the signal. */
const EXTENT_BYTES = 4 * 1024 * 1024

interface Compressor {
  write(bytes: Uint8Array): Promise<readonly Uint8Array[]>
  end(): Promise<readonly Uint8Array[]>
}

/**
 * Rows, or bytes as they are, to one output in source order: one lane. Nothing of it is taken up again after a kill: what an earlier run began
 * is removed, and it is written from the beginning.
 */
export function createRowsSink(request: SinkRequest, how: { target: OutputTarget; format: FormatName; compression: CompressionName }): Sink {
  return new RowsSink(request, how)
}

class RowsSink implements Sink {
  readonly forms: readonly BatchForm[]
  readonly lanes = { max: 1, ordered: true }
  readonly extentBytes = { target: EXTENT_BYTES, exact: false }
  readonly #request: SinkRequest
  readonly #target: OutputTarget
  readonly #format: FormatName
  readonly #compression: CompressionName
  #encoder: FormatEncoder | null = null
  #compressor: Compressor | null = null
  #columns: readonly string[] = []
  #skipped = false
  #partitions: SinkPlan['partitions'] = []
  #output: Output | null = null

  constructor(request: SinkRequest, how: { target: OutputTarget; format: FormatName; compression: CompressionName }) {
    this.#request = request
    this.#target = how.target
    this.#format = how.format
    this.#compression = how.compression
    this.forms = request.raw ? ['bytes'] : how.format === 'jsonl' ? ['rows'] : ['csv', 'rows']
  }

  async prepare(plan: SinkPlan, o: Abortable): Promise<void> {
    this.#columns = plan.schema.columns.map((column) => column.name)
    this.#partitions = plan.partitions
    if (!this.#request.raw) this.#encoder = await openEncoder(this.#format, this.#columns, this.#request.url)
    if (this.#compression !== 'none' && !this.#request.raw) this.#compressor = await openCompressor(this.#compression)
    this.#skipped = !(await this.#target.begin(o))
  }

  recover(): Promise<readonly Receipt[]> {
    return Promise.resolve(this.#skipped ? this.#partitions.map(skippedReceipt) : [])
  }

  openLane(o: Abortable): Promise<Lane> {
    return Promise.resolve({
      begin: () => Promise.resolve(),
      write: (batch) => this.#write(batch, o),
      seal: (extent) =>
        Promise.resolve({ extent, durable: false, rowsWritten: extent.rows, bytesWritten: this.#takeWritten(), state: null }),
      abort: () => Promise.resolve(),
      close: () => Promise.resolve(),
    })
  }

  async finish(receipts: readonly Receipt[], o: Abortable): Promise<FinishResult> {
    if (this.#skipped) return { outputs: [], lost: [] }
    if (this.#output === null) {
      if (this.#encoder !== null) await this.#send(this.#encoder.end(), o)
      if (this.#compressor !== null) await this.#target.write(await this.#compressor.end(), o)
      const output = await this.#target.complete(o)
      this.#output = this.#request.raw ? output : { ...output, rows: receipts.reduce((sum, receipt) => sum + receipt.rowsWritten, 0) }
    }
    return { outputs: [this.#output], lost: [] }
  }

  async abort(): Promise<void> {
    await this.#target.abort().catch(() => undefined)
  }

  close(): Promise<void> {
    return this.#target.close()
  }

  #written = 0

  #takeWritten(): number {
    const written = this.#written
    this.#written = 0
    return written
  }

  async #write(batch: Batch, o: Abortable): Promise<void> {
    if (batch.form === 'bytes') {
      this.#written += batch.bytes.byteLength
      return this.#target.write([batch.bytes], o)
    }
    if (this.#encoder === null) throw new SluiceError('SLUICE_INTERNAL', 'rows before the sink was prepared')
    if (rowCount(batch) > 0) await this.#send(this.#encoder.encode(alignColumns(batch, this.#columns)), o)
  }

  async #send(bytes: Uint8Array, o: Abortable): Promise<void> {
    const out = this.#compressor === null ? [bytes] : await this.#compressor.write(bytes)
    for (const chunk of out) this.#written += chunk.byteLength
    await this.#target.write(out, o)
  }
}

async function openCompressor(compression: CompressionName): Promise<Compressor> {
  if (compression !== 'gzip' && compression !== 'zstd') throw new SluiceError('SLUICE_NOT_YET', `writing ${compression} is not built`, { hint: '--sink-compression gzip or zstd' })
  const { compress } = await import('../../compression/compress.ts')
  return compress(compression)
}

/** Rows in the output's columns: files under a prefix may have them in another order; one more than the first had is an error, never dropped. */
function alignColumns(batch: Exclude<Batch, { form: 'bytes' }>, columns: readonly string[]): Batch {
  if (batch.columns.length === columns.length && batch.columns.every((name, i) => name === columns[i])) return batch
  const unknown = batch.columns.find((name) => !columns.includes(name))
  if (unknown !== undefined)
    throw new SluiceError('SLUICE_COLUMN_MISSING', `column "${unknown}" comes up after the output's columns were fixed`, {
      where: { row: batch.start.row + 1, byte: batch.start.byte },
      hint: 'name all columns with --columns, or choose some with --select',
    })
  if (batch.form === 'csv')
    throw new SluiceError('SLUICE_COLUMN_MISSING', `its columns are ${batch.columns.join(', ')}, where the first file has ${columns.join(', ')}`, {
      hint: '--select puts them in one order',
    })
  const from = columns.map((name) => batch.columns.indexOf(name))
  return { ...batch, columns, rows: batch.rows.map((row) => from.map((i) => (i < 0 ? undefined : row[i]))) }
}

function skippedReceipt(partition: SinkPlan['partitions'][number]): Receipt {
  const nowhere = { byte: 0, row: 0, line: 0 }
  const extent: Extent = { partition: partition.id, sequence: 0, start: nowhere, end: nowhere, rows: 0, filtered: 0, bytes: 0, last: true }
  return { extent, durable: true, rowsWritten: 0, bytesWritten: 0, state: null }
}
