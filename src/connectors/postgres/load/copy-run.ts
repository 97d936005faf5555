import type { CsvBatch, CsvShape, RowsBatch } from '../../../core/batch.ts'
import type { CopyIn } from './copy-in.ts'
import type { RowPlace } from '../../../core/batch.ts'

/** Bytes that were handed to a COPY, with the batch that they stand for. */
export interface SentBatch {
  readonly batch: CsvBatch | RowsBatch
  readonly bytes: Uint8Array
  readonly shape: CsvShape
}

/** One COPY in the making. `sent` is kept until the extent is sealed, to find the row that the server objects to. */
export interface CopyRun {
  readonly copy: CopyIn
  /** Columns and dialect: batches of another key need a COPY of their own. */
  readonly key: string
  readonly statement: string
  readonly columns: readonly string[]
  sent: SentBatch[]
  rows: number
  /** COPY's own line count for what was sent before `sent`, where one COPY spans extents. */
  linesBefore: number
  /** Whether the first record of the COPY ended in CR and LF, which decides how its lines are counted; null before it is known. */
  countsCr: boolean | null
}

/** A record of the bytes that were sent. */
export interface SentRecord {
  readonly sent: SentBatch
  /** In its batch, from 0. */
  readonly index: number
  readonly start: number
  readonly end: number
  /** COPY's line number when it is done with the record. */
  readonly line: number
}

const LF = 0x0a
const CR = 0x0d

/**
 * Walks over what was sent, record by record, counting lines as COPY does (CopyReadLineText in copyfromparse.c): one for each record, one
 * more for each LF inside its quotes where the first record of the COPY ended in LF alone; else, and in the first record itself, for each CR.
 * Byte by byte: for use once COPY has objected. Notes in the run how its first record ended.
 */
export function* sentRecords(run: Pick<CopyRun, 'sent' | 'linesBefore' | 'countsCr'>): Generator<SentRecord> {
  let line = run.linesBefore
  for (const sent of run.sent) {
    const { bytes } = sent
    for (const [index, record] of recordsOf(sent).entries()) {
      line += 1 + embeddedEnds(bytes, record, run.countsCr === false ? LF : CR)
      run.countsCr ??= bytes[record.end - 2] === CR || bytes[record.end - 1] !== LF
      yield { sent, index, start: record.start, end: record.end, line }
    }
  }
}

/** The record's own closing line end is no embedded one. */
function embeddedEnds(bytes: Uint8Array, record: { start: number; end: number }, kind: number): number {
  let inside = record.end
  if (bytes[inside - 1] === LF) inside -= 1
  if (bytes[inside - 1] === CR) inside -= 1
  let ends = 0
  for (let at = record.start; at < inside; at += 1) if (bytes[at] === kind) ends += 1
  return ends
}

function recordsOf(sent: SentBatch): { start: number; end: number }[] {
  const { bytes, shape } = sent
  const quote = shape.quote === null ? -1 : shape.quote.charCodeAt(0)
  const escape = shape.escape.charCodeAt(0)
  const records: { start: number; end: number }[] = []
  let start = 0
  let quoted = false
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (quoted && byte === escape && escape !== quote && (bytes[at + 1] === quote || bytes[at + 1] === escape)) at += 1
    else if (byte === quote) quoted = !quoted
    else if (byte === LF && !quoted) {
      records.push({ start, end: at + 1 })
      start = at + 1
    }
  }
  if (start < bytes.length) records.push({ start, end: bytes.length })
  return records
}

/** Where a record of a batch is in its source, as far as the batch itself tells; formats/csv refines it for CSV batches. */
export function placeOfRow(batch: SentBatch['batch'], index: number): Partial<RowPlace> {
  if (batch.form === 'rows') return batch.places[index] ?? { row: batch.start.row + index + 1 }
  return { row: batch.start.row + index + 1 }
}
