import { rowCount } from '../../core/batch.ts'
import type { Batch, BatchForm, CsvBatch, RowsBatch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Extent, Json, Output, Receipt } from '../../core/job.ts'
import type {
  Abortable,
  CompressionName,
  FinishResult,
  FormatEncoder,
  FormatName,
  Lane,
  Sink,
  SinkPlan,
} from '../../core/ports.ts'
import type { SinkRequest } from '../connector.ts'
import { openEncoder } from './file-format.ts'
import type { OutputTarget } from './output-target.ts'

/** Source bytes of an extent: a unit of work between two looks at the signal. */
const EXTENT_BYTES = 4 * 1024 * 1024

/** Types of DynamoDB that CSV and JSON have no form of, as a warning names them. */
const LOST_TYPES: Readonly<Record<string, string>> = {
  SS: 'string sets became arrays',
  NS: 'number sets became arrays',
  BS: 'binary sets became arrays of base64',
  B: 'binary values became base64',
}

interface Compressor {
  write(bytes: Uint8Array): Promise<readonly Uint8Array[]>
  end(): Promise<readonly Uint8Array[]>
}

/**
 * Rows, or bytes as they are, to one output in source order: one lane. After a kill it is written from the beginning, and what an earlier run
 * began is removed, unless that had all of it and lacked but the last request.
 */
export function createRowsSink(
  request: SinkRequest,
  how: { target: OutputTarget; format: FormatName; compression: CompressionName },
): Sink {
  return new RowsSink(request, how)
}

class RowsSink implements Sink {
  readonly forms: readonly BatchForm[]
  /** JSON, where a row says its own names. */
  readonly anyColumns: boolean
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
  /** What an earlier run, which got to the end, wrote of each partition. */
  #earlier: ReadonlyMap<string, SealedRows> = new Map()

  constructor(request: SinkRequest, how: { target: OutputTarget; format: FormatName; compression: CompressionName }) {
    this.#request = request
    this.#target = how.target
    this.#format = how.format
    this.#compression = how.compression
    this.anyColumns = how.format === 'jsonl' || how.format === 'dynamodb-json'
    this.forms = request.raw ? ['bytes'] : this.anyColumns ? ['rows'] : ['csv', 'rows']
  }

