import type { TextCheck } from './value-checks-text.ts'

/**
 * The elements of an array literal (PostgreSQL documentation, "Array Input and Output Syntax"), of all dimensions in turn, without
 * NULLs; null where it is none (the server refuses it then).
 */
export function arrayElements(text: string): string[] | null {
  const begin = text.indexOf('{')
  if (begin < 0) return null
  const elements: string[] = []
  let at = begin
  let depth = 0
  while (at < text.length) {
    const character = text[at] ?? ''
    if (character === '{') depth += 1
    else if (character === '}') {
      depth -= 1
      if (depth === 0) return elements
    } else if (character !== ',' && !isBlank(character)) {
      const token = readToken(text, at, { stops: ',{}', keepBlanks: false })
      if (token.quoted || token.text.toUpperCase() !== 'NULL') elements.push(token.text)
      at = token.end
      continue
    }
    at += 1
  }
  return null
}

/** The bounds of a range or of a multirange (`[a,b)`, `{[a,b),[c,d)}`), without empty ones; null where it is neither. */
export function rangeBounds(text: string): string[] | null {
  return innerTexts(text, '[(', '])')
}

/** The fields of a composite's literal, null for those that are NULL; null where it is none. */
export function compositeFields(text: string): (string | null)[] | null {
  const trimmed = text.trim()
  if (!trimmed.startsWith('(') || !trimmed.endsWith(')')) return null
  const fields: (string | null)[] = []
  let at = 1
  const last = trimmed.length - 1
  for (;;) {
    const token = readToken(trimmed, at, { stops: ',)', keepBlanks: true })
    fields.push(token.text === '' && !token.quoted ? null : token.text)
    if (token.end >= last) return fields
    at = token.end + 1
  }
}

function innerTexts(text: string, opening: string, closing: string): string[] | null {
  const found: string[] = []
  let at = 0
  while (at < text.length) {
    const character = text[at] ?? ''
    at += 1
    if (!opening.includes(character)) continue
    for (;;) {
      const token = readToken(text, at, { stops: `,${closing}`, keepBlanks: true })
      if (token.text !== '') found.push(token.text)
      at = token.end
      const stop = text[at]
      if (stop === undefined) return null
      at += 1
      if (closing.includes(stop)) break
    }
  }
  return found
}

/** Reads up to a stop outside of quotes. Backslashes escape, `""` inside quotes is a quote; blanks around are dropped unless `keepBlanks`. */
function readToken(
  text: string,
  from: number,
  { stops, keepBlanks }: { stops: string; keepBlanks: boolean },
): { text: string; end: number; quoted: boolean } {
  let value = ''
  /** Length that blanks at the end may not be cut below. */
  let keep = 0
  let quoted = false
  let inside = false
  let at = from
  for (; at < text.length; at += 1) {
    const character = text[at] ?? ''
    if (character === '\\') {
      at += 1
      value += text[at] ?? ''
      keep = value.length
    } else if (character === '"') {
      if (inside && text[at + 1] === '"') {
        value += '"'
        at += 1
      } else inside = !inside
      quoted = true
      keep = value.length
    } else if (!inside && stops.includes(character)) break
    else {
      value += character
      if (inside) keep = value.length
    }
  }
  while (!keepBlanks && value.length > keep && isBlank(value[value.length - 1] ?? '')) value = value.slice(0, -1)
  return { text: value, end: at, quoted }
}

function isBlank(character: string): boolean {
  return character === ' ' || (character >= '\t' && character <= '\r')
}

/** A check of every part that `split` finds. */
export function eachPart(split: (text: string) => readonly (string | null)[] | null, check: TextCheck): TextCheck {
  return (text) => {
    for (const part of split(text) ?? []) {
      const reason = part === null ? null : check(part)
      if (reason !== null) return `has a part that ${reason}`
    }
    return null
  }
}
