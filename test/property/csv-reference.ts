/** A plain CSV parser, one character at a time over a whole text, to judge the reader by. Knows nothing of chunks, blocks or bytes. */

export interface ReferenceDialect {
  readonly delimiter: string
  /** null: quotes are plain characters. */
  readonly quote: string | null
  readonly escape: string
}

export interface ReferenceField {
  readonly text: string
  readonly quoted: boolean
}

export interface ReferenceRecord {
  readonly fields: readonly ReferenceField[]
  /** Physical line on which it begins, from 1. */
  readonly line: number
  /** UTF-8 bytes before it. */
  readonly byte: number
}

/** Records, blank lines included (one empty field). Null where the text is not well-formed. `loneCr`: CR ends lines, and LF does not. */
export function parseReference(
  text: string,
  dialect: ReferenceDialect,
  loneCr = endsWithLoneCr(text, dialect),
): ReferenceRecord[] | null {
  const records: ReferenceRecord[] = []
  let at = 0
  let line = 1
  while (at < text.length) {
    const begin = at
    const beginLine = line
    const fields: ReferenceField[] = []
    for (let more = true; more;) {
      let value = ''
      let quoted = false
      if (dialect.quote !== null && text[at] === dialect.quote) {
        quoted = true
        for (at += 1; ; at += 1) {
          if (at >= text.length) return null
          const next = text[at + 1]
          if (
            text[at] === dialect.escape &&
            next !== undefined &&
            (next === dialect.quote || next === dialect.escape)
          ) {
            value += next
            at += 1
          } else if (text[at] === dialect.quote) break
          else {
            if (text[at] === (loneCr ? '\r' : '\n')) line += 1
            value += text[at]
          }
        }
        at += 1
      } else {
        while (at < text.length && text[at] !== dialect.delimiter && !endAt(text, at, loneCr)) {
          if (text[at] === dialect.quote) return null
          if (loneCr && text[at] === '\n') return null
          value += text[at]
          at += 1
        }
      }
      fields.push({ text: value, quoted })
      const end = endAt(text, at, loneCr)
      if (at >= text.length) more = false
      else if (end > 0) {
        at += end
        line += 1
        more = false
      } else if (text[at] === dialect.delimiter) at += 1
      else return null
    }
    records.push({ fields, line: beginLine, byte: Buffer.byteLength(text.slice(0, begin)) })
  }
  return records
}

function endAt(text: string, at: number, loneCr: boolean): number {
  if (loneCr) return text[at] === '\r' ? 1 : 0
  if (text[at] === '\n') return 1
  return text[at] === '\r' && text[at + 1] === '\n' ? 2 : 0
}

/** Whether CR ends lines: some CR and no LF outside quotes. */
function endsWithLoneCr(text: string, { quote, escape }: ReferenceDialect): boolean {
  let bare = ''
  let inside = false
  for (let i = 0; i < text.length; i += 1) {
    const next = text[i + 1]
    if (inside && text[i] === escape && next !== undefined && (next === quote || next === escape)) i += 1
    else if (text[i] === quote) inside = !inside
    else if (!inside) bare += text[i]
  }
  return bare.includes('\r') && !bare.includes('\n')
}
