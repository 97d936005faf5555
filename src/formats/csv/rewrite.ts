import { isAscii } from 'node:buffer'
import type { CsvBatch, CsvShape } from '../../core/batch.ts'
import { giveBack } from '../../core/lent-buffers.ts'
import { ByteWriter } from './byte-writer.ts'
import { placesIn, rememberPlaces } from './locate.ts'
import { CR, ESCAPED, LF, PLAIN, recordCursor } from './record-cursor.ts'
import type { RecordCursor } from './record-cursor.ts'
import { walkRecords } from './record-walk.ts'
import type { FieldRanges } from './record-walk.ts'

/** One field of a record that is written anew. */
export interface RewrittenField {
  /** Position in the batch; null for a constant. */
  readonly from: number | null
  readonly constant: string | null
  /** What becomes of a value that is there; null where nothing does. */
  readonly change: ((text: string) => string) | null
}

/** What becomes of the records of a batch. */
export interface RecordPlan {
  /** Their names afterwards, in the order of `fields`. */
  readonly columns: readonly string[]
  readonly fields: readonly RewrittenField[]
  /** Positions in the batch: a record is left out where one of these is empty. */
  readonly skipIfEmpty: readonly number[]
}

/**
 * A batch with its records written anew: fields chosen, changed and set, records left out. The same values as its parsed rows would have after
 * the same, in the same shape, and `locateRecord` still tells where each record was. Nobody may look at the batch afterwards.
 *
 * @throws SLUICE_CSV_FIELD_COUNT with the place
 */
export function rewriteRecords(batch: CsvBatch, plan: RecordPlan): CsvBatch {
  const writer = new RecordWriter(batch, plan)
  const before = placesIn(batch.bytes)
  const places = new Uint32Array(batch.rows * 2)
  const kept = new Uint32Array(batch.rows)
  let rows = 0
  let index = 0
  walkRecords(batch, (record, line) => {
    if (!skips(record, plan.skipIfEmpty)) {
      writer.write(record)
      places[rows * 2] = before === undefined ? record.start : (before[index * 2] as number)
      places[rows * 2 + 1] = before === undefined ? line : (before[index * 2 + 1] as number)
      kept[rows] = index
      rows += 1
    }
    index += 1
  })
  const bytes = writer.take()
  const all = rows === index
  rememberPlaces(bytes, all ? places : places.slice(0, rows * 2), all ? undefined : kept.slice(0, rows))
  const { quoted, csv } = writer
  const sourceBytes = batch.bytes.byteLength
  giveBack(batch.bytes)
  return { ...batch, bytes, rows, columns: plan.columns, csv, quoted, filtered: index - rows, sourceBytes }
}

function skips(record: FieldRanges, positions: readonly number[]): boolean {
  for (let k = 0; k < positions.length; k += 1) {
    const at = positions[k] as number
    if (record.starts[at] === record.ends[at]) return true
  }
  return false
}

class RecordWriter {
  /** Whether a quote was written. */
  quoted = false
  readonly csv: CsvShape
  readonly #fields: readonly RewrittenField[]
  readonly #alone: boolean
  readonly #bytes: Uint8Array
  readonly #reader: RecordCursor
  /** Of all bytes, where they are ASCII: cutting from it is several times as fast as decoding, and offsets are the same. */
  readonly #text: string | null
  readonly #out: ByteWriter
  readonly #crlf: boolean
  /** Whether quotes were plain characters before. */
  readonly #unquoting: boolean
  readonly #delimiter: number
  readonly #quote: number
  readonly #escape: number

