import type { Batch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Json } from '../../core/job.ts'
import type { FormatHead, FormatReader, ReadOptions, ReadPlace } from '../../core/ports.ts'
import { transcode } from '../csv/transcode.ts'
import { RowParser } from './row-parser.ts'
import { RowReader, type Layout, type RowBlock } from './row-reader.ts'
import { textShape } from './text-input.ts'
import { Window } from './window.ts'

export interface JsonLinesReaderOptions {
  /** WHATWG name; UTF-8 by default. A byte-order mark beats it. */
  readonly encoding?: string
  readonly onInvalidUtf8?: 'error' | 'reject' | 'replace'
  readonly onNul?: 'error' | 'reject' | 'strip'
  /** The first columns and their order; by default those of the first rows. */
  readonly columns?: readonly string[]
  /** Bounds the memory that one row may take. */
  readonly maxRowBytes: number
  /** What lies inside of each line's object, for formats that wrap their rows in one; `first` are the head's columns. */
  readonly unwrap?: (block: RowBlock, first: readonly string[], url: string) => RowBlock
  /** What stands before the array of rows inside of an object, at its beginning, up to and with the `[`; read as Latin-1. */
  readonly answer?: RegExp
  /** Told what follows that array. */
  readonly onTail?: (tail: object, o: ReadPlace) => void
}

/** Rows and bytes at the beginning whose keys make the head's columns. */
const HEAD_ROWS = 100
const HEAD_BYTES = 1024 * 1024
const HEAD_BLOCK_BYTES = 16 * 1024
/** Where the array of an answer has to begin. */
const ANSWER_BYTES = 4 * 1024
/** A batch: some thousand rows, whose values come to about three times this. */
const BATCH_BYTES = 256 * 1024

interface HeadState {
  readonly layout: Layout
  readonly encoding: string
  /** False where the text is transcoded: chunks then begin at byte 0 and positions count in UTF-8. */
  readonly seekable: boolean
  /** Bytes of a byte-order mark, where the text is transcoded. */
  readonly skipBytes: number
}

/**
 * Reads JSON Lines (one object a line, LF or CRLF, blank lines passed over) and, where the text begins with `[`, one JSON array of
 * objects. Numbers and nested values keep their own text. A key that is not among the head's columns is appended to the columns of its batch.
 */
export function createJsonLinesReader(options: JsonLinesReaderOptions): FormatReader {
  return {
    forms: ['rows'],
    head: (chunks, o) => readHead(chunks, options, o),
    read: (chunks, head, o) => readBatches(chunks, head, { ...o, options }),
  }
}

async function readHead(
  chunks: AsyncIterable<Uint8Array>,
  options: JsonLinesReaderOptions,
  o: ReadPlace,
): Promise<FormatHead> {
  const raw = new Window(chunks, 0, o.signal)
  try {
    await raw.fill(3)
    if (raw.bytes.byteLength === 0) o.warn(`${o.url} is empty`)
    const { encoding, bomBytes } = textShape(raw.bytes, options.encoding)
    const seekable = encoding === 'utf-8'
    raw.drop(bomBytes)
    const window = seekable
      ? raw
      : new Window(transcode(held(raw), { encoding, skipBytes: 0, replace: replaces(options) }), 0, o.signal)
    const { layout, line } = await findLayout(window, options.answer)
    const first = { byte: window.base, row: 0, line }
    const names = options.columns ?? (await headColumns(window, { layout, from: first }, { ...o, options }))
    const state: HeadState = { layout, encoding, seekable, skipBytes: seekable ? 0 : bomBytes }
    return { columns: names.map((name) => ({ name })), named: true, first, state: { ...state } }
  } finally {
    await raw.close()
  }
}

/** What a window holds, then the rest of its chunks. */
async function* held(window: Window): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) {
    await window.fill(1)
    if (window.bytes.byteLength === 0) return
    const bytes = window.bytes
    window.drop(bytes.byteLength)
    yield bytes
  }
}

/** Passes over blank lines, the `[` of an array, and what stands before it in an answer. */
async function findLayout(window: Window, answer: RegExp | undefined): Promise<{ layout: Layout; line: number }> {
  if (answer !== undefined) {
    await window.fill(ANSWER_BYTES)
    const begin = answer.exec(window.bytes.toString('latin1', 0, ANSWER_BYTES))?.[0]
    if (begin !== undefined) {
      window.drop(begin.length)
      return { layout: 'answer', line: begin.split('\n').length - 1 }
    }
  }
  for (let line = 0; ;) {
    await window.fill(1)
    const code = window.bytes[0]
    if (code === 0x5b) window.drop(1)
    if (code !== 0x20 && code !== 0x09 && code !== 0x0d && code !== 0x0a)
      return { layout: code === 0x5b ? 'array' : 'lines', line }
    if (code === 0x0a) line += 1
    window.drop(1)
  }
}

