import { constants } from 'node:buffer'
import type { RowPlace, Value } from '../../../core/batch.ts'
import { SluiceError, toSluiceError } from '../../../core/errors.ts'
import type { Position } from '../../../core/job.ts'
import type { RowBlock } from './row-blocks.ts'
import { converterOf, mayBeSpecial } from './value-text.ts'
import type { TextType } from './value-text.ts'

export interface ParsedRows {
  readonly rows: readonly (readonly Value[])[]
  readonly places: readonly RowPlace[]
}

/** What becomes of values that rows have no form for. */
export interface SpecialsPolicy {
  /** `error`: the row is refused; `null`: the value is NULL; `text`: it is PostgreSQL's own text. */
  readonly onSpecial: 'error' | 'null' | 'text'
  /** Told of each that became NULL, with its column. */
  readonly onNull: (column: string) => void
}

const REFUSED: SpecialsPolicy = { onSpecial: 'error', onNull: () => undefined }

/** Escapes of COPY's text format (documentation of COPY, "Text Format"); any other character stands for itself. */
const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/**
 * A parser of COPY's text format for columns of these types: fields are parted by tabs, rows by LF, and neither can stand in a value unescaped, so that a
 * block is cut by `split`.
 */
export function createRowParser(
  columns: readonly (TextType & { readonly name: string })[],
  specials: SpecialsPolicy = REFUSED,
): (block: RowBlock, start: Position) => ParsedRows {
  const convert = columns.map((column) => withoutSpecials(column, specials))
  return (block, start) => {
    const bytes = Buffer.from(block.bytes.buffer, block.bytes.byteOffset, block.bytes.byteLength)
    const text = textOf(bytes)
    const isAscii = text.length === bytes.length
    // Without one there is neither a NULL nor anything escaped.
    const hasBackslash = text.includes('\\')
    const rows: (readonly Value[])[] = []
    const places: RowPlace[] = []
    const { row, line } = start
    let byte = start.byte
    for (let at = 0; at < text.length;) {
      const end = text.indexOf('\n', at)
      const record = text.slice(at, end)
      const place = { row: row + rows.length + 1 }
      rows.push(parseRow(record, { convert, place, hasBackslash: hasBackslash && record.includes('\\') }))
      places.push({ row: row + rows.length, line: line + rows.length, byte })
      byte += isAscii ? end + 1 - at : Buffer.byteLength(record) + 1
      at = end + 1
    }
    return { rows, places }
  }
}

/** Characters of a field whose escapes are looked for at once. */
const UNESCAPED_AT_ONCE = 1024 * 1024

/** A column's converter, with the policy for what it makes nothing of. @throws SLUICE_VALUE with the column */
function withoutSpecials(
  column: TextType & { readonly name: string },
  { onSpecial, onNull }: SpecialsPolicy,
): (text: string) => Value {
  const convert = converterOf(column)
  const settle = (text: string): Value => {
    const value = convert(text)
    if (typeof value !== 'object' || value === null || !('kind' in value) || value.kind !== 'special') return value
    if (onSpecial === 'text') return text
    if (onSpecial === 'error')
      throw new SluiceError('SLUICE_VALUE', `${value.what} has no form in JSON`, {
        where: { column: column.name },
        hint: "set --on-special null, or text for PostgreSQL's own text of it; Parquet and CSV may hold it",
      })
    onNull(column.name)
    return null
  }
  return mayBeSpecial(column) ? settle : (convert as (text: string) => Value)
}

interface RowSetting {
  readonly convert: readonly ((text: string) => Value)[]
  readonly place: { readonly row: number }
  readonly hasBackslash: boolean
}

function parseRow(record: string, { convert, place, hasBackslash }: RowSetting): readonly Value[] {
  const values: Value[] = []
  let at = 0
  try {
    for (let i = 0; i < convert.length; i += 1) {
      const tab = record.indexOf('\t', at)
      const field = record.slice(at, tab < 0 ? undefined : tab)
      at = tab + 1
      const isNull = hasBackslash && field === '\\N'
      values.push(isNull ? null : (convert[i]?.(hasBackslash ? unescape(field) : field) ?? null))
    }
  } catch (error) {
    throw toSluiceError(error).at(place)
  }
  return values
}

/** @throws SLUICE_ROW_TOO_LONG where a block is one row of more than V8's strings can hold (512 MiB) */
function textOf(bytes: Buffer): string {
  if (bytes.length > constants.MAX_STRING_LENGTH)
    throw new SluiceError('SLUICE_ROW_TOO_LONG', `a row of ${bytes.length} bytes`, {
      hint: 'leave the column out with a query, or write CSV, which needs no parsing',
    })
  return bytes.toString('utf8')
}

/** A piece at a time: V8 gathers all that a regular expression finds in one array, and ends the process where that has more than 2^27 entries. */
function unescape(field: string): string {
  if (!field.includes('\\')) return field
  if (field.length <= UNESCAPED_AT_ONCE) return unescapePiece(field)
  const pieces: string[] = []
  for (let at = 0; at < field.length;) {
    let end = Math.min(field.length, at + UNESCAPED_AT_ONCE)
    let backslashes = 0
    while (end - backslashes > at && field[end - backslashes - 1] === '\\') backslashes += 1
    // An escape is not parted.
    end += backslashes % 2
    pieces.push(unescapePiece(field.slice(at, end)))
    at = end
  }
  return pieces.join('')
}

function unescapePiece(piece: string): string {
  return piece.replace(/\\([^])/g, (_, character: string) => ESCAPES[character] ?? character)
}
