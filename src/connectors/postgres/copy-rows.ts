import type { RowPlace, Value } from '../../core/batch.ts'
import type { Position } from '../../core/job.ts'
import type { RowBlock } from './row-blocks.ts'
import { converterOf } from './value-text.ts'
import type { TextType } from './value-text.ts'

export interface ParsedRows {
  readonly rows: readonly (readonly Value[])[]
  readonly places: readonly RowPlace[]
}

/** Escapes of COPY's text format (documentation of COPY, "Text Format"); any other character stands for itself. */
const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/**
 * A parser of COPY's text format for columns of these types: fields are parted by tabs, rows by LF, and neither can stand in a value unescaped, so that a
 * block is cut by `split`.
 */
export function createRowParser(columns: readonly TextType[]): (block: RowBlock, start: Position) => ParsedRows {
  const convert = columns.map((column) => converterOf(column))
  const parseRow = (line: string): readonly Value[] => {
    if (convert.length === 0) return []
    const fields = line.split('\t')
    return convert.map((one, i) => {
      const field = fields[i] ?? '\\N'
      return field === '\\N' ? null : one(field.includes('\\') ? unescape(field) : field)
    })
  }
  return (block, start) => {
    const bytes = Buffer.from(block.bytes.buffer, block.bytes.byteOffset, block.bytes.byteLength)
    const text = bytes.toString('utf8')
    const isAscii = text.length === bytes.length
    const lines = text.split('\n')
    lines.pop()
    let byte = start.byte
    const places = lines.map((line, i) => {
      const place = { row: start.row + i + 1, line: start.line + i + 1, byte }
      byte += (isAscii ? line.length : Buffer.byteLength(line)) + 1
      return place
    })
    return { rows: lines.map(parseRow), places }
  }
}

function unescape(field: string): string {
  return field.replace(/\\([^])/g, (_, character: string) => ESCAPES[character] ?? character)
}
