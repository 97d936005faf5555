import { isUtf8 } from 'node:buffer'
import { SluiceError } from '../../core/errors.ts'
import type { ErrorCode } from '../../core/errors.ts'
import type { Json, Position } from '../../core/job.ts'
import type { FormatHead, ReadPlace } from '../../core/ports.ts'
import { BlockGatherer, ChunkPuller } from './blocks.ts'
import type { CsvDialect } from './dialect.ts'
import { CR, LF, RecordCursor, isUndecided } from './record-cursor.ts'
import { countByte } from './scan.ts'
import { transcode } from './transcode.ts'

/** How far the first line end is looked for before the file is taken for one that ends its lines with LF. */
const LINE_END_WINDOW_BYTES = 4 * 1024 * 1024

/** A file's line ends: `crlf` and `lf` by its first (others are made the same), `cr` where it has no LF. */
export type FileLineEnd = 'lf' | 'crlf' | 'cr'

/** What `head` found out. */
export interface CsvHeadState {
  /** Whether positions are offsets in the chunks that the reader gets. */
  readonly seekable: boolean
  readonly encoding: string
  /** Bytes of a byte-order mark, where the file is transcoded. */
  readonly skipBytes: number
  readonly lineEnd: FileLineEnd
}

/** State of a head, as `readHead` made it. @throws SLUICE_STATE */
export function headState(head: FormatHead): CsvHeadState {
  const { state } = head
  if (typeof state === 'object' && state !== null && !Array.isArray(state)) {
    const { seekable, encoding, skipBytes, lineEnd } = state as { readonly [key: string]: Json }
    const known = lineEnd === 'lf' || lineEnd === 'crlf' || lineEnd === 'cr'
    if (typeof seekable === 'boolean' && typeof encoding === 'string' && typeof skipBytes === 'number' && known)
      return { seekable, encoding, skipBytes, lineEnd }
  }
  throw new SluiceError('SLUICE_STATE', 'the recorded head of a CSV file makes no sense')
}

/** Chunks in UTF-8, whatever the file's encoding. */
export function utf8Chunks(
  chunks: AsyncIterable<Uint8Array>,
  state: CsvHeadState,
  dialect: CsvDialect,
): AsyncIterable<Uint8Array> {
  if (state.seekable) return chunks
  return transcode(chunks, { ...state, replace: dialect.onInvalidUtf8 === 'replace' })
}

/**
 * Reads a CSV file's beginning: byte-order mark, line ends, header.
 *
 * @throws SLUICE_CSV_HEADER, SLUICE_ENCODING, SLUICE_NUL, SLUICE_CSV_QUOTE, SLUICE_CSV_UNTERMINATED_QUOTE, SLUICE_ROW_TOO_LONG
 */
export async function readHead(
  chunks: AsyncIterable<Uint8Array>,
  dialect: CsvDialect,
  place: ReadPlace,
): Promise<FormatHead> {
  const raw = new ChunkPuller(chunks, place.signal)
  try {
    const first: Uint8Array[] = []
    let have = 0
    while (have < 3) {
      const chunk = await raw.next()
      if (chunk === null) break
      first.push(chunk)
      have += chunk.byteLength
    }
    const mark = byteOrderMark(Buffer.concat(first).subarray(0, 3))
    const encoding = mark?.encoding ?? dialect.encoding ?? 'utf-8'
    const seekable = encoding === 'utf-8'
    const bomBytes = mark?.bytes ?? 0
    const state: CsvHeadState = { seekable, encoding, skipBytes: bomBytes, lineEnd: 'lf' }
    const utf8 = new ChunkPuller(utf8Chunks(again(first, raw), state, dialect), place.signal)
    const gatherer = new BlockGatherer(utf8, place, { maxBytes: dialect.maxRowBytes, looks: true })
    return await new HeadReader(dialect, place, state).read(gatherer)
  } finally {
    await raw.close()
  }
}

