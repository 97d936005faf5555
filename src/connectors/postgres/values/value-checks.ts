import type { CsvBatch, CsvShape, Value } from '../../../core/batch.ts'
import type { ErrorCode } from '../../../core/errors.ts'
import { checkOf, type ColumnCheck } from './column-check.ts'
import { fieldText, findFieldEnd, type FieldShape } from '../load/csv-field.ts'
import type { TableColumn } from '../table/table.ts'
import { KIND } from './value-fast.ts'
import { zoneGap } from './zone-gap.ts'
import { isClean, stepsOf, type ScreenStep } from './value-screen.ts'

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
  readonly steps: readonly ScreenStep[]
  readonly stepsWithoutBlanks: readonly ScreenStep[]
  /** The last column that has a check. */
  readonly last: number
  /** Some columns are checked for blanks: a chunk without a blank before any field's end passes those as a whole. */
  readonly hasBlanks: boolean
}

/** How much of a value is shown. */
const LONGEST_SHOWN = 60
const LF = 10
const CR = 13

/**
 * A checker for the columns of a batch, in its order (null: not loaded, or not to be looked at); null where no type among them alters
 * anything. What is refused, by type, is in `checkOf`. `shape` is the dialect of rows that come as CSV.
 */
export function createValueChecker(
  columns: readonly (TableColumn | null)[],
  o: { readonly shape: CsvShape; readonly timeZone: string },
): ValueChecker | null {
  const zone = { name: o.timeZone, inGap: zoneGap(o.timeZone) }
  const checks = columns.map((column) => (column === null ? null : checkOf(column, zone)))
  const last = checks.findLastIndex((check) => check !== null)
  if (last < 0) return null
  const kinds = Uint8Array.from(checks, (check) => check?.kind ?? KIND.skip)
  const bounds = checks.map((check) => check?.bound ?? 0)
  const plan: Plan = {
    checks,
    kinds,
    steps: stepsOf(kinds, bounds),
    stepsWithoutBlanks: stepsOf(
      kinds.map((kind) => (kind === KIND.blanks ? KIND.skip : kind)),
      bounds,
    ),
    last,
    hasBlanks: kinds.includes(KIND.blanks),
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
  const blanks = plan.hasBlanks && hasBlankAtEnd(bytes, shape)
  const steps = blanks ? plan.steps : plan.stepsWithoutBlanks
  if (steps.length === 0) return null
  if (quote < 0) {
    const isFine = (column: number, start: number, end: number): boolean =>
      isNull(bytes, start, end) || look(bytes, plan, { column, start, end, shape }) === null
    if (isClean(bytes, steps, { delimiter: shape.delimiter, isFine })) return null
  }
  return walk(bytes, plan, shape)
}

/**
 * Whether a blank stands before a delimiter, a line end, a closing quote or the end: two or three searches at memchr's speed. All records end
 * alike, so that the last tells which line end to look for.
 */
function hasBlankAtEnd(bytes: Uint8Array, { delimiter, quote }: FieldShape): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!buffer.includes(32)) return false
  const length = bytes.length
  const before = (code: number): boolean => buffer.includes(Buffer.from([32, code]))
  if (bytes[length - 1] !== LF) return true
  return before(delimiter) || before(bytes[length - 2] === CR ? CR : LF) || (quote >= 0 && before(quote))
}

/** Goes over the fields of each record and looks at each that has a check. */
function walk(bytes: Uint8Array, plan: Plan, shape: FieldShape): BadValue | null {
  const { kinds, last } = plan
  let at = 0
  for (let record = 0; at < bytes.length; record += 1) {
    for (let column = 0; ; column += 1) {
      const end = findFieldEnd(bytes, at, shape)
      if (column <= last && kinds[column] !== KIND.skip && !isNull(bytes, at, end)) {
        const found = look(bytes, plan, { column, start: at, end, shape })
        if (found !== null) return bad(record, column, found)
      }
      at = end + 1
      if (end >= bytes.length || bytes[end] !== shape.delimiter) break
    }
  }
  return null
}

/** Unquoted and empty, a CR before the line end aside. */
function isNull(bytes: Uint8Array, start: number, end: number): boolean {
  return start === end || (start + 1 === end && bytes[start] === CR && bytes[end] === LF)
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
