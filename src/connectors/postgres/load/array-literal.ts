import { isNestedJson } from './json-text.ts'

/** pg_type.dat. */
const [BYTEA, BOX] = [17, 603]
const JSON_OIDS: readonly number[] = [114, 3802]
const TOKEN = /\s*(?:([[\]{}:,])|("(?:[^"\\]|\\.)*")|([^\s[\]{}:,"]+))/y

/**
 * A JSON array as PostgreSQL writes arrays (https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO): numbers by their own text, null as
 * NULL, objects as their JSON text, elements of bytea from base64. Arrays in it are dimensions, save where elements are json themselves: then each
 * element is a JSON value, a text as a JSON string unless it is the text of an object or an array. `documents`: as in JsonText; then each element is the JSON
 * that it is.
 */
export function arrayLiteral(
  json: string,
  element: { readonly typeOid: number },
  documents?: readonly number[],
): string {
  const isJson = JSON_OIDS.includes(element.typeOid)
  TOKEN.lastIndex = 0
  const next = (): string => {
    const match = TOKEN.exec(json)
    return match?.[1] ?? match?.[2] ?? match?.[3] ?? ''
  }
  const text = (token: string, place: number): string => {
    if (token === 'null') return isJson && documents?.includes(place) === true ? quoted(token) : 'NULL'
    if (!token.startsWith('"')) return token
    const value = String(JSON.parse(token))
    if (isJson) return quoted(documents === undefined && isNestedJson(value) ? value : token)
    return quoted(element.typeOid === BYTEA ? `\\x${Buffer.from(value, 'base64').toString('hex')}` : value)
  }
  const array = (): string => {
    const items: string[] = []
    for (let token = next(); token !== ']' && token !== ''; token = next()) {
      if (token === '{' || (token === '[' && isJson)) items.push(quoted(nested()))
      else if (token === '[') items.push(array())
      else if (token !== ',') items.push(text(token, items.length))
    }
    return `{${items.join(element.typeOid === BOX ? ';' : ',')}}`
  }
  /** The object or array that was just opened, by its own text. */
  const nested = (): string => {
    const start = TOKEN.lastIndex - 1
    for (let depth = 1; depth > 0;) {
      const token = next()
      if (token === '') break
      depth += token === '{' || token === '[' ? 1 : token === '}' || token === ']' ? -1 : 0
    }
    return json.slice(start, TOKEN.lastIndex)
  }
  next()
  return array()
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, (c) => `\\${c}`)}"`
}
