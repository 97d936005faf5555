import type { CsvBatch, CsvShape, Value } from '../../core/batch.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { checkOf, type ColumnCheck } from './column-check.ts'
import { fieldText, findFieldEnd, type FieldShape } from './csv-field.ts'
import type { TableColumn } from './table.ts'
import { FAST_REACH, fastDate, fastNumeric, fastTime, fastTimestamp, fastZone, KIND } from './value-fast.ts'

/** A value that PostgreSQL would store altered, or not at all. */
export interface BadValue {
  /** Record of the batch (row of `rows`), from 0. */
  readonly recordIndex: number
  /** Column of the batch, from 0. */
  readonly columnIndex: number
  /** "1.255 has more digits after the point than numeric(10,2) keeps": without the place. */
  readonly reason: string
  readonly code: ErrorCode
}

/** Finds the first value that COPY would alter without a word (cli.md, "PostgreSQL"). Holds no state between calls. */
export interface ValueChecker {
  /** Whole records, as CsvBatch promises; NULLs (unquoted and empty) and ragged records are passed over. */
  checkCsv(batch: Pick<CsvBatch, 'bytes' | 'quoted' | 'csv'>): BadValue | null
  checkRow(values: readonly Value[], recordIndex?: number): BadValue | null
}

interface Plan {
  readonly checks: readonly (ColumnCheck | null)[]
  readonly kinds: Uint8Array
  readonly bounds: Int32Array
  /** The last column that has a check. */
  readonly last: number
  /** All checks are of blanks: a chunk without a blank before a field's end passes as a whole. */
  readonly blanksOnly: boolean
}

/** How much of a value is shown. */
const LONGEST_SHOWN = 60
const LF = 10
const CR = 13

/**
 * A checker for the columns of a batch, in its order (null: not loaded, or not to be looked at); null where no type among them alters
 * anything. What is refused, by type, is in `checkOf`. `shape` is the dialect of rows that come as CSV.
 */
export function createValueChecker(columns: readonly (TableColumn | null)[], _o: { readonly shape: CsvShape; readonly timeZone: string }): ValueChecker | null {
  const checks = columns.map((column) => (column === null ? null : checkOf(column)))
  const last = checks.findLastIndex((check) => check !== null)
  if (last < 0) return null
  const plan: Plan = {
    checks,
    kinds: Uint8Array.from(checks, (check) => check?.kind ?? KIND.skip),
    bounds: Int32Array.from(checks, (check) => check?.bound ?? 0),
    last,
    blanksOnly: checks.every((check) => check === null || check.kind === KIND.blanks),
  }
  return {
    checkCsv: (batch) => checkCsv(batch, plan),
    checkRow: (values, recordIndex = 0) => checkRow(values, plan, recordIndex),
  }
}

function checkRow(values: readonly Value[], plan: Plan, recordIndex: number): BadValue | null {
  for (let columnIndex = 0; columnIndex <= plan.last; columnIndex += 1) {
    const check = plan.checks[columnIndex]
    const text = check ? textOf(values[columnIndex]) : null
    const reason = text === null ? null : (check?.text(text) ?? null)
    if (reason !== null) return bad(recordIndex, columnIndex, `${shown(text ?? '')} ${reason}`)
  }
  return null
}

function textOf(value: Value): string | null {
  if (typeof value === 'string') return value
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array) ? value.text : null
}

function bad(recordIndex: number, columnIndex: number, reason: string): BadValue {
  return { recordIndex, columnIndex, reason, code: 'SLUICE_VALUE' }
}

