import { SluiceError } from '../../core/errors.ts'

/** What the first bytes and `--encoding` say of a file's text. JSON. */
export interface TextShape {
  /** WHATWG name in lower case. */
  readonly encoding: string
  /** Bytes of a byte-order mark, which is passed over. */
  readonly bomBytes: number
}

/**
 * A byte-order mark is obeyed; else `encoding` counts, UTF-8 by default. Three bytes of the head are enough.
 *
 * @throws SLUICE_USAGE for an unknown encoding
 */
export function textShape(head: Uint8Array, encoding: string | undefined): TextShape {
  const [a, b, c] = head
  if (a === 0xef && b === 0xbb && c === 0xbf) return { encoding: 'utf-8', bomBytes: 3 }
  if (a === 0xff && b === 0xfe) return { encoding: 'utf-16le', bomBytes: 2 }
  if (a === 0xfe && b === 0xff) return { encoding: 'utf-16be', bomBytes: 2 }
  try {
    return { encoding: new TextDecoder(encoding ?? 'utf-8').encoding, bomBytes: 0 }
  } catch (error) {
    const hint = 'use a WHATWG name: utf-8, utf-16le, windows-1252, shift_jis …'
    throw new SluiceError('SLUICE_USAGE', `unknown encoding ${encoding ?? ''}`, { hint, cause: error })
  }
}
