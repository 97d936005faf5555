import type { ErrorCode } from '../../core/errors.ts'

/** Something wrong at an index of the text in hand; the reader makes a SluiceError with its place of it. */
export class JsonFault extends Error {
  readonly code: ErrorCode
  /** Index in the block that is being parsed. */
  readonly at: number
  readonly column: string | undefined

  constructor(code: ErrorCode, message: string, place: { readonly at: number; readonly column?: string | undefined }) {
    super(message)
    this.code = code
    this.at = place.at
    this.column = place.column
  }
}

/** A fault of grammar: what was expected and what is there. */
export function unexpected(bytes: Uint8Array, at: number, wanted: string): JsonFault {
  return new JsonFault('SLUICE_JSON', `${describe(bytes[at])} where ${wanted} should be`, { at })
}

function describe(code: number | undefined): string {
  if (code === undefined || code === 0x0a) return 'the end of the line'
  if (code < 0x20 || code >= 0x7f) return `byte 0x${code.toString(16).padStart(2, '0')}`
  return code === 0x27 ? 'an apostrophe' : `'${String.fromCharCode(code)}'`
}
