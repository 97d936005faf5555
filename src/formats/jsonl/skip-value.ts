import { JsonFault, unexpected } from './json-fault.ts'

/** Deepest nesting that is read; PostgreSQL's and DynamoDB's own limits lie far below. Bounds the stack. */
const DEEPEST = 1000

/** White space of JSON. A line end only counts where rows may span lines. */
export function skipBlank(bytes: Uint8Array, from: number, acrossLines: boolean): number {
  let at = from
  for (;;) {
    const code = bytes[at] ?? 0
    if (code === 0x20 || code === 0x09 || code === 0x0d || (acrossLines && code === 0x0a)) at += 1
    else return at
  }
}

/** End of the number that begins at `from` (RFC 8259, section 6). */
export function skipNumber(bytes: Uint8Array, from: number): number {
  let at = (bytes[from] ?? 0) === 0x2d ? from + 1 : from
  const first = bytes[at] ?? 0
  if (first === 0x30) at += 1
  else at = skipDigits(bytes, at)
  if ((bytes[at] ?? 0) === 0x2e) at = skipDigits(bytes, at + 1)
  if (((bytes[at] ?? 0) | 0x20) === 0x65) {
    const sign = bytes[at + 1] ?? 0
    at = skipDigits(bytes, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
  }
  return at
}

function skipDigits(bytes: Uint8Array, from: number): number {
  let at = from
  for (let code = bytes[at] ?? 0; code >= 0x30 && code <= 0x39; code = bytes[at] ?? 0) at += 1
  if (at === from) throw unexpected(bytes, at, 'a digit')
  return at
}

/** Index behind the closing quote of the string whose opening quote is at `from`. NUL bytes before `nulUntil` are let pass. */
export function skipString(bytes: Uint8Array, from: number, nulUntil: number): number {
  let at = from + 1
  for (;;) {
    const code = bytes[at] ?? 0
    if (code === 0x22) return at + 1
    if (code === 0x5c) at = skipEscape(bytes, at + 1)
    else if (code >= 0x20 || (code === 0 && at < nulUntil)) at += 1
    else throw controlCharacter(bytes, at)
  }
}

/** The fault for a bare control character in a string, which JSON does not allow. */
export function controlCharacter(bytes: Uint8Array, at: number): JsonFault {
  const code = bytes[at]
  if (code === 0) return new JsonFault('SLUICE_NUL', 'a NUL byte in a string', { at })
  if (code === undefined || code === 0x0a) return new JsonFault('SLUICE_JSON', 'the line ends inside a string', { at })
  return new JsonFault(
    'SLUICE_JSON',
    `a bare control character (0x${code.toString(16).padStart(2, '0')}) in a string`,
    { at },
  )
}

function skipEscape(bytes: Uint8Array, at: number): number {
  const code = bytes[at] ?? 0
  if (code === 0x75) {
    for (let digit = at + 1; digit <= at + 4; digit += 1) {
      if (!isHex(bytes[digit] ?? 0)) throw unexpected(bytes, digit, 'a hexadecimal digit')
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
  throw unexpected(bytes, at, 'an escape character')
}

function isHex(code: number): boolean {
  const lower = code | 0x20
  return (code >= 0x30 && code <= 0x39) || (lower >= 0x61 && lower <= 0x66)
}

/** Index behind `true`, `false` or `null` at `from`. */
export function skipWord(bytes: Uint8Array, from: number, word: string): number {
  for (let index = 1; index < word.length; index += 1) {
    if ((bytes[from + index] ?? 0) !== word.charCodeAt(index))
      throw unexpected(bytes, from + index, `the rest of ${word}`)
  }
  return from + word.length
}

/** Checks the value that begins at `from` and returns the index behind it. */
export function skipValue(
  bytes: Uint8Array,
  from: number,
  o: { readonly acrossLines: boolean; readonly depth: number },
): number {
  const code = bytes[from] ?? 0
  if (code === 0x7b || code === 0x5b) return skipNested(bytes, from, o)
  if (code === 0x22) return skipString(bytes, from, 0)
  if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return skipNumber(bytes, from)
  if (code === 0x74) return skipWord(bytes, from, 'true')
  if (code === 0x66) return skipWord(bytes, from, 'false')
  if (code === 0x6e) return skipWord(bytes, from, 'null')
  throw unexpected(bytes, from, 'a value')
}

function skipNested(
  bytes: Uint8Array,
  from: number,
  o: { readonly acrossLines: boolean; readonly depth: number },
): number {
  if (o.depth >= DEEPEST) throw new JsonFault('SLUICE_JSON', `nested deeper than ${DEEPEST} levels`, { at: from })
  const object = (bytes[from] ?? 0) === 0x7b
  const close = object ? 0x7d : 0x5d
  const inner = { acrossLines: o.acrossLines, depth: o.depth + 1 }
  let at = skipBlank(bytes, from + 1, o.acrossLines)
  if ((bytes[at] ?? 0) === close) return at + 1
  for (;;) {
    if (object) {
      if ((bytes[at] ?? 0) !== 0x22) throw unexpected(bytes, at, 'a key in quotes')
      at = skipBlank(bytes, skipString(bytes, at, 0), o.acrossLines)
      if ((bytes[at] ?? 0) !== 0x3a) throw unexpected(bytes, at, 'a colon')
      at = skipBlank(bytes, at + 1, o.acrossLines)
    }
    at = skipBlank(bytes, skipValue(bytes, at, inner), o.acrossLines)
    const code = bytes[at] ?? 0
    if (code === close) return at + 1
    if (code !== 0x2c) throw unexpected(bytes, at, object ? "',' or '}'" : "',' or ']'")
    at = skipBlank(bytes, at + 1, o.acrossLines)
  }
}
