import { SluiceError } from '../../core/errors.ts'

const MIB = 1024 * 1024

/** Limits of a multipart upload (Amazon S3 User Guide, "Multipart upload limits"). The last part may be smaller. */
export const MIN_PART_BYTES = 5 * MIB
export const MAX_PART_BYTES = 5 * 1024 * MIB
export const MAX_PARTS = 10_000

const DEFAULT_PART_BYTES = 8 * MIB
/** Parts are whole numbers of these. */
const EVEN_TO_BYTES = 64 * 1024
/** For a stream whose length nobody knows: 10,000 × 16 MiB = 156 GiB. */
const DEFAULT_PART_BYTES_UNKNOWN = 16 * MIB

/**
 * Bytes of a part: the wish, else 8 MiB (16 MiB where the size is unknown: 156 GiB in 10,000 parts), grown in whole MiB until
 * the size fits into 10,000 parts. A wish is obeyed for unknown sizes, and then bounds the object at 10,000 such parts. Where the caller says how
 * many are in flight, parts are made smaller by as much as lets the last of them end together: 25 parts by three take as long as 27.
 *
 * @throws SLUICE_USAGE for a wish outside 5 MiB to 5 GiB, or an object that no part size fits
 */
export function partBytes(size: number | null, wanted: number | null, inFlight = 1): number {
  if (wanted !== null && !(wanted >= MIN_PART_BYTES && wanted <= MAX_PART_BYTES)) {
    throw new SluiceError('SLUICE_USAGE', `a part of ${wanted} bytes: S3 takes 5 MiB to 5 GiB`, {
      hint: 'set --part-size between 5MiB and 5GiB',
    })
  }
  if (size === null) return wanted ?? DEFAULT_PART_BYTES_UNKNOWN
  const least = Math.ceil(size / MAX_PARTS)
  const wish = wanted ?? DEFAULT_PART_BYTES
  const bytes = least <= wish ? wish : Math.ceil(least / MIB) * MIB
  if (bytes > MAX_PART_BYTES)
    throw new SluiceError('SLUICE_USAGE', `an object of ${size} bytes is larger than S3 can hold`)
  return wanted === null ? evenPartBytes(size, bytes, inFlight) : bytes
}

function evenPartBytes(size: number, bytes: number, inFlight: number): number {
  if (inFlight < 2 || size <= bytes) return bytes
  const rounds = Math.ceil(size / (bytes * inFlight))
  const even = Math.ceil(size / (rounds * inFlight) / EVEN_TO_BYTES) * EVEN_TO_BYTES
  return even >= MIN_PART_BYTES && even < bytes && Math.ceil(size / even) <= MAX_PARTS ? even : bytes
}
