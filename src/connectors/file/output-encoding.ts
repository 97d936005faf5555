import { rowCount } from '../../core/batch.ts'
import type { Batch, BatchForm } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import { pieceBytes } from '../../core/options.ts'
import type { CopyOptions } from '../../core/options.ts'
import type { FormatEncoder, FormatName } from '../../core/ports.ts'
import { BLOCK_BYTES, compressBlocks } from '../../compression/compress-blocks.ts'
import type { BlockCompressor, CompressedBlock } from '../../compression/compress-blocks.ts'
import { lineEndOf } from '../../formats/csv/line-ends.ts'
import { openEncoder } from './file-format.ts'
import { alignColumns } from './output-pieces.ts'
import type { EncodedPiece, EncodingRequest, FileJoiner, LaneEncoder, OutputEncoding } from './output-pieces.ts'

/** Forms that a format takes, cheapest first. */
export function formsOf(format: FormatName): readonly BatchForm[] {
  if (format === 'parquet') return ['columns', 'rows']
  return hasFixedColumns(format) ? ['csv', 'rows'] : ['rows']
}

/** Whether each row has the same columns: not in JSON, where a row says its own names. */
export function hasFixedColumns(format: FormatName): boolean {
  return format !== 'jsonl' && format !== 'dynamodb-json'
}

/** Plain bytes. */
export function rawEncoding(): OutputEncoding {
  return {
    openLane: () => {
      let pieces: EncodedPiece[] = []
      return {
        write: (batch) => {
          if (batch.form !== 'bytes') throw new SluiceError('SLUICE_INTERNAL', 'rows where plain bytes were due')
          pieces.push({ kind: 'bytes', bytes: batch.bytes, rows: null })
          return Promise.resolve()
        },
        take: () => {
          const taken = pieces
          pieces = []
          return Promise.resolve(taken)
        },
      }
    },
    openFile: () => ({
      begin: () => Promise.resolve([]),
      add: bytesOf,
      end: () => new Uint8Array(0),
      tailBytes: 0,
    }),
    lost: () => new Map(),
    close: () => Promise.resolve(),
  }
}

/** @throws SLUICE_NOT_YET, SLUICE_UNKNOWN_FORMAT, SLUICE_USAGE, SLUICE_PARQUET */
export async function openEncoding(request: EncodingRequest): Promise<OutputEncoding> {
  if (request.format === 'parquet') {
    const { openParquetEncoding } = await import('./parquet-encoding.ts')
    return openParquetEncoding(request)
  }
  const blocks = request.compression === 'none' ? null : await compressBlocks(request.compression)
  const encoding = new TextEncoding(request, blocks)
  await encoding.open()
  return encoding
}

/** CSV and JSON Lines. */
class TextEncoding implements OutputEncoding {
  readonly #request: EncodingRequest
  readonly #blocks: BlockCompressor | null
  readonly #columns: readonly string[]
  readonly #encoders: FormatEncoder[] = []
  #lineEnd: 'lf' | 'crlf' | null
  #headers: Readonly<Record<'lf' | 'crlf', Uint8Array>> = { lf: new Uint8Array(0), crlf: new Uint8Array(0) }

  constructor(request: EncodingRequest, blocks: BlockCompressor | null) {
    this.#request = request
    this.#blocks = blocks
    this.#columns = request.schema.columns.map((column) => column.name)
    const { lineEnd = 'auto' } = request.options
    this.#lineEnd = lineEnd === 'auto' ? null : lineEnd
  }

