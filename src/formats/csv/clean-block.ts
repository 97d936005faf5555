import type { CsvDialect } from './dialect.ts'
import { ByteWriter } from './byte-writer.ts'
import { CR, LF, PLAIN } from './record-cursor.ts'
import { isNullWord } from './record-feed.ts'
import type { RecordFeed } from './record-feed.ts'

const BACKSLASH = 0x5c
const POINT = 0x2e

/** A block written anew in the shape that sinks are promised. */
export interface CleanBlock {
  readonly bytes: Buffer
  readonly rows: number
  readonly quoted: boolean
  /** For each record its byte and its line, both from the beginning of the block. */
  readonly places: Uint32Array
}

/** Writes the rows of a block anew: the same values, as COPY (FORMAT csv) reads them exactly. */
export function cleanBlock(
  feed: RecordFeed,
  o: { readonly dialect: CsvDialect; readonly width: number; readonly crlf: boolean },
): CleanBlock {
  const writer = new FieldWriter(feed, o.dialect)
  const { cursor } = feed
  const places: number[] = []
  const firstByte = feed.byte
  const firstLine = feed.line
  let rows = 0
  while (feed.next()) {
    places.push(feed.byte - firstByte, feed.line - firstLine - 1)
    rows += 1
    for (let j = 0; j < o.width; j += 1) {
      if (j > 0) writer.out.byte(writer.delimiter)
      if (j < cursor.count) writer.field(j, o.width === 1)
    }
    if (o.crlf) writer.out.byte(CR)
    writer.out.byte(LF)
  }
  return { bytes: writer.out.take(), rows, quoted: writer.quoted, places: Uint32Array.from(places) }
}

class FieldWriter {
  readonly out: ByteWriter
  readonly delimiter: number
  quoted = false
  readonly #feed: RecordFeed
  readonly #dialect: CsvDialect
  readonly #quote: number
  readonly #escape: number

  constructor(feed: RecordFeed, dialect: CsvDialect) {
    this.#feed = feed
    this.#dialect = dialect
    this.delimiter = dialect.shape.delimiter.charCodeAt(0)
    this.#quote = (dialect.shape.quote ?? '"').charCodeAt(0)
    this.#escape = dialect.shape.escape.charCodeAt(0)
    this.out = new ByteWriter(feed.cursor.bytes.byteLength + 1024)
  }

  /** Writes field j of the record in hand; `alone` where it is the only one. */
  field(j: number, alone: boolean): void {
    const { cursor } = this.#feed
    const start = cursor.starts[j] ?? 0
    const end = cursor.ends[j] ?? 0
    if (cursor.kinds[j] !== PLAIN) {
      if (this.#feed.dirty) return this.#quotedField(this.#feed.content(j))
      this.quoted = true
      return this.out.copy(cursor.bytes, start - 1, end + 1)
    }
    if (isNullWord(cursor, j, this.#dialect.nulls)) return
    if (start === end) return this.#dialect.empty === 'string' ? this.#quotedField(Buffer.alloc(0)) : undefined
    if (this.#feed.dirty) return this.#plainField(this.#feed.content(j), alone)
    if (this.#wantsQuotes(cursor.bytes, start, end) || (alone && isEndMark(cursor.bytes, start, end)))
      return this.#quotedField(cursor.bytes.subarray(start, end))
    this.out.copy(cursor.bytes, start, end)
  }

  #plainField(content: Buffer, alone: boolean): void {
    const bare =
      content.length > 0 &&
      !this.#wantsQuotes(content, 0, content.length) &&
      !(alone && isEndMark(content, 0, content.length))
    if (bare) this.out.copy(content, 0, content.length)
    else this.#quotedField(content)
  }

  #wantsQuotes(bytes: Uint8Array, start: number, end: number): boolean {
    const { delimiter } = this
    const quote = this.#quote
    for (let i = start; i < end; i += 1) {
      const byte = bytes[i]
      if (byte === quote || byte === delimiter || byte === CR || byte === LF) return true
    }
    return false
  }

  #quotedField(content: Uint8Array): void {
    const quote = this.#quote
    const escape = this.#escape
    this.quoted = true
    this.out.byte(quote)
    for (let i = 0; i < content.byteLength; i += 1) {
      const byte = content[i] as number
      if (byte === quote || byte === escape) this.out.byte(escape)
      this.out.byte(byte)
    }
    this.out.byte(quote)
  }
}

/** `\.`, which ends the data for COPY of PostgreSQL before 18 where it is a line of its own. */
function isEndMark(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start === 2 && bytes[start] === BACKSLASH && bytes[start + 1] === POINT
}
