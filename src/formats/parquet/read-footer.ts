import { SluiceError } from '../../core/errors.ts'
import { MAGIC, TAIL_BYTES } from './footer.ts'
import { readThrift } from './raw-thrift.ts'
import type { ThriftStruct } from './raw-thrift.ts'

/** Read from the end at first: most footers are shorter; a longer one takes a second read. */
const LOOK_BYTES = 64 * 1024
/** Longest footer that is read: it is held in memory some times over. */
const FOOTER_BYTES = 512 * 1024 * 1024

export type ReadRange = (range: { readonly start: number; readonly end: number }) => Promise<Uint8Array>

/** The footer of a file of `size` bytes. @throws SLUICE_PARQUET where the file is none, is cut or encrypted */
export async function readFooter(read: ReadRange, size: number): Promise<ThriftStruct> {
  if (size < MAGIC.byteLength + TAIL_BYTES) throw broken(`${size} bytes are too few for a Parquet file`)
  const head = await read({ start: 0, end: MAGIC.byteLength })
  const tail = await read({ start: Math.max(0, size - LOOK_BYTES), end: size })
  const magic = latin(tail.subarray(tail.byteLength - MAGIC.byteLength))
  if (magic === 'PARE' || latin(head) === 'PARE')
    throw broken('the file is encrypted', 'decrypt it first: sluice has no keys')
  if (latin(head) !== 'PAR1') throw broken('it does not begin with "PAR1"', 'check that it is a Parquet file')
  if (magic !== 'PAR1') throw broken('it does not end with "PAR1"', 'the file is cut: fetch or make it anew')
  const view = new DataView(tail.buffer, tail.byteOffset, tail.byteLength)
  const length = view.getUint32(tail.byteLength - TAIL_BYTES, true)
  const start = size - TAIL_BYTES - length
  if (start < MAGIC.byteLength || length > FOOTER_BYTES)
    throw broken(`its footer is said to have ${length} bytes, which do not fit`)
  const known = tail.byteLength - TAIL_BYTES - length
  const bytes =
    known >= 0 ? tail.subarray(known, tail.byteLength - TAIL_BYTES) : await read({ start, end: size - TAIL_BYTES })
  try {
    return readThrift(bytes)
  } catch (error) {
    throw broken(`its footer makes no sense (${error instanceof Error ? error.message : String(error)})`)
  }
}

/** The error of a file that cannot be read. */
export function broken(why: string, hint?: string): SluiceError {
  return new SluiceError(
    'SLUICE_PARQUET',
    `this Parquet file cannot be read: ${why}`,
    hint === undefined ? {} : { hint },
  )
}

function latin(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1')
}