  async open(): Promise<void> {
    const { format, url } = this.#request
    const header = async (lineEnd: 'lf' | 'crlf'): Promise<Uint8Array> =>
      (await openEncoder(format, this.#columns, { url, csv: { lineEnd } })).end()
    this.#headers = { lf: await header('lf'), crlf: await header('crlf') }
  }

  openLane(): LaneEncoder {
    let encoder: Promise<FormatEncoder> | null = null
    const gather = this.#blocks === null ? plainPieces() : blockPieces(this.#blocks)
    let rowBytes: number | null = null
    return {
      write: async (batch) => {
        if (rowCount(batch) === 0) return
        if (this.#columns.length === 0 && hasFixedColumns(this.#request.format)) throw columnless(this.#request.format)
        encoder ??= this.#openEncoder(batch)
        const fixed = hasFixedColumns(this.#request.format) && (batch.form === 'csv' || batch.form === 'rows')
        const aligned = fixed ? alignColumns(batch, this.#columns) : batch
        for (const piece of divided(aligned, this.#request.options, rowBytes)) {
          const [bytes, rows] = [(await encoder).encode(piece), rowCount(piece)]
          rowBytes = bytes.byteLength / rows
          if (bytes.byteLength > 0) gather.add(bytes, rows)
        }
      },
      take: () => gather.take(),
    }
  }

  openFile(): FileJoiner {
    const file = this.#blocks?.openFile() ?? null
    return {
      begin: async () => {
        const header = this.#headers[this.#lineEnd ?? 'lf']
        if (this.#blocks === null || file === null) return [header]
        return [file.begin(), file.add(await this.#blocks.compress(header))]
      },
      add: (piece) => (file === null ? bytesOf(piece) : file.add(blockOf(piece))),
      end: () => file?.end() ?? new Uint8Array(0),
      tailBytes: file?.tailBytes ?? 0,
    }
  }

  lost(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>()
    for (const encoder of this.#encoders)
      for (const [type, count] of encoder.lost?.() ?? []) sums.set(type, (sums.get(type) ?? 0) + count)
    return sums
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** All files end their lines as the very first batch does, where nobody says how. */
  async #openEncoder(batch: Batch): Promise<FormatEncoder> {
    this.#lineEnd ??= batch.form === 'csv' ? lineEndOf(batch) : 'lf'
    const { format, url } = this.#request
    const encoder = await openEncoder(format, this.#columns, { url, csv: { lineEnd: this.#lineEnd, header: false } })
    this.#encoders.push(encoder)
    return encoder
  }
}

function columnless(format: FormatName): SluiceError {
  return new SluiceError('SLUICE_USAGE', `${format} cannot hold rows without a column, and the source has none`, {
    hint: 'JSON Lines can',
  })
}

/** Rows in pieces that a file of `--max-file-size` has room for several of. `rowBytes`: how long rows became so far. */
function* divided(batch: Batch, options: CopyOptions, rowBytes: number | null): Generator<Batch> {
  if (options.maxFileSize === undefined || batch.form !== 'rows') return yield batch
  const { rows, places, sourceBytes } = batch
  const known = rowBytes ?? (2 * sourceBytes) / Math.max(1, rows.length)
  const most = Math.max(1, Math.floor(pieceBytes(options, Number.POSITIVE_INFINITY) / Math.max(1, known)))
  for (let at = 0; at < rows.length; at += most)
    yield { ...batch, rows: rows.slice(at, at + most), places: places.slice(at, at + most) }
}

interface Gathering {
  add(bytes: Uint8Array, rows: number): void
  take(): Promise<readonly EncodedPiece[]>
}

function plainPieces(): Gathering {
  let pieces: EncodedPiece[] = []
  return {
    add: (bytes, rows) => pieces.push({ kind: 'bytes', bytes, rows }),
    take: () => {
      const taken = pieces
      pieces = []
      return Promise.resolve(taken)
    },
  }
}

/** Bytes gathered to blocks, which are compressed while more come. Memory: an extent, before and after. */
function blockPieces(compressor: BlockCompressor): Gathering {
  let chunks: Uint8Array[] = []
  let bytes = 0
  let blocks: Promise<EncodedPiece>[] = []
  const flush = (): void => {
    if (bytes === 0) return
    const block = compressor
      .compress(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks))
      .then((made): EncodedPiece => ({ kind: 'block', block: made }))
    // Whoever takes it hears of it; until then nobody listens.
    block.catch(() => undefined)
    blocks.push(block)
    chunks = []
    bytes = 0
  }
  return {
    add: (chunk) => {
      chunks.push(chunk)
      bytes += chunk.byteLength
      if (bytes >= BLOCK_BYTES) flush()
    },
    take: () => {
      flush()
      const taken = blocks
      blocks = []
      return Promise.all(taken)
    },
  }
}

function bytesOf(piece: EncodedPiece): Uint8Array {
  if (piece.kind !== 'bytes') throw new SluiceError('SLUICE_INTERNAL', `a ${piece.kind} in a file of plain bytes`)
  return piece.bytes
}

function blockOf(piece: EncodedPiece): CompressedBlock {
  if (piece.kind !== 'block') throw new SluiceError('SLUICE_INTERNAL', `a ${piece.kind} in a compressed file`)
  return piece.block
}
