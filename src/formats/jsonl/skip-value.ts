import { JsonFault, unexpected } from './json-fault.ts'

/** Deepest nesting that is read; PostgreSQL's and DynamoDB's own limits lie far below. Bounds the stack. */
const DEEPEST = 1000

/** White space of JSON. A line end only counts where rows may span lines. */
export function skipBlank(text: string, from: number, acrossLines: boolean): number {
  let at = from
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === 0x20 || code === 0x09 || code === 0x0d || (acrossLines && code === 0x0a)) at += 1
    else return at
  }
}

/** End of the number that begins at `from` (RFC 8259, section 6). */
export function skipNumber(text: string, from: number): number {
  let at = text.charCodeAt(from) === 0x2d ? from + 1 : from
  const first = text.charCodeAt(at)
  if (first === 0x30) at += 1
  else at = skipDigits(text, at)
  if (text.charCodeAt(at) === 0x2e) at = skipDigits(text, at + 1)
  if ((text.charCodeAt(at) | 0x20) === 0x65) {
    const sign = text.charCodeAt(at + 1)
    at = skipDigits(text, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
  }
  return at
}

function skipDigits(text: string, from: number): number {
  let at = from
  for (let code = text.charCodeAt(at); code >= 0x30 && code <= 0x39; code = text.charCodeAt(at)) at += 1
  if (at === from) throw unexpected(text, at, 'a digit')
  return at
}

/** Index behind the closing quote of the string whose opening quote is at `from`. `rawNul`: a NUL byte itself may be inside, up to `end`. */
export function skipString(text: string, from: number, nulUntil: number): number {
  let at = from + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code === 0x5c) at = skipEscape(text, at + 1)
    else if (code >= 0x20 || (code === 0 && at < nulUntil)) at += 1
    else throw controlCharacter(text, at)
  }
}

/** The fault for a bare control character in a string, which JSON does not allow. */
export function controlCharacter(text: string, at: number): JsonFault {
  const code = text.charCodeAt(at)
  if (code === 0) return new JsonFault('SLUICE_NUL', 'a NUL byte in a string', { at })
  if (Number.isNaN(code) || code === 0x0a) return new JsonFault('SLUICE_JSON', 'the line ends inside a string', { at })
  return new JsonFault(
    'SLUICE_JSON',
    `a bare control character (0x${code.toString(16).padStart(2, '0')}) in a string`,
    { at },
  )
}

function skipEscape(text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (code === 0x75) {
    for (let digit = at + 1; digit <= at + 4; digit += 1) {
      if (!isHex(text.charCodeAt(digit))) throw unexpected(text, digit, 'a hexadecimal digit')
    }
    return at + 5
  }
  // " \ / b f n r t
  if (
    code === 0x22 ||
    code === 0x5c ||
    code === 0x2f ||
    code === 0x62 ||
    code === 0x66 ||
    code === 0x6e ||
    code === 0x72 ||
    code === 0x74
  ) {
    return at + 1
  }
  throw unexpected(text, at, 'an escape character')
}

function isHex(code: number): boolean {
  const lower = code | 0x20
  return (code >= 0x30 && code <= 0x39) || (lower >= 0x61 && lower <= 0x66)
}

/** Index behind `true`, `false` or `null` at `from`. */
export function skipWord(text: string, from: number, word: string): number {
  for (let index = 1; index < word.length; index += 1) {
    if (text.charCodeAt(from + index) !== word.charCodeAt(index))
      throw unexpected(text, from + index, `the rest of ${word}`)
  }
  return from + word.length
}

/** Checks the value that begins at `from` and returns the index behind it. */
export function skipValue(
  text: string,
  from: number,
  o: { readonly acrossLines: boolean; readonly depth: number },
): number {
  const code = text.charCodeAt(from)
  if (code === 0x7b || code === 0x5b) return skipNested(text, from, o)
  if (code === 0x22) return skipString(text, from, 0)
  if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return skipNumber(text, from)
  if (code === 0x74) return skipWord(text, from, 'true')
  if (code === 0x66) return skipWord(text, from, 'false')
  if (code === 0x6e) return skipWord(text, from, 'null')
  throw unexpected(text, from, 'a value')
}

function skipNested(text: string, from: number, o: { readonly acrossLines: boolean; readonly depth: number }): number {
  if (o.depth >= DEEPEST) throw new JsonFault('SLUICE_JSON', `nested deeper than ${DEEPEST} levels`, { at: from })
  const object = text.charCodeAt(from) === 0x7b
  const close = object ? 0x7d : 0x5d
  const inner = { acrossLines: o.acrossLines, depth: o.depth + 1 }
  let at = skipBlank(text, from + 1, o.acrossLines)
  if (text.charCodeAt(at) === close) return at + 1
  for (;;) {
    if (object) {
      if (text.charCodeAt(at) !== 0x22) throw unexpected(text, at, 'a key in quotes')
      at = skipBlank(text, skipString(text, at, 0), o.acrossLines)
      if (text.charCodeAt(at) !== 0x3a) throw unexpected(text, at, 'a colon')
      at = skipBlank(text, at + 1, o.acrossLines)
    }
    at = skipBlank(text, skipValue(text, at, inner), o.acrossLines)
    const code = text.charCodeAt(at)
    if (code === close) return at + 1
    if (code !== 0x2c) throw unexpected(text, at, object ? "',' or '}'" : "',' or ']'")
    at = skipBlank(text, at + 1, o.acrossLines)
  }
}
