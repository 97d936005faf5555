/** The elements of a JSON array, each by its own text: numbers stay exact. Null where the text is no array. The text is JSON already. */
export function jsonElements(text: string): readonly string[] | null {
  const inner = /^\s*\[([^]*)\]\s*$/.exec(text)?.[1]
  if (inner === undefined) return null
  if (inner.trim() === '') return []
  const elements: string[] = []
  let depth = 0
  let begin = 0
  for (let i = 0; i < inner.length; i += 1) {
    const char = inner[i]
    if (char === '"') i = stringEnd(inner, i)
    else if (char === '[' || char === '{') depth += 1
    else if (char === ']' || char === '}') depth -= 1
    else if (char === ',' && depth === 0) {
      elements.push(inner.slice(begin, i).trim())
      begin = i + 1
    }
  }
  elements.push(inner.slice(begin).trim())
  return elements
}

/** Where a string's closing quote is. */
function stringEnd(text: string, begin: number): number {
  let i = begin + 1
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1
  return i
}
