import { SluiceError } from '../../core/errors.ts'
import type { CsvShape } from '../../core/batch.ts'

/** How a CSV file is to be read; absent means cli.md's default. Sizes are bytes. */
export interface CsvReadOptions {
  /** One character; default `,`. One that is not ASCII is read, and leaves the reader as a comma. */
  readonly delimiter?: string
  /** One ASCII character, or `none`; default `"`. */
  readonly quote?: string
  /** One ASCII character; default: the quote. */
  readonly escape?: string
  /** Whether the first record holds names. Default true, and false where `columns` is given. */
  readonly header?: boolean
  /** Names, in place of a header's where `header` is true as well. */
  readonly columns?: readonly string[]
  /** Physical lines to drop before anything is read. */
  readonly skipLines?: number
  /** Words that are NULL where they are a whole unquoted field. */
  readonly nulls?: readonly string[]
  /** What an unquoted empty field is. */
  readonly empty?: 'null' | 'string' | 'omit'
  readonly ragged?: 'reject' | 'fill' | 'trim'
  /** A WHATWG name. A byte-order mark wins over it. */
  readonly encoding?: string
  readonly onInvalidUtf8?: 'error' | 'reject' | 'replace'
  readonly onNul?: 'error' | 'reject' | 'strip'
  /** Names do not matter: duplicate and empty ones are replaced. */
  readonly byPosition?: boolean
  /** A longer record is an error: it has to be in memory whole. */
  readonly maxRowBytes: number
}

/** Bytes that structure a file, as numbers; -1 for none. */
export interface CsvBytes {
  /** The delimiter in UTF-8: 1 to 4 bytes. */
  readonly delimiter: Uint8Array
  readonly quote: number
  readonly escape: number
}

/** Options checked, with their defaults. */
export interface CsvDialect extends CsvBytes {
  readonly header: boolean
  readonly columns: readonly string[] | null
  readonly skipLines: number
  /** Each in UTF-8. */
  readonly nulls: readonly Buffer[]
  readonly empty: 'null' | 'string' | 'omit'
  readonly ragged: 'reject' | 'fill' | 'trim'
  readonly encoding: string | null
  readonly onInvalidUtf8: 'error' | 'reject' | 'replace'
  readonly onNul: 'error' | 'reject' | 'strip'
  readonly byPosition: boolean
  readonly maxRowBytes: number
  /** The shape in which `csv` batches leave: the file's own where COPY can have it, else one that it can. */
  readonly shape: CsvShape
}

/**
 * Checks options and fills in defaults.
 *
 * @throws SLUICE_USAGE for characters that cannot mean what they are said to mean
 */
export function createDialect(options: CsvReadOptions): CsvDialect {
  const bytes = dialectBytes(options)
  const columns = options.columns ?? null
  const skipLines = options.skipLines ?? 0
  if (!Number.isSafeInteger(skipLines) || skipLines < 0) throw usage('--skip-lines wants a whole number from 0 on')
  if (columns !== null) checkColumns(columns)
  const nulls = options.nulls ?? []
  for (const word of nulls) if (/[\r\n]/.test(word)) throw usage('--null cannot hold a line end')
  return {
    ...bytes,
    header: options.header ?? columns === null,
    columns,
    skipLines,
    nulls: [...new Set(nulls)].map((word) => Buffer.from(word)),
    empty: options.empty ?? 'null',
    ragged: options.ragged ?? 'reject',
    encoding: options.encoding === undefined ? null : encodingName(options.encoding),
    onInvalidUtf8: options.onInvalidUtf8 ?? 'error',
    onNul: options.onNul ?? 'error',
    byPosition: options.byPosition ?? false,
    maxRowBytes: options.maxRowBytes,
    shape: shapeOf(bytes),
  }
}

/**
 * Bytes of a shape.
 *
 * @throws SLUICE_USAGE
 */
export function shapeBytes(shape: CsvShape): CsvBytes {
  return dialectBytes({ delimiter: shape.delimiter, quote: shape.quote ?? 'none', escape: shape.escape })
}

function dialectBytes(options: {
  readonly delimiter?: string
  readonly quote?: string
  readonly escape?: string
}): CsvBytes {
  const delimiter = options.delimiter ?? ','
  if ([...delimiter].length !== 1) throw usage('--delimiter wants exactly one character')
  if (/[\r\n\0\ufeff\ufffd\ud800-\udfff]/u.test(delimiter))
    throw usage('--delimiter cannot be a line end, NUL or an invalid character')
  if (options.quote === 'none') {
    return { delimiter: Buffer.from(delimiter), quote: -1, escape: -1 }
  }
  const quote = asciiByte('--quote', options.quote ?? '"')
  const escape = options.escape === undefined || options.escape === '' ? quote : asciiByte('--escape', options.escape)
  const delimiterByte = delimiter.charCodeAt(0)
  if (delimiterByte === quote) throw usage('--delimiter and --quote are the same character')
  if (delimiterByte === escape) throw usage('--delimiter and --escape are the same character')
  return { delimiter: Buffer.from(delimiter), quote, escape }
}

function asciiByte(flag: string, text: string): number {
  const code = text.charCodeAt(0)
  if (text.length !== 1 || code > 0x7f)
    throw usage(`${flag} wants one ASCII character${flag === '--quote' ? ', or none' : ''}`)
  if (code === 0 || code === 10 || code === 13) throw usage(`${flag} cannot be a line end or NUL`)
  return code
}

/**
 * Without quotes of its own a file still needs some where COPY would not take a field bare (a lone CR, a lone `\.`), and a quote in
 * it has to be told from those; a delimiter of several bytes is one that COPY does not take.
 */
function shapeOf(bytes: CsvBytes): CsvShape {
  const quote = bytes.quote < 0 ? (bytes.delimiter[0] === 0x22 ? "'" : '"') : String.fromCharCode(bytes.quote)
  const escape = bytes.escape < 0 ? quote : String.fromCharCode(bytes.escape)
  const single = bytes.delimiter.length === 1
  const delimiter = single
    ? Buffer.from(bytes.delimiter).toString('latin1')
    : [',', ';', '|'].find((c) => c !== quote && c !== escape)
  return { delimiter: delimiter ?? ',', quote, escape }
}

function checkColumns(columns: readonly string[]): void {
  if (columns.length === 0 || columns.some((name) => name === '')) throw usage('--columns has an empty name')
  const twice = columns.find((name, i) => columns.indexOf(name) !== i)
  if (twice !== undefined) throw usage(`--columns names ${twice} twice`)
}

function encodingName(name: string): string {
  try {
    return new TextDecoder(name, { fatal: true }).encoding
  } catch {
    throw usage(
      `--encoding ${name} is not known here`,
      'use a WHATWG name: utf-8, windows-1252, utf-16le, shift_jis, gb18030 …',
    )
  }
}

function usage(message: string, hint?: string): SluiceError {
  return new SluiceError('SLUICE_USAGE', message, { hint })
}