async function headColumns(
  window: Window,
  at: { readonly layout: Layout; readonly from: FormatHead['first'] },
  o: ReadPlace & { readonly options: JsonLinesReaderOptions },
): Promise<readonly string[]> {
  const names = new Set<string>()
  const parser = newParser([], at.layout, o.options)
  const reader = new RowReader(window, parser, {
    ...at,
    blockBytes: HEAD_BLOCK_BYTES,
    maxRowBytes: o.options.maxRowBytes,
    url: o.url,
  })
  let rows = 0
  try {
    while (rows < HEAD_ROWS && window.base < HEAD_BYTES) {
      const block = await reader.next()
      if (block === null) break
      rows += block.rows.length
      for (const name of unwrapped(block, [], o).columns) names.add(name)
    }
  } catch (error) {
    if (o.options.unwrap === undefined) for (const name of parser.columns) names.add(name)
    // A bad row further on is for `read` to tell: it counts the good ones before it.
    if (names.size === 0 || !(error instanceof SluiceError)) throw error
  }
  return [...names]
}

async function* readBatches(
  chunks: AsyncIterable<Uint8Array>,
  head: FormatHead,
  o: ReadOptions & { readonly options: JsonLinesReaderOptions },
): AsyncGenerator<Batch, void, undefined> {
  if (o.form !== 'rows') throw new SluiceError('SLUICE_INTERNAL', `JSON Lines cannot be read as ${o.form}`)
  const { layout, encoding, seekable, skipBytes } = headState(head.state)
  const text = seekable ? chunks : transcode(chunks, { encoding, skipBytes, replace: replaces(o.options) })
  const window = new Window(text, seekable ? o.from.byte : 0, o.signal)
  const first = head.columns.map((column) => column.name)
  const parser = newParser(o.options.unwrap === undefined ? first : [], layout, o.options)
  const { maxRowBytes } = o.options
  const reader = new RowReader(window, parser, {
    layout,
    from: o.from,
    blockBytes: BATCH_BYTES,
    maxRowBytes,
    url: o.url,
    onTail: (tail) => o.options.onTail?.(tail, o),
  })
  try {
    await skipTo(window, o.from.byte)
    for (let block = await reader.next(); block !== null; block = await reader.next()) {
      yield {
        form: 'rows',
        ...unwrapped(block, first, o),
        mayEnd: true,
        sourceBytes: block.end.byte - block.start.byte,
        filtered: 0,
      }
    }
  } finally {
    await window.close()
  }
}

function unwrapped(
  block: RowBlock,
  first: readonly string[],
  o: { readonly url: string; readonly options: JsonLinesReaderOptions },
): RowBlock {
  return o.options.unwrap === undefined ? block : o.options.unwrap(block, first, o.url)
}

async function skipTo(window: Window, byte: number): Promise<void> {
  while (window.base < byte) {
    await window.fill(1)
    if (window.bytes.byteLength === 0) return
    window.drop(Math.min(window.bytes.byteLength, byte - window.base))
  }
}

function newParser(columns: readonly string[], layout: Layout, options: JsonLinesReaderOptions): RowParser {
  const { onInvalidUtf8 = 'error', onNul = 'keep' } = options
  return new RowParser(columns, { onInvalidUtf8, onNul, acrossLines: layout !== 'lines' })
}

function headState(state: Json): HeadState {
  if (typeof state === 'object' && state !== null && !Array.isArray(state)) {
    const { layout, encoding, seekable, skipBytes } = state as { readonly [key: string]: Json }
    const known = layout === 'lines' || layout === 'array' || layout === 'answer'
    if (known && typeof encoding === 'string' && typeof seekable === 'boolean' && typeof skipBytes === 'number') {
      return { layout, encoding, seekable, skipBytes }
    }
  }
  throw new SluiceError('SLUICE_STATE', 'the recorded head of a JSON Lines file makes no sense')
}

function replaces(options: JsonLinesReaderOptions): boolean {
  return options.onInvalidUtf8 === 'replace'
}
