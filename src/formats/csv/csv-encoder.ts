import type { Batch, CsvBatch, CsvShape, RowsBatch, Value } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { FormatEncoder } from '../../core/ports.ts'
import { countLost, type LostTypes, plainJson } from '../typed-json.ts'
import { ByteWriter } from './byte-writer.ts'
import { shapeBytes } from './dialect.ts'
import { lineEndOf, withLineEnd } from './line-ends.ts'
import { CR, LF, PLAIN, recordCursor } from './record-cursor.ts'

/** How a CSV file is to be written; absent means cli.md's default. */
export interface CsvWriteOptions {
  readonly columns: readonly string[]
  /** One ASCII character; default `,`. */
  readonly delimiter?: string
  /** One ASCII character; default `"`. Output always has quotes where they are needed. */
  readonly quote?: string
  /** Default: the quote. */
  readonly escape?: string
  /** Whether names come first. Default true. */
  readonly header?: boolean
  /** Default: as in the first batch where that is CSV itself, else LF. */
  readonly lineEnd?: 'lf' | 'crlf'
}

/** A shape with what `encodeCopyRows` has to know besides. */
export interface CopyRowsOptions {
  readonly shape: CsvShape
  /** Text of binary values, as the column takes it (`\x…` for bytea). */
  readonly formatBinary: (bytes: Uint8Array) => string
}

/**
 * Writes CSV: a header, NULL as nothing, the empty string as `""`, quotes where a value needs them.
 *
 * @throws SLUICE_USAGE for characters that cannot mean what the options say
 */
export function createCsvEncoder(options: CsvWriteOptions): FormatEncoder {
  const quote = options.quote ?? '"'
  const shape: CsvShape = { delimiter: options.delimiter ?? ',', quote, escape: options.escape ?? quote }
  const lost: LostTypes = new Map()
  const formatBinary = (bytes: Uint8Array): string => {
    countLost(lost, 'B')
    return base64(bytes)
  }
  const writers = {
    lf: new RowWriter({ shape, crlf: false, formatBinary, lost }),
    crlf: new RowWriter({ shape, crlf: true, formatBinary, lost }),
  }
  let lineEnd = options.lineEnd
  let begun = options.header === false
  const header = (): Uint8Array => {
    if (begun) return new Uint8Array(0)
    begun = true
    return writers[lineEnd ?? 'lf'].header(options.columns)
  }
  return {
    encode: (batch) => {
      lineEnd ??= batch.form === 'csv' ? lineEndOf(batch) : 'lf'
      return joined(header(), encodeBatch(batch, { rows: writers[lineEnd], shape, lineEnd }))
    },
    end: header,
    lost: () => lost,
  }
}

/**
 * Rows as the bytes that `COPY … FROM STDIN (FORMAT csv)` of the shape reads to the same values, lines ended by LF: null and undefined as nothing,
 * the empty string quoted, true and false as such, numbers and JSON by their text, binary by `formatBinary`. Bytes of a few hundred KiB, as
 * the batch is. A shape without quotes cannot hold every value and is refused.
 *
 * @throws SLUICE_USAGE
 */
export function encodeCopyRows(batch: RowsBatch, options: CopyRowsOptions): Uint8Array {
  return new RowWriter({ ...options, crlf: false }).encode(batch)
}

function encodeBatch(batch: Batch, o: { rows: RowWriter; shape: CsvShape; lineEnd: 'lf' | 'crlf' }): Uint8Array {
  if (batch.form === 'rows') return o.rows.encode(batch)
  if (batch.form === 'csv') return sameShape(batch, o.shape) ? withLineEnd(batch, o.lineEnd) : o.rows.reencode(batch)
  throw new SluiceError('SLUICE_INTERNAL', 'plain bytes are not rows: they are copied, not encoded')
}

/** Whether the fields of a batch are already as they would be written. */
function sameShape({ csv, quoted }: CsvBatch, shape: CsvShape): boolean {
  if (csv.delimiter !== shape.delimiter || csv.quote !== shape.quote) return false
  return !quoted || csv.escape === shape.escape
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  return a.byteLength === 0 ? b : Buffer.concat([a, b])
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

class RowWriter {
  readonly #delimiter: number
  readonly #quote: number
  readonly #crlf: boolean
  readonly #formatBinary: (bytes: Uint8Array) => string
  readonly #special: RegExp
  readonly #escaped: RegExp
  readonly #e: string
  readonly #lost: LostTypes | undefined

  constructor(o: CopyRowsOptions & { readonly crlf: boolean; readonly lost?: LostTypes }) {
    const { delimiter, quote, escape } = shapeBytes(o.shape)
    if (quote < 0 || o.shape.quote === null)
      throw new SluiceError('SLUICE_USAGE', 'CSV is not written without a quote character')
    if (delimiter.length !== 1)
      throw new SluiceError('SLUICE_USAGE', 'CSV is not written with a delimiter of several bytes')
    this.#delimiter = delimiter[0] as number
    this.#quote = quote
    this.#crlf = o.crlf
    this.#formatBinary = o.formatBinary
    this.#lost = o.lost
    this.#e = String.fromCharCode(escape)
    const [d, q, e] = [this.#delimiter, quote, escape].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`)
    this.#special = new RegExp(`[${d}${q}\\r\\n]`)
    this.#escaped = new RegExp(`[${q}${e}]`, 'g')
  }

  /** Names; an empty one is written as `""`. */
  header(columns: readonly string[]): Uint8Array {
    const out = new ByteWriter(columns.length * 16)
    this.#row(out, columns, columns.length)
    return out.take()
  }

  encode(batch: RowsBatch): Uint8Array {
    const out = new ByteWriter(batch.sourceBytes + batch.rows.length * 2 + 1024)
    for (const row of batch.rows) this.#row(out, row, batch.columns.length)
    return out.take()
  }

  /** A csv batch of another shape. */
  reencode(batch: CsvBatch): Uint8Array {
    const cursor = recordCursor(batch.bytes, batch.csv)
    const out = new ByteWriter(batch.bytes.byteLength + batch.rows * 2 + 1024)
    const row: Value[] = []
    while (cursor.next() === 'row') {
      row.length = 0
      for (let j = 0; j < cursor.count; j += 1) {
        const empty = cursor.kinds[j] === PLAIN && cursor.starts[j] === cursor.ends[j]
        row.push(empty ? null : cursor.text(j))
      }
      this.#row(out, row, row.length)
    }
    return out.take()
  }

  #row(out: ByteWriter, row: readonly Value[], width: number): void {
    for (let j = 0; j < width; j += 1) {
      if (j > 0) out.byte(this.#delimiter)
      const value = row[j]
      if (value === null || value === undefined) continue
      this.#text(out, this.#textOf(value), width === 1)
    }
    if (this.#crlf) out.byte(CR)
    out.byte(LF)
  }

  #textOf(value: Exclude<Value, null | undefined>): string {
    if (typeof value === 'string') return value
    if (typeof value === 'boolean') return value ? 'true' : 'false'
    if (value instanceof Uint8Array) return this.#formatBinary(value)
    return value.kind === 'typed-json' ? plainJson(value.text, this.#lost) : value.text
  }

  /** A line `\.` of its own would end the data for COPY of PostgreSQL before 18. */
  #text(out: ByteWriter, text: string, alone: boolean): void {
    if (text !== '' && !this.#special.test(text) && !(alone && text === '\\.')) return out.text(text)
    out.byte(this.#quote)
    out.text(text.replace(this.#escaped, (c) => this.#e + c))
    out.byte(this.#quote)
  }
}