  constructor(batch: CsvBatch, plan: RecordPlan) {
    const { bytes, csv } = batch
    const quote = csv.delimiter === '"' ? "'" : '"'
    this.csv = csv.quote === null ? { ...csv, quote, escape: quote } : csv
    this.#bytes = bytes
    this.#fields = plan.fields
    this.#alone = plan.fields.length === 1
    this.#delimiter = csv.delimiter.charCodeAt(0)
    this.#quote = (this.csv.quote ?? '"').charCodeAt(0)
    this.#escape = this.csv.escape.charCodeAt(0)
    this.#reader = recordCursor(bytes, csv)
    const changes = plan.fields.some(({ change }) => change !== null)
    this.#text = changes && isAscii(bytes) ? this.#reader.bytes.toString('latin1') : null
    // As all records do.
    this.#crlf = bytes[bytes.length - 2] === CR
    this.#unquoting = csv.quote === null
    const added = plan.fields.reduce((sum, { constant }) => sum + (constant === null ? 0 : constant.length + 3), 0)
    this.#out = new ByteWriter(bytes.byteLength + batch.rows * added + 64)
  }

  take(): Buffer {
    return this.#out.take()
  }

  write(record: FieldRanges): void {
    const fields = this.#fields
    const out = this.#out
    for (let j = 0; j < fields.length; j += 1) {
      if (j > 0) out.byte(this.#delimiter)
      const { from, constant, change } = fields[j] as RewrittenField
      if (from === null) {
        if (constant !== null) this.#newText(constant)
      } else if (change === null) this.#asItIs(record, from)
      else this.#changed(record, from, change)
    }
    if (this.#crlf) out.byte(CR)
    out.byte(LF)
  }

  #asItIs(record: FieldRanges, at: number): void {
    const start = record.starts[at] as number
    const end = record.ends[at] as number
    if (record.kinds[at] !== PLAIN) {
      this.quoted = true
      this.#out.copy(this.#bytes, start - 1, end + 1)
    } else if (start < end && (this.#alone || this.#unquoting) && this.#wantsQuotes(this.#bytes, start, end))
      this.#inQuotes(this.#bytes, start, end)
    else this.#out.copy(this.#bytes, start, end)
  }

  #changed(record: FieldRanges, at: number, change: (text: string) => string): void {
    const start = record.starts[at] as number
    const end = record.ends[at] as number
    const kind = record.kinds[at] as number
    if (kind === PLAIN && start === end) return
    const text =
      kind === ESCAPED
        ? this.#reader.unescaped(start, end)
        : this.#text === null
          ? this.#reader.bytes.toString('utf8', start, end)
          : this.#text.slice(start, end)
    const changed = change(text)
    if (changed === text) this.#asItIs(record, at)
    else this.#newText(changed)
  }

  #newText(text: string): void {
    let highest = 0
    let isPlain = text !== '' && !(this.#alone && text === '\\.')
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i)
      if (code > highest) highest = code
      if (code === this.#quote || code === this.#delimiter || code === CR || code === LF) isPlain = false
    }
    if (!isPlain) {
      const bytes = Buffer.from(text)
      this.#inQuotes(bytes, 0, bytes.byteLength)
    } else if (highest < 0x80) this.#out.ascii(text)
    else this.#out.text(text)
  }

  #wantsQuotes(bytes: Uint8Array, start: number, end: number): boolean {
    for (let i = start; i < end; i += 1) {
      const byte = bytes[i]
      if (byte === this.#quote || byte === this.#delimiter || byte === CR || byte === LF) return true
    }
    return this.#alone && isEndMark(bytes, start, end)
  }

  #inQuotes(bytes: Uint8Array, start: number, end: number): void {
    const out = this.#out
    this.quoted = true
    out.byte(this.#quote)
    for (let i = start; i < end; i += 1) {
      const byte = bytes[i] as number
      if (byte === this.#quote || byte === this.#escape) out.byte(this.#escape)
      out.byte(byte)
    }
    out.byte(this.#quote)
  }
}

/** `\.`, which ends the data for COPY of PostgreSQL before 18 where it is a line of its own. */
function isEndMark(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start === 2 && bytes[start] === 0x5c && bytes[start + 1] === 0x2e
}
