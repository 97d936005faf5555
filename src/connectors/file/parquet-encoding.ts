import { readFile } from 'node:fs/promises'
import type { Batch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import { openParquetEncoder } from '../../formats/parquet/parquet-encoder.ts'
import type { ParquetEncoder } from '../../formats/parquet/parquet-encoder.ts'
import { ParquetFile } from '../../formats/parquet/parquet-file.ts'
import { ColumnsBuilder } from '../../formats/parquet/rows-to-columns.ts'
import { alignColumns } from './output-pieces.ts'
import type { EncodedPiece, EncodingRequest, FileJoiner, LaneEncoder, OutputEncoding } from './output-pieces.ts'

/** What a row group's footer grows by when it is joined, and the file's own fields and metadata beside the schema, in bytes, about. */
const TAIL_EXTRA_BYTES = 512

/** Parquet: an extent is a row group. Memory: an extent a lane, and as much in the thread that encodes it. */
export async function openParquetEncoding(request: EncodingRequest): Promise<OutputEncoding> {
  const { options, compression } = request
  if (compression !== 'none')
    throw new SluiceError('SLUICE_USAGE', `a Parquet file is not compressed once more with ${compression}`, {
      hint: '--parquet-codec says how its pages are compressed; give it a name without the ending of a compression',
    })
  const { columns } = newBuilder(request)
  const encoder = openParquetEncoder({ columns, codec: options.parquetCodec ?? 'snappy', workers: request.lanes })
  const version = await ownVersion()
  return {
    openLane: () => openLane(request, encoder),
    openFile: () => joiner({ request, encoder, version }),
    lost: () => new Map(),
    close: () => encoder.close(),
  }
}

function newBuilder({ schema, options }: EncodingRequest): ColumnsBuilder {
  return new ColumnsBuilder({
    columns: schema.columns,
    typed: schema.typed,
    onSpecial: options.onSpecial,
  })
}

function openLane(request: EncodingRequest, encoder: ParquetEncoder): LaneEncoder {
  const builder = newBuilder(request)
  const names = request.schema.columns.map((column) => column.name)
  let groups: Promise<EncodedPiece>[] = []
  const encode = (batch: Extract<Batch, { form: 'columns' }>): void => {
    const group = encoder.encode(batch).then((made): EncodedPiece => ({ kind: 'group', group: made }))
    // Whoever takes it hears of it; until then nobody listens.
    group.catch(() => undefined)
    groups.push(group)
  }
  return {
    write: (batch) => {
      if (batch.form === 'columns') {
        if (batch.rows > 0) encode(batch)
      } else if (batch.form === 'rows') {
        alignColumns({ ...batch, rows: [] }, names)
        builder.add(batch)
      } else throw new SluiceError('SLUICE_INTERNAL', `Parquet cannot be made of ${batch.form}`)
      return Promise.resolve()
    },
    take: () => {
      if (builder.rows > 0) encode(builder.take())
      const taken = groups
      groups = []
      return Promise.all(taken)
    },
  }
}

function joiner(o: { request: EncodingRequest; encoder: ParquetEncoder; version: string }): FileJoiner {
  let file: ParquetFile | null = null
  let tailBytes = TAIL_EXTRA_BYTES
  const begun = (): ParquetFile => {
    if (file === null) throw new SluiceError('SLUICE_INTERNAL', 'a Parquet file that was not begun')
    return file
  }
  return {
    begin: async () => {
      const schemaFooter = await o.encoder.schemaFooter
      tailBytes += schemaFooter.byteLength
      file = new ParquetFile({ schemaFooter, version: o.version })
      return [file.begin()]
    },
    add: (piece) => {
      if (piece.kind !== 'group') throw new SluiceError('SLUICE_INTERNAL', `${piece.kind} in a Parquet file`)
      tailBytes += piece.group.footer.byteLength
      return begun().add(piece.group)
    },
    end: () => begun().end(o.request.metadata),
    get tailBytes() {
      return tailBytes
    },
  }
}

/** From dist/connectors/file and from src/connectors/file alike, package.json lies three folders up. */
async function ownVersion(): Promise<string> {
  const read: unknown = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8'))
  return typeof read === 'object' && read !== null && 'version' in read ? String(read.version) : ''
}