function shown(text: string): string {
  return JSON.stringify(text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`)
}

function checkCsv(batch: Pick<CsvBatch, 'bytes' | 'quoted' | 'csv'>, plan: Plan): BadValue | null {
  const { bytes, csv } = batch
  const quote = batch.quoted && csv.quote !== null ? csv.quote.charCodeAt(0) : -1
  const shape: FieldShape = { delimiter: csv.delimiter.charCodeAt(0), quote, escape: csv.escape.charCodeAt(0) }
  if (plan.blanksOnly && !hasBlankAtEnd(bytes, shape)) return null
  return walk(bytes, plan, shape)
}

/** Whether a blank stands before a delimiter, a line end, a closing quote or the end: four searches at memchr's speed. */
function hasBlankAtEnd(bytes: Uint8Array, { delimiter, quote }: FieldShape): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!buffer.includes(32)) return false
  const follows = (code: number): boolean => buffer.includes(Buffer.from([32, code]))
  return follows(delimiter) || follows(LF) || follows(CR) || (quote >= 0 && follows(quote)) || bytes[bytes.length - 1] === 32
}

/** Goes over the fields of each record up to the last one with a check: the common spellings are passed in place, others as text. */
function walk(bytes: Uint8Array, plan: Plan, shape: FieldShape): BadValue | null {
  const { kinds, bounds, last } = plan
  const { delimiter, quote } = shape
  const length = bytes.length
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  let at = 0
  let column = 0
  let record = 0
  while (at < length) {
    const kind = column > last ? KIND.skip : (kinds[column] ?? KIND.skip)
    const quoted = quote >= 0 && bytes[at] === quote
    let end = -1
    if (kind === KIND.skip) end = quoted ? findFieldEnd(bytes, at, shape) : plainEnd(view, at, delimiter)
    else {
      const quick = quoted ? -1 : fastEnd(view, at, (kind << 16) | (bounds[column] ?? 0))
      if (quick >= 0 && isFieldEnd(view, quick, delimiter)) end = view.getUint8(quick) === CR ? quick + 1 : quick
      else {
        end = quoted ? findFieldEnd(bytes, at, shape) : plainEnd(view, at, delimiter)
        const found = isNull(bytes, at, end) ? null : look(bytes, plan, { column, start: at, end, shape })
        if (found !== null) return bad(record, column, found)
      }
    }
    at = end + 1
    if (end < length && view.getUint8(end) === delimiter) {
      column += 1
      // Without quotes the rest of the record is behind the next LF.
      if (column <= last || quote >= 0) continue
      at = plainEnd(view, at, LF) + 1
    }
    column = 0
    record += 1
  }
  return null
}

/** Offset of the next delimiter or LF, or the array's length; four bytes at a time (a zero byte of word ^ pattern is a hit). */
function plainEnd(view: DataView, from: number, delimiter: number): number {
  const length = view.byteLength
  const pattern = delimiter * 0x01010101
  let at = from
  for (; at + 4 <= length; at += 4) {
    const word = view.getInt32(at, true)
    const a = word ^ pattern
    const b = word ^ 0x0a0a0a0a
    const hits = ((a - 0x01010101) & ~a & 0x80808080) | ((b - 0x01010101) & ~b & 0x80808080)
    // Bytes above the lowest hit may be marked wrongly, the lowest never.
    if (hits !== 0) return at + ((31 - Math.clz32(hits & -hits)) >> 3)
  }
  for (; at < length; at += 1) {
    const byte = view.getUint8(at)
    if (byte === delimiter || byte === LF) break
  }
  return at
}

function isFieldEnd(view: DataView, at: number, delimiter: number): boolean {
  if (at >= view.byteLength) return true
  const byte = view.getUint8(at)
  return byte === delimiter || byte === LF || (byte === CR && at + 1 < view.byteLength && view.getUint8(at + 1) === LF)
}

/** Unquoted and empty, a CR before the line end aside. */
function isNull(bytes: Uint8Array, start: number, end: number): boolean {
  return start === end || (start + 1 === end && bytes[start] === CR && bytes[end] === LF)
}

/** `use`: the kind, shifted by 16, and the bound. Near the array's end nothing is passed in place. */
function fastEnd(view: DataView, at: number, use: number): number {
  if (at + FAST_REACH > view.byteLength) return -1
  const bound = use & 0xffff
  switch (use >> 16) {
    case KIND.numeric:
      return fastNumeric(view, at, bound)
    case KIND.timestamp:
      return fastTimestamp(view, at, bound)
    case KIND.timestamptz:
      return fastZone(view, fastTimestamp(view, at, bound))
    case KIND.date:
      return fastDate(view, at)
    case KIND.time:
      return fastTime(view, at, bound)
    case KIND.timetz:
      return fastZone(view, fastTime(view, at, bound))
    default:
      return -1
  }
}

/** Whether a field's last byte may hide a blank at its end: one itself, or a CR or quote behind it. */
function mayEndInBlank(bytes: Uint8Array, end: number, quote: number): boolean {
  const byte = bytes[end - 1]
  return byte === 32 || byte === CR || byte === quote
}

interface FieldSpot {
  readonly column: number
  readonly start: number
  readonly end: number
  readonly shape: FieldShape
}

/** The close look at one field, as text. */
function look(bytes: Uint8Array, plan: Plan, { column, start, end, shape }: FieldSpot): string | null {
  const check = plan.checks[column]
  if (!check) return null
  // Fewer bytes than the bound are fewer characters; without a blank before its end there is nothing to cut.
  if (check.kind === KIND.blanks && (end - start <= check.bound || !mayEndInBlank(bytes, end, shape.quote))) return null
  const text = fieldText(bytes, { start, end, shape })
  const reason = check.text(text)
  return reason === null ? null : `${shown(text)} ${reason}`
}