  async prepare(plan: SinkPlan, o: Abortable): Promise<void> {
    this.#columns = plan.schema.columns.map((column) => column.name)
    this.#partitions = plan.partitions
    if (!this.#request.raw) this.#encoder = await openEncoder(this.#format, this.#columns, this.#request.url)
    if (this.#compression !== 'none' && !this.#request.raw) this.#compressor = await openCompressor(this.#compression)
    const beginning = await this.#target.begin(o)
    this.#skipped = beginning.kind === 'skip'
    if (beginning.kind !== 'finished') return
    this.#earlier = sealedFromJson(beginning.sealed)
    this.#output = this.#withRows(beginning.output, [...this.#earlier.values()])
  }

  recover(): Promise<readonly Receipt[]> {
    if (!this.#skipped && this.#output === null) return Promise.resolve([])
    return Promise.resolve(
      this.#partitions.map((partition) => wholeReceipt(partition, this.#earlier.get(partition.id) ?? NOTHING_SEALED)),
    )
  }

  openLane(o: Abortable): Promise<Lane> {
    return Promise.resolve({
      begin: () => Promise.resolve(),
      write: (batch) => this.#write(batch, o),
      seal: (extent) =>
        Promise.resolve({
          extent,
          durable: false,
          rowsWritten: extent.rows,
          bytesWritten: this.#takeWritten(),
          state: null,
        }),
      abort: () => Promise.resolve(),
      close: () => Promise.resolve(),
    })
  }

  async finish(receipts: readonly Receipt[], o: Abortable): Promise<FinishResult> {
    if (this.#skipped) return { outputs: [], lost: [] }
    if (this.#output === null) {
      if (this.#encoder !== null) await this.#send(this.#encoder.end(), o)
      this.#tellLostTypes()
      if (this.#compressor !== null) await this.#target.write(await this.#compressor.end(), o)
      this.#output = this.#withRows(await this.#target.complete(sealedToJson(receipts), o), receipts)
    }
    return { outputs: [this.#output], lost: [] }
  }

  #withRows(output: Output, counts: readonly { rowsWritten: number }[]): Output {
    return this.#request.raw
      ? output
      : { ...output, rows: counts.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0) }
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
    if (this.#encoder === null || batch.form === 'columns')
      throw new SluiceError('SLUICE_INTERNAL', 'rows before the sink was prepared, or in columns')
    if (rowCount(batch) === 0) return
    await this.#send(this.#encoder.encode(this.anyColumns ? batch : alignColumns(batch, this.#columns)), o)
  }

  /** One warning of all values that lost their type, where the source is one that has such types. */
  #tellLostTypes(): void {
    const { sourceUrl, options, context } = this.#request
    if (!/^dynamodb:/i.test(sourceUrl) && options.sourceFormat !== 'dynamodb-json') return
    const lost = [...(this.#encoder?.lost?.() ?? [])].map(([type, count]) => `${count} ${LOST_TYPES[type] ?? type}`)
    if (lost.length > 0)
      context.warn(`${lost.join(', ')}: ${this.#format} has no such type; dynamodb-json keeps it (--sink-format)`)
  }

  async #send(bytes: Uint8Array, o: Abortable): Promise<void> {
    const out = this.#compressor === null ? [bytes] : await this.#compressor.write(bytes)
    for (const chunk of out) this.#written += chunk.byteLength
    await this.#target.write(out, o)
  }
}

async function openCompressor(compression: CompressionName): Promise<Compressor> {
  if (compression !== 'gzip' && compression !== 'zstd')
    throw new SluiceError('SLUICE_NOT_YET', `writing ${compression} is not built`, {
      hint: '--sink-compression gzip or zstd',
    })
  const { compress } = await import('../../compression/compress.ts')
  return compress(compression)
}

/** Rows in the output's columns: files under a prefix may have them in another order; one more than the first had is an error, never dropped. */
function alignColumns(batch: CsvBatch | RowsBatch, columns: readonly string[]): Batch {
  if (batch.columns.length === columns.length && batch.columns.every((name, i) => name === columns[i])) return batch
  const unknown = batch.columns.find((name) => !columns.includes(name))
  if (unknown !== undefined)
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `column "${unknown}" comes up after the output's columns were fixed`,
      {
        where: { row: batch.start.row + 1, byte: batch.start.byte },
        hint: 'name all columns with --columns, or choose some with --select',
      },
    )
  if (batch.form === 'csv')
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `its columns are ${batch.columns.join(', ')}, where the first file has ${columns.join(', ')}`,
      {
        hint: '--select puts them in one order',
      },
    )
  const from = columns.map((name) => batch.columns.indexOf(name))
  return { ...batch, columns, rows: batch.rows.map((row) => from.map((i) => (i < 0 ? undefined : row[i]))) }
}

/** What was written of a partition, all its extents together. */
interface SealedRows {
  readonly rows: number
  readonly filtered: number
  /** Bytes of source data. */
  readonly bytes: number
  readonly rowsWritten: number
  readonly bytesWritten: number
}

const NOTHING_SEALED: SealedRows = { rows: 0, filtered: 0, bytes: 0, rowsWritten: 0, bytesWritten: 0 }

function wholeReceipt(partition: SinkPlan['partitions'][number], sealed: SealedRows): Receipt {
  const { rows, filtered, bytes, rowsWritten, bytesWritten } = sealed
  const start = { byte: 0, row: 0, line: 0 }
  const extent: Extent = { partition: partition.id, sequence: 0, start, end: start, rows, filtered, bytes, last: true }
  return { extent, durable: true, rowsWritten, bytesWritten, state: null }
}

/** `[[partition, rows, filtered, bytes, rowsWritten, bytesWritten], …]` */
function sealedToJson(receipts: readonly Receipt[]): Json {
  const sums = new Map<string, SealedRows>()
  for (const { extent, rowsWritten, bytesWritten } of receipts) {
    const sum = sums.get(extent.partition) ?? NOTHING_SEALED
    sums.set(extent.partition, {
      rows: sum.rows + extent.rows,
      filtered: sum.filtered + extent.filtered,
      bytes: sum.bytes + extent.bytes,
      rowsWritten: sum.rowsWritten + rowsWritten,
      bytesWritten: sum.bytesWritten + bytesWritten,
    })
  }
  return [...sums].map(([id, sum]) => [id, sum.rows, sum.filtered, sum.bytes, sum.rowsWritten, sum.bytesWritten])
}

/** @throws SLUICE_STATE */
function sealedFromJson(json: Json): Map<string, SealedRows> {
  const sums = new Map<string, SealedRows>()
  for (const entry of Array.isArray(json) ? json : []) {
    const [id, ...counts]: readonly Json[] = Array.isArray(entry) ? entry : []
    const [rows = 0, filtered = 0, bytes = 0, rowsWritten = 0, bytesWritten = 0] = counts.filter(
      (count) => typeof count === 'number',
    )
    if (typeof id !== 'string') throw new SluiceError('SLUICE_STATE', 'the record of a finished output is damaged')
    sums.set(id, { rows, filtered, bytes, rowsWritten, bytesWritten })
  }
  return sums
}
