const BYTEA_OID = 17
const TOKEN = /\s*(?:([[\]{}:,])|("(?:[^"\\]|\\.)*")|([^\s[\]{}:,"]+))/y

/**
 * A JSON array as PostgreSQL writes arrays (https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO): numbers by their own text, null as
 * NULL, objects as their JSON text, elements of bytea from base64.
 */
export function arrayLiteral(json: string, element: { readonly typeOid: number }): string {
  TOKEN.lastIndex = 0
  const next = (): string => {
    const match = TOKEN.exec(json)
    return match?.[1] ?? match?.[2] ?? match?.[3] ?? ''
  }
  const text = (token: string): string => {
    if (token === 'null') return 'NULL'
    if (!token.startsWith('"')) return token
    const value = String(JSON.parse(token))
    return quoted(element.typeOid === BYTEA_OID ? `\\x${Buffer.from(value, 'base64').toString('hex')}` : value)
  }
  const array = (): string => {
    const items: string[] = []
    for (let token = next(); token !== ']' && token !== ''; token = next()) {
      if (token === '[') items.push(array())
      else if (token === '{') items.push(quoted(object()))
      else if (token !== ',') items.push(text(token))
    }
    return `{${items.join(',')}}`
  }
  const object = (): string => {
    const start = TOKEN.lastIndex - 1
    for (let depth = 1; depth > 0;) {
      const token = next()
      if (token === '') break
      depth += token === '{' ? 1 : token === '}' ? -1 : 0
    }
    return json.slice(start, TOKEN.lastIndex)
  }
  next()
  return array()
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, (c) => `\\${c}`)}"`
}
