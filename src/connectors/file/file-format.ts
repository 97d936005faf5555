import { SluiceError } from '../../core/errors.ts'
import type { CopyOptions } from '../../core/options.ts'
import type { CompressionName, FormatEncoder, FormatName, FormatReader } from '../../core/ports.ts'
import { compressionOfName, stripCompressionExtension } from '../../compression/detect.ts'
import type { CsvWriteOptions } from '../../formats/csv/csv-encoder.ts'
import type { CsvReadOptions } from '../../formats/csv/csv-reader.ts'

const ENDINGS: Readonly<Record<string, FormatName>> = {
  csv: 'csv',
  tsv: 'tsv',
  tab: 'tsv',
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  json: 'jsonl',
  parquet: 'parquet',
  // Impala, Dask and fastparquet name theirs so.
  parq: 'parquet',
  pq: 'parquet',
}

export const SOURCE_FORMATS_HINT = 'say --source-format csv, tsv, jsonl, parquet or dynamodb-json'

/** Also for who names standard output by its device. */
export function sinkFormatsHint(url: string): string {
  const formats = 'say --sink-format csv, tsv, jsonl, parquet or dynamodb-json'
  return isOwnDevice(url) ? `standard output is written -; ${formats}` : formats
}

/** Names of the process's own streams in the file system. */
export function isOwnDevice(path: string): boolean {
  return /^\/(?:dev\/(?:stdout|fd\/\d+)|proc\/self\/fd\/\d+)$/.test(path)
}

/** A row may be this long where `--max-memory` does not say: PostgreSQL takes no field of 1 GB or more, and Node no string past 512 MiB. */
const LONGEST_ROW_BYTES = 256 * 1024 * 1024

/** Format by the name's ending, below the ending of a compression; null where there is no known one. */
export function formatOfName(name: string): FormatName | null {
  const plain = stripCompressionExtension(name)
  const dot = plain.lastIndexOf('.')
  const ending = dot < 0 ? '' : plain.slice(dot + 1).toLowerCase()
  return Object.hasOwn(ENDINGS, ending) ? (ENDINGS[ending] ?? null) : null
}

/** Compression by the name's ending; `none` where there is no known one. */
export function compressionByName(name: string): CompressionName {
  return compressionOfName(name) ?? 'none'
}

/** @throws SLUICE_NOT_YET, SLUICE_UNKNOWN_FORMAT, SLUICE_USAGE */
export async function openReader(format: FormatName, options: CopyOptions, url: string): Promise<FormatReader> {
  const maxRowBytes =
    options.maxMemory === undefined ? LONGEST_ROW_BYTES : Math.max(1024 * 1024, Math.floor(options.maxMemory / 4))
  const text = {
    ...(options.encoding === undefined ? {} : { encoding: options.encoding }),
    ...(options.onInvalidUtf8 === undefined ? {} : { onInvalidUtf8: options.onInvalidUtf8 }),
    ...(options.onNul === undefined ? {} : { onNul: options.onNul }),
    ...(options.columns === undefined ? {} : { columns: options.columns }),
    maxRowBytes,
  }
  switch (format) {
    case 'csv':
    case 'tsv': {
      const { createCsvReader } = await import('../../formats/csv/csv-reader.ts')
      return createCsvReader({ ...text, ...csvOptions(format, options) })
    }
    case 'jsonl': {
      const { createJsonLinesReader } = await import('../../formats/jsonl/jsonl-reader.ts')
      return createJsonLinesReader(text)
    }
    case 'parquet':
      // Files and objects of their own are read by parquet-source.ts.
      throw new SluiceError('SLUICE_USAGE', 'Parquet is read by ranges: it must be a file of its own, not compressed', {
        where: { url },
        hint: 'unpack it first',
      })
    case 'dynamodb-json': {
      const { createDynamoJsonReader } = await import('../../formats/dynamodb-json/dynamodb-json-reader.ts')
      return createDynamoJsonReader(text)
    }
    case 'raw':
      throw new SluiceError('SLUICE_UNKNOWN_FORMAT', 'the name does not tell the format', {
        where: { url },
        hint: SOURCE_FORMATS_HINT,
      })
  }
}

function csvOptions(format: 'csv' | 'tsv', options: CopyOptions): Omit<CsvReadOptions, 'maxRowBytes'> {
  const delimiter = options.delimiter ?? (format === 'tsv' ? '\t' : undefined)
  return {
    ...(delimiter === undefined ? {} : { delimiter }),
    ...(options.quote === undefined ? {} : { quote: options.quote }),
    ...(options.escape === undefined ? {} : { escape: options.escape }),
    ...(options.header === undefined ? {} : { header: options.header }),
    ...(options.skipLines === undefined ? {} : { skipLines: options.skipLines }),
    ...(options.null === undefined ? {} : { nulls: options.null }),
    ...(options.empty === undefined ? {} : { empty: options.empty }),
    ...(options.ragged === undefined ? {} : { ragged: options.ragged }),
    ...(options.byPosition === undefined ? {} : { byPosition: options.byPosition }),
  }
}

/** @throws SLUICE_NOT_YET, SLUICE_UNKNOWN_FORMAT */
export async function openEncoder(
  format: FormatName,
  columns: readonly string[],
  o: { readonly url: string; readonly csv?: Pick<CsvWriteOptions, 'lineEnd' | 'header'> | undefined },
): Promise<FormatEncoder> {
  switch (format) {
    case 'csv':
    case 'tsv': {
      const { createCsvEncoder } = await import('../../formats/csv/csv-encoder.ts')
      return createCsvEncoder({ columns, ...o.csv, ...(format === 'tsv' ? { delimiter: '\t' } : {}) })
    }
    case 'jsonl': {
      const { createJsonLinesEncoder } = await import('../../formats/jsonl/jsonl-encoder.ts')
      return createJsonLinesEncoder({ columns })
    }
    case 'parquet':
      throw new SluiceError('SLUICE_NOT_YET', `${format} is specified and not built yet`, { where: { url: o.url } })
    case 'dynamodb-json': {
      const { createDynamoJsonEncoder } = await import('../../formats/dynamodb-json/dynamodb-json-encoder.ts')
      return createDynamoJsonEncoder()
    }
    case 'raw':
      throw new SluiceError('SLUICE_UNKNOWN_FORMAT', 'the name does not tell the format', {
        where: { url: o.url },
        hint: sinkFormatsHint(o.url),
      })
  }
}
