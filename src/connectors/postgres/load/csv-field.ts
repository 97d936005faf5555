/** The bytes that part a record. `quote` -1: none occurs. */
export interface FieldShape {
  readonly delimiter: number
  readonly quote: number
  readonly escape: number
}

const LF = 10
const CR = 13

/** Offset of the delimiter or LF that ends the field, or the array's length. Quotes open at a field's start only, as CsvBatch promises. */
export function findFieldEnd(bytes: Uint8Array, start: number, { delimiter, quote, escape }: FieldShape): number {
  const length = bytes.length
  let at = start
  if (quote >= 0 && bytes[at] === quote) {
    at += 1
    while (at < length) {
      const byte = bytes[at]
      if (byte === escape && (bytes[at + 1] === quote || bytes[at + 1] === escape)) at += 2
      else if (byte === quote) break
      else at += 1
    }
    at += 1
  }
  while (at < length) {
    const byte = bytes[at]
    if (byte === delimiter || byte === LF) return at
    at += 1
  }
  return length
}

/** A field's text without its quotes, escapes and a CR before the line end. */
export function fieldText(
  bytes: Uint8Array,
  { start, end, shape }: { start: number; end: number; shape: FieldShape },
): string {
  const { quote, escape } = shape
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const stop = end > start && bytes[end - 1] === CR && (end === bytes.length || bytes[end] === LF) ? end - 1 : end
  if (quote < 0 || bytes[start] !== quote) return buffer.toString('utf8', start, stop)
  const inner = buffer.toString('utf8', start + 1, stop - 1)
  const [q, e] = [String.fromCharCode(quote), String.fromCharCode(escape)]
  if (!inner.includes(e)) return inner
  return q === e
    ? inner.replaceAll(q + q, q)
    : inner
        .replaceAll(e + e, '\0')
        .replaceAll(e + q, q)
        .replaceAll('\0', e)
}
