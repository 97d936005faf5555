/** Headers of a response, names in lower case. */
export type Headers = Readonly<Record<string, string | undefined>>

/**
 * What pins a resource: its strong ETag (`"abc"`), or date and size (`modified:<HTTP date>;size:<bytes>`), with `;encoding:<coding>` where
 * the server sent a content coding that nobody had asked for: the bytes are then taken as they come, and must go on coming so.
 * Null where there is neither; a weak ETag does not promise the same bytes (RFC 9110, 8.8.1), so it pins nothing.
 */
export function pinOf(headers: Headers, size: number | null): string | null {
  const coding = codingOf(headers)
  const etag = strongEtag(headers.etag)
  if (etag !== null) return etag + coding
  const modified = headers['last-modified']
  if (modified === undefined || size === null || Number.isNaN(Date.parse(modified))) return null
  return `modified:${modified};size:${size}${coding}`
}

/** The value of If-Range for a pin. */
export function ifRange(pin: string): string | null {
  return /^"[^"]*"/.exec(pin)?.[0] ?? /^modified:([^;]*);/.exec(pin)?.[1] ?? null
}

/**
 * Whether a partial answer may belong to the pin. An answer to If-Range need not repeat Last-Modified (RFC 9110, 15.3.7), so only what
 * it says is compared; one that ignores If-Range and has changed says another ETag, date or size.
 */
export function contradicts(pin: string, headers: Headers, size: number | null): boolean {
  const coding = /;encoding:[^;"]*$/.exec(pin)?.[0] ?? ''
  if (codingOf(headers) !== coding) return true
  if (pin.startsWith('"')) return headers.etag !== undefined && strongEtag(headers.etag) !== ifRange(pin)
  const pinnedSize = Number(/;size:(\d+)/.exec(pin)?.[1])
  if (size !== null && size !== pinnedSize) return true
  const modified = headers['last-modified']
  return modified !== undefined && modified !== ifRange(pin)
}

/** `bytes 0-499/1234`, `bytes 0-499/*`, `bytes *` + `/1234` (RFC 9110, 14.4); null where it is none of them. */
export interface ContentRange {
  /** Null where the range was not satisfiable. */
  readonly range: { readonly start: number; readonly end: number } | null
  readonly size: number | null
}

export function parseContentRange(header: string | undefined): ContentRange | null {
  const match = /^bytes\s+(?:(\d+)-(\d+)|\*)\/(\d+|\*)$/i.exec(header?.trim() ?? '')
  if (match === null) return null
  const [, first, last, total] = match
  const size = total === '*' || total === undefined ? null : Number(total)
  if (first === undefined || last === undefined) return { range: null, size }
  return Number(last) < Number(first) ? null : { range: { start: Number(first), end: Number(last) + 1 }, size }
}

/** Content-Length as a number of bytes; null where it is missing (chunked) or makes no sense. */
export function contentLength(headers: Headers): number | null {
  const text = headers['content-length']?.trim() ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

function strongEtag(header: string | undefined): string | null {
  const etag = header?.trim() ?? ''
  return /^"[^"]*"$/.test(etag) ? etag : null
}

function codingOf(headers: Headers): string {
  const coding = contentCoding(headers)
  return coding === null ? '' : `;encoding:${coding}`
}

/** The content coding that the server sent, in lower case; null for none. */
export function contentCoding(headers: Headers): string | null {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  return coding === '' || coding === 'identity' ? null : coding
}