async function* again(first: readonly Uint8Array[], rest: ChunkPuller): AsyncGenerator<Uint8Array> {
  yield* first
  for (let chunk = await rest.next(); chunk !== null; chunk = await rest.next()) yield chunk
}

function byteOrderMark(bytes: Uint8Array): { encoding: string; bytes: number } | null {
  const [a, b, c] = bytes
  if (a === 0xef && b === 0xbb && c === 0xbf) return { encoding: 'utf-8', bytes: 3 }
  if (a === 0xff && b === 0xfe) return { encoding: 'utf-16le', bytes: 2 }
  if (a === 0xfe && b === 0xff) return { encoding: 'utf-16be', bytes: 2 }
  return null
}

class HeadReader {
  readonly #dialect: CsvDialect
  readonly #place: ReadPlace
  #state: CsvHeadState
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #line = 0

  constructor(dialect: CsvDialect, place: ReadPlace, state: CsvHeadState) {
    this.#dialect = dialect
    this.#place = place
    this.#state = state
  }

  async read(gatherer: BlockGatherer): Promise<FormatHead> {
    this.#at = this.#state.seekable ? this.#state.skipBytes : 0
    while (this.#bytes.byteLength <= this.#at && !gatherer.ended) await this.#more(gatherer)
    if (this.#bytes.byteLength <= this.#at) {
      this.#place.warn(`${this.#place.url} is empty: 0 rows`)
      return this.#head((this.#dialect.columns ?? []).slice(), this.#dialect.columns !== null)
    }
    this.#state = { ...this.#state, lineEnd: await this.#findLineEnd(gatherer) }
    await this.#skipLines(gatherer)
    return this.#dialect.header ? await this.#withHeader(gatherer) : await this.#withoutHeader(gatherer)
  }

  /** Some more bytes, as they come: who types a header gets an answer. A quarter more at a time keeps what is read twice in proportion. */
  async #more(gatherer: BlockGatherer): Promise<void> {
    const have = this.#bytes.byteLength
    const wanted = gatherer.more(Math.max(0, have - this.#at), { line: this.#line + 1, byte: this.#at }) + this.#at
    gatherer.keep(this.#bytes)
    this.#bytes = await gatherer.gather(wanted, have + 1 + (have >> 2))
  }

  /** By the first line end outside quotes of the rows; where none of them ends, by that of the skipped lines. */
  async #findLineEnd(gatherer: BlockGatherer): Promise<FileLineEnd> {
    const { quote } = this.#dialect
    const escape = this.#dialect.escape === quote ? -1 : this.#dialect.escape
    // Looking further than the longest row that is allowed would take a file of short rows for one long row.
    const window = Math.min(LINE_END_WINDOW_BYTES, this.#dialect.maxRowBytes)
    const skipped = await this.#pastLines(gatherer, window)
    let inside = false
    let escaped = false
    let lastCr = -1
    let anyCr = false
    for (let i = skipped.end; i < window; i += 1) {
      if (i >= this.#bytes.byteLength && !(await this.#has(i, gatherer))) break
      const byte = this.#bytes[i]
      const wasEscaped = escaped && (byte === quote || byte === escape)
      escaped = false
      if (wasEscaped) continue
      if (inside && byte === escape) escaped = true
      else if (byte === quote) inside = !inside
      else if (inside) continue
      else if (byte === LF) return lastCr === i - 1 && lastCr >= 0 ? 'crlf' : 'lf'
      else if (byte === CR) {
        lastCr = i
        anyCr = true
      }
    }
    return skipped.lineEnd ?? (anyCr ? 'cr' : 'lf')
  }

  /** Where the lines that are skipped end, whatever ends each, for quotes mean nothing in them; and what does: a lone CR may be data where an LF is, too. */
  async #pastLines(
    gatherer: BlockGatherer,
    window: number,
  ): Promise<{ readonly end: number; readonly lineEnd: FileLineEnd | null }> {
    let [left, lineEnd]: [number, FileLineEnd | null] = [this.#dialect.skipLines, null]
    let i = this.#at
    for (; left > 0 && i < window; i += 1) {
      if (i >= this.#bytes.byteLength && !(await this.#has(i, gatherer))) break
      const byte = this.#bytes[i]
      if (byte !== LF && byte !== CR) continue
      left -= 1
      const isPair = byte === CR && (await this.#has(i + 1, gatherer)) && this.#bytes[i + 1] === LF
      if (lineEnd === null || lineEnd === 'cr') lineEnd = isPair ? 'crlf' : byte === LF ? 'lf' : 'cr'
      if (isPair) i += 1
    }
    return { end: i, lineEnd }
  }

  /** Whether there is such a byte; reads on until it is there. */
  async #has(i: number, gatherer: BlockGatherer): Promise<boolean> {
    if (i >= this.#bytes.byteLength && !gatherer.ended) await this.#more(gatherer)
    return i < this.#bytes.byteLength
  }

  get #lineEndByte(): number {
    return this.#state.lineEnd === 'cr' ? CR : LF
  }

  async #skipLines(gatherer: BlockGatherer): Promise<void> {
    for (let skipped = 0; skipped < this.#dialect.skipLines;) {
      const end = this.#bytes.indexOf(this.#lineEndByte, this.#at)
      if (end >= 0) {
        this.#at = end + 1
        this.#line += 1
        skipped += 1
      } else if (gatherer.ended) {
        this.#at = this.#bytes.byteLength
        return
      } else await this.#more(gatherer)
    }
  }

  /** A cursor on the first record that is not blank, with all of its bytes there; null where there is none. */
  async #firstRecord(gatherer: BlockGatherer): Promise<RecordCursor | null> {
    for (let from = this.#at; ;) {
      const cursor = new RecordCursor(this.#bytes, this.#dialect, this.#lineEndByte)
      cursor.seek(from)
      const status = cursor.next()
      if (!gatherer.ended && isUndecided(status, cursor)) {
        await this.#more(gatherer)
        continue
      }
      if (status === 'end') return null
      if (status === 'row' && cursor.count === 1 && cursor.ends[0] === cursor.start && !cursor.quoted) {
        from = cursor.end
        continue
      }
      if (status === 'row') return cursor
      throw this.#recordError(status, cursor)
    }
  }

  #recordError(status: string, cursor: RecordCursor): SluiceError {
    const bad = firstInvalid(this.#bytes.subarray(cursor.start))
    if (status === 'open' && bad >= 0)
      return this.#error('SLUICE_ENCODING', 'bytes that are not valid', cursor.start + bad)
    if (status === 'open')
      return this.#error('SLUICE_CSV_UNTERMINATED_QUOTE', 'unterminated quoted field', cursor.problemAt)
    if (status === 'lf')
      return this.#error('SLUICE_UNKNOWN_FORMAT', 'CR ends the lines at first, and then LF', cursor.problemAt)
    const what = status === 'stray' ? 'a quote inside an unquoted field' : 'text after a closing quote'
    return this.#error('SLUICE_CSV_QUOTE', what, cursor.problemAt)
  }

  async #withHeader(gatherer: BlockGatherer): Promise<FormatHead> {
    const cursor = await this.#firstRecord(gatherer)
    const { columns } = this.#dialect
    if (cursor === null) {
      this.#consume(this.#bytes.byteLength)
      if (columns === null) this.#place.warn(`${this.#place.url} has no header and no rows`)
      return this.#head((columns ?? []).slice(), columns !== null)
    }
    const names = Array.from({ length: cursor.count }, (_, j) => this.#name(cursor, j))
    const start = cursor.start
    if (columns !== null && columns.length !== names.length)
      throw this.#error('SLUICE_CSV_HEADER', `the header has ${names.length} names, --columns ${columns.length}`, start)
    const used = columns === null ? this.#checked(names, start) : columns
    this.#consume(cursor.end)
    return this.#head(used.slice(), true)
  }

  #checked(names: readonly string[], at: number): readonly string[] {
    const seen = new Set<string>()
    for (const [j, name] of names.entries()) {
      if (this.#dialect.byPosition) continue
      if (name === '') throw this.#error('SLUICE_CSV_HEADER', `the header's name ${j + 1} is empty`, at)
      if (seen.has(name)) throw this.#error('SLUICE_CSV_HEADER', `the header names ${JSON.stringify(name)} twice`, at)
      seen.add(name)
    }
    return this.#dialect.byPosition ? unique(names) : names
  }

  async #withoutHeader(gatherer: BlockGatherer): Promise<FormatHead> {
    const { columns } = this.#dialect
    if (columns !== null) return this.#head(columns.slice(), true)
    const cursor = await this.#firstRecord(gatherer)
    const count = cursor?.count ?? (this.#at < this.#bytes.byteLength ? 1 : 0)
    return this.#head(
      Array.from({ length: count }, (_, j) => `column${j + 1}`),
      false,
    )
  }

  #name(cursor: RecordCursor, j: number): string {
    let content = cursor.content(j)
    if (content.includes(0)) {
      if (this.#dialect.onNul !== 'strip')
        throw this.#error('SLUICE_NUL', 'a NUL character in the header', cursor.starts[j] ?? 0)
      content = content.filter((byte) => byte !== 0) as Buffer
    }
    if (!isUtf8(content) && this.#dialect.onInvalidUtf8 !== 'replace')
      throw this.#error(
        'SLUICE_ENCODING',
        'bytes in the header that are not valid',
        (cursor.starts[j] ?? 0) + firstInvalid(content),
      )
    return content.toString('utf8')
  }

  #consume(end: number): void {
    this.#line += countByte(this.#bytes.subarray(this.#at, end), this.#lineEndByte)
    this.#at = end
  }

  #head(names: readonly string[], named: boolean): FormatHead {
    const first: Position = { byte: this.#at, row: 0, line: this.#line }
    const { seekable, encoding, skipBytes, lineEnd } = this.#state
    return { columns: names.map((name) => ({ name })), named, first, state: { seekable, encoding, skipBytes, lineEnd } }
  }

  #error(code: ErrorCode, message: string, byte: number): SluiceError {
    const line = this.#line + countByte(this.#bytes.subarray(this.#at, byte), this.#lineEndByte) + 1
    return new SluiceError(code, message, { where: { url: this.#place.url, line, byte } })
  }
}

/** Names by which columns can be told apart, where the file's do not do. */
function unique(names: readonly string[]): readonly string[] {
  const taken = new Set(names.filter((name) => name !== ''))
  const used = new Set<string>()
  return names.map((name, j) => {
    let free = name
    for (let n = j + 1; free === '' || used.has(free) || (free !== name && taken.has(free)); n += 1) free = `column${n}`
    used.add(free)
    return free
  })
}

/** Offset of the first byte that is not valid UTF-8 (or begins what is not); -1 where all is valid. */
export function firstInvalid(bytes: Uint8Array): number {
  if (isUtf8(bytes)) return -1
  let good = 0
  let bad = bytes.byteLength
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    if (isPrefix(bytes.subarray(0, middle))) good = middle
    else bad = middle
  }
  return good - unfinished(bytes.subarray(0, good))
}

/** Valid, but for a character that may still be going on at the end. */
function isPrefix(bytes: Uint8Array): boolean {
  return isUtf8(bytes.subarray(0, bytes.byteLength - unfinished(bytes)))
}

/** Bytes of a character at the end that is begun and not complete. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.byteLength); back += 1) {
    const byte = bytes[bytes.byteLength - back] as number
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > back ? back : 0
  }
  return 0
}
