/** An element of an array: text, NULL, or another dimension. */
export type ArrayValue = string | null | readonly ArrayValue[]

/**
 * Reads PostgreSQL's text of an array (documentation, "Array Input and Output Syntax"): `{1,NULL,"a b"}`, `{{1,2},{3,4}}`; bounds before `=` are left
 * out. Null where the text is none.
 */
export function parseArray(text: string, delimiter = ','): readonly ArrayValue[] | null {
  const begin = text.startsWith('[') ? text.indexOf('=') + 1 : 0
  const reader = { text, at: begin, delimiter }
  const array = readArray(reader)
  return array !== undefined && reader.at === text.length ? array : null
}

interface Reader {
  readonly text: string
  readonly delimiter: string
  at: number
}

/** Undefined where the text is no array. */
function readArray(reader: Reader): ArrayValue[] | undefined {
  const { text, delimiter } = reader
  if (text[reader.at] !== '{') return undefined
  reader.at += 1
  const items: ArrayValue[] = []
  if (text[reader.at] === '}') {
    reader.at += 1
    return items
  }
  for (;;) {
    const item = text[reader.at] === '{' ? readArray(reader) : readElement(reader)
    if (item === undefined) return undefined
    items.push(item)
    const next = text[reader.at]
    reader.at += 1
    if (next === '}') return items
    if (next !== delimiter) return undefined
  }
}

/** Undefined where the text ends before the element does. */
function readElement(reader: Reader): string | null | undefined {
  const { text, delimiter } = reader
  if (text[reader.at] === '"') return readQuoted(reader)
  let end = reader.at
  while (end < text.length && text[end] !== delimiter && text[end] !== '}') end += text[end] === '\\' ? 2 : 1
  const raw = text.slice(reader.at, end)
  reader.at = end
  if (end >= text.length) return undefined
  if (raw.toUpperCase() === 'NULL') return null
  return raw.includes('\\') ? raw.replace(/\\([^])/g, '$1') : raw
}

function readQuoted(reader: Reader): string | undefined {
  const { text } = reader
  let value = ''
  for (let at = reader.at + 1; at < text.length;) {
    const stop = nextOf(text, at)
    value += text.slice(at, stop)
    if (text[stop] === '"') {
      reader.at = stop + 1
      return value
    }
    value += text[stop + 1] ?? ''
    at = stop + 2
  }
  return undefined
}

/** Offset of the next quote or backslash, or the length. */
function nextOf(text: string, from: number): number {
  const quote = text.indexOf('"', from)
  const end = quote < 0 ? text.length : quote
  const escape = text.slice(from, end).indexOf('\\')
  return escape < 0 ? end : from + escape
}
