import { isAscii } from 'node:buffer'
import type { CsvBatch, CsvShape } from '../../core/batch.ts'
import { giveBack } from '../../core/lent-buffers.ts'
import type { RecordPlan } from '../../core/record-plan.ts'
import { placesIn, rememberPlaces } from './locate.ts'
import { CR, ESCAPED, LF, PLAIN, recordCursor } from './record-cursor.ts'
import type { RecordCursor } from './record-cursor.ts'
import { walkRecords } from './record-walk.ts'
import type { FieldRanges } from './record-walk.ts'

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

/** Up to here a loop is faster than a call. Bytes. */
const LOOPED_BYTES = 64

/** What is written of a record, one after the other: neighbours that stay as they are in one go, delimiters between them included. */
type Piece =
  | { readonly kind: 'run'; readonly first: number; readonly last: number }
  | { readonly kind: 'changed'; readonly at: number; readonly change: (text: string) => string }
  | { readonly kind: 'constant'; readonly text: string }

function piecesOf(fields: RecordPlan['fields']): Piece[] {
  const pieces: Piece[] = []
  for (const { from, constant, change } of fields) {
    const before = pieces.at(-1)
    if (from === null) pieces.push({ kind: 'constant', text: constant ?? '' })
    else if (change !== null) pieces.push({ kind: 'changed', at: from, change })
    else if (before?.kind === 'run' && before.last + 1 === from) pieces[pieces.length - 1] = { ...before, last: from }
    else pieces.push({ kind: 'run', first: from, last: from })
  }
  return pieces
}

class RecordWriter {
  /** Whether a quote was written. */
  quoted = false
  readonly csv: CsvShape
  readonly #pieces: readonly Piece[]
  /** Whether there is but one field, which then must not look like the end of the data. */
  readonly #alone: boolean
  readonly #bytes: Uint8Array
  readonly #reader: RecordCursor
  /** Of all bytes, where they are ASCII: cutting from it is several times as fast as decoding, and offsets are the same. */
  readonly #text: string | null
  readonly #crlf: boolean
  /** Whether each plain field has to be looked at: quotes were plain characters before. */
  readonly #unquoting: boolean
  readonly #delimiter: number
  readonly #quote: number
  readonly #escape: number
  #out: Buffer
  #length = 0

  constructor(batch: CsvBatch, plan: RecordPlan) {
    const { bytes, csv } = batch
    const quote = csv.delimiter === '"' ? "'" : '"'
    this.csv = csv.quote === null ? { ...csv, quote, escape: quote } : csv
    this.#bytes = bytes
    this.#pieces = piecesOf(plan.fields)
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
    this.#out = Buffer.allocUnsafeSlow(bytes.byteLength + batch.rows * added + 64)
  }

  take(): Buffer {
    return this.#out.subarray(0, this.#length)
  }

  write(record: FieldRanges): void {
    const pieces = this.#pieces
    for (let j = 0; j < pieces.length; j += 1) {
      if (j > 0) this.#byte(this.#delimiter)
      const piece = pieces[j] as Piece
      if (piece.kind === 'run') this.#run(record, piece.first, piece.last)
      else if (piece.kind === 'changed') this.#changed(record, piece.at, piece.change)
      else this.#newText(piece.text)
    }
    if (this.#crlf) this.#byte(CR)
    this.#byte(LF)
  }

  // oxlint-disable-next-line max-params -- called for each record
  #run(record: FieldRanges, first: number, last: number): void {
    if (this.#alone || this.#unquoting) return this.#looked(record, first, last)
    const { kinds } = record
    let isQuoted = false
    for (let at = first; at <= last; at += 1) if (kinds[at] !== PLAIN) isQuoted = true
    if (isQuoted) this.quoted = true
    const start = (record.starts[first] as number) - (kinds[first] === PLAIN ? 0 : 1)
    const end = (record.ends[last] as number) + (kinds[last] === PLAIN ? 0 : 1)
    this.#copy(start, end)
  }

  /** Fields that may have to be put between quotes first. */
  #looked(record: FieldRanges, first: number, last: number): void {
    for (let at = first; at <= last; at += 1) {
      if (at > first) this.#byte(this.#delimiter)
      const start = record.starts[at] as number
      const end = record.ends[at] as number
      if (record.kinds[at] !== PLAIN) {
        this.quoted = true
        this.#copy(start - 1, end + 1)
      } else if (start < end && this.#wantsQuotes(start, end)) this.#inQuotes(this.#bytes.subarray(start, end))
      else this.#copy(start, end)
    }
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
    if (changed === text) this.#run(record, at, at)
    else this.#newText(changed)
  }

  #newText(text: string): void {
    // A UTF-16 unit is 3 bytes at most.
    this.#room(text.length * 3)
    const out = this.#out
    const begin = this.#length
    let highest = 0
    let isPlain = text !== '' && !(this.#alone && text === '\\.')
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i)
      out[begin + i] = code
      if (code > highest) highest = code
      if (code === this.#quote || code === this.#delimiter || code === CR || code === LF) isPlain = false
    }
    if (!isPlain) this.#inQuotes(Buffer.from(text))
    else this.#length += highest < 0x80 ? text.length : out.write(text, begin, 'utf8')
  }

  #wantsQuotes(start: number, end: number): boolean {
    const bytes = this.#bytes
    for (let i = start; i < end; i += 1) {
      const byte = bytes[i]
      if (byte === this.#quote || byte === this.#delimiter || byte === CR || byte === LF) return true
    }
    return this.#alone && isEndMark(bytes, start, end)
  }

  #inQuotes(bytes: Uint8Array): void {
    this.quoted = true
    this.#byte(this.#quote)
    for (let i = 0; i < bytes.byteLength; i += 1) {
      const byte = bytes[i] as number
      if (byte === this.#quote || byte === this.#escape) this.#byte(this.#escape)
      this.#byte(byte)
    }
    this.#byte(this.#quote)
  }

  #byte(value: number): void {
    if (this.#length >= this.#out.byteLength) this.#room(1)
    this.#out[this.#length] = value
    this.#length += 1
  }

  /** Bytes of the input. */
  #copy(start: number, end: number): void {
    this.#room(end - start)
    const out = this.#out
    const bytes = this.#bytes
    let to = this.#length
    if (end - start > LOOPED_BYTES) {
      out.set(bytes.subarray(start, end), to)
      to += end - start
    } else for (let i = start; i < end; i += 1, to += 1) out[to] = bytes[i] as number
    this.#length = to
  }

  /** Twice the memory where it does not suffice, so that each byte is copied twice at most. */
  #room(more: number): void {
    if (this.#length + more <= this.#out.byteLength) return
    const out = Buffer.allocUnsafeSlow(Math.max(this.#out.byteLength * 2, this.#length + more))
    out.set(this.#out.subarray(0, this.#length))
    this.#out = out
  }
}

/** `\.`, which ends the data for COPY of PostgreSQL before 18 where it is a line of its own. */
function isEndMark(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start === 2 && bytes[start] === 0x5c && bytes[start + 1] === 0x2e
}
