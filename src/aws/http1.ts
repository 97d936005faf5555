/** The head of an HTTP/1 answer. */
export interface Head {
  readonly status: number
  readonly version: string
  readonly headers: Record<string, string>
}

/** Status line and headers, names in lower case, repeated ones joined; null where it is no HTTP/1. */
export function parseHead(text: string): Head | null {
  const [first = '', ...lines] = text.split('\r\n')
  const status = /^HTTP\/(1\.[01]) (\d{3})(?: |$)/.exec(first)
  if (status === null) return null
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon <= 0) return null
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  return { version: status[1] ?? '', status: Number(status[2]), headers }
}

/** Chunks joined (RFC 9112, 7.1); `more` where they are not all there; `odd` where they are wrong, have trailers, or something follows. */
export function decodeChunks(raw: Buffer): Buffer | 'more' | 'odd' {
  const parts: Buffer[] = []
  for (let at = 0; ;) {
    const lineEnd = raw.indexOf('\r\n', at)
    if (lineEnd < 0) return 'more'
    const size = /^([0-9a-f]{1,8})(?:;.*)?$/i.exec(raw.toString('latin1', at, lineEnd))
    if (size === null) return 'odd'
    const bytes = Number.parseInt(size[1] ?? '', 16)
    const end = lineEnd + 2 + bytes
    if (raw.byteLength < end + 2) return 'more'
    if (raw.toString('latin1', end, end + 2) !== '\r\n') return 'odd'
    if (bytes === 0) return raw.byteLength === end + 2 ? Buffer.concat(parts) : 'odd'
    parts.push(raw.subarray(lineEnd + 2, end))
    at = end + 2
  }
}
