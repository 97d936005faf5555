import { SluiceError } from '../core/errors.ts'

/** Makes the error for damage at a byte of the compressed file (from 0). The message says so, since places elsewhere count decompressed bytes. */
export function compressionFault(
  what: string,
  where: { readonly url: string; readonly byte: number },
  cause?: unknown,
): SluiceError {
  return new SluiceError('SLUICE_COMPRESSION', `${what} (byte ${where.byte} of the compressed file)`, {
    where,
    ...(cause === undefined ? {} : { cause }),
  })
}
