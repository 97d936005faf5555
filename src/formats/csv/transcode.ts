import { TextDecoder } from 'node:util'
import { decodeWindows1252 } from './windows-1252.ts'

/** Bytes of a file in another encoding that are decoded at once. */
const PIECE_BYTES = 64 * 1024
/** What is kept of a line to find the very place of an invalid sequence in it; a longer line is searched from here on. */
const KEPT_BYTES = 64 * 1024
/** A byte that no UTF-8 has: stands where the input could not be decoded. */
const INVALID = 0xff

/**
 * Chunks in another encoding as UTF-8. Where the input is not valid, the text ends with a byte 0xFF, so that who checks the UTF-8 finds
 * the place, in rows and columns; with `replace` U+FFFD stands there and it goes on.
 */
export async function* transcode(
  chunks: AsyncIterable<Uint8Array>,
  o: { readonly encoding: string; readonly replace: boolean; readonly skipBytes: number },
): AsyncGenerator<Uint8Array> {
  const decoder = o.encoding === 'windows-1252' ? null : new StrictDecoder(o.encoding, o.replace)
  let skip = o.skipBytes
  for await (const whole of chunks) {
    const chunk = whole.subarray(Math.min(skip, whole.byteLength))
    skip -= whole.byteLength - chunk.byteLength
    for (let at = 0; at < chunk.byteLength; at += PIECE_BYTES) {
      const piece = chunk.subarray(at, at + PIECE_BYTES)
      const text = decoder === null ? decodeWindows1252(piece) : decoder.decode(piece)
      if (text.length > 0) yield Buffer.from(text)
      if (decoder?.failed === true) return yield Uint8Array.of(INVALID)
    }
  }
  const rest = decoder?.end() ?? ''
  if (rest.length > 0) yield Buffer.from(rest)
  if (decoder?.failed === true) yield Uint8Array.of(INVALID)
}

/** TextDecoder, and on invalid input the text up to there. */
class StrictDecoder {
  failed = false
  readonly #encoding: string
  readonly #replace: boolean
  readonly #decoder: TextDecoder
  readonly #wide: boolean
  /** Bytes that were decoded already, from where the decoder had nothing pending. */
  #kept: Buffer = Buffer.alloc(0)
  #bytes = 0

  constructor(encoding: string, replace: boolean) {
    this.#encoding = encoding
    this.#replace = replace
    this.#wide = encoding.startsWith('utf-16')
    this.#decoder = this.#fresh()
  }

  decode(piece: Uint8Array): string {
    try {
      const text = this.#decoder.decode(piece, { stream: true })
      if (!this.#replace) this.#keep(piece)
      return text
    } catch {
      this.failed = true
      return this.#upToInvalid(piece)
    }
  }

  end(): string {
    try {
      return this.#decoder.decode()
    } catch {
      this.failed = true
      return ''
    }
  }

  #fresh(): TextDecoder {
    return new TextDecoder(this.#encoding, { fatal: !this.#replace, ignoreBOM: true })
  }

  /** LF is never part of a longer character in the encodings of the Standard save UTF-16, so that decoding can begin behind it. */
  #keep(piece: Uint8Array): void {
    this.#bytes += piece.byteLength
    if (this.#wide) {
      const all = Buffer.concat([this.#kept, piece.subarray(-8)])
      const wanted = 4 + (this.#bytes & 1)
      const tail = all.subarray(-wanted)
      // A pair whose first half is left out begins one character later.
      this.#kept = tail.subarray(isLowSurrogate(tail, this.#encoding) ? 2 : 0)
      return
    }
    const lineEnd = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).lastIndexOf(10)
    const line = lineEnd >= 0 ? [piece.subarray(lineEnd + 1)] : [this.#kept, piece]
    const kept = Buffer.concat(line)
    this.#kept = kept.byteLength > KEPT_BYTES ? Buffer.alloc(0) : kept
  }

  #upToInvalid(piece: Uint8Array): string {
    const known = this.#text(this.#kept, this.#kept.byteLength) ?? ''
    const all = Buffer.concat([this.#kept, piece])
    let good = 0
    let bad = all.byteLength
    while (bad - good > 1) {
      const middle = (good + bad) >> 1
      if (this.#text(all, middle) === null) bad = middle
      else good = middle
    }
    return (this.#text(all, good) ?? '').slice(known.length)
  }

  /** Text of the first bytes, what is begun at their end left out; null where they are not valid. */
  #text(bytes: Uint8Array, length: number): string | null {
    try {
      return this.#fresh().decode(bytes.subarray(0, length), { stream: true })
    } catch {
      return null
    }
  }
}

function isLowSurrogate(tail: Uint8Array, encoding: string): boolean {
  const high = tail[encoding === 'utf-16le' ? 1 : 0] ?? 0
  return high >= 0xdc && high <= 0xdf
}
