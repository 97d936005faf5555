import { SluiceError } from '../../core/errors.ts'
import type { CopyOptions } from '../../core/options.ts'

/** Bytes of the head that are looked at: a tar names itself at byte 257. */
export const FOREIGN_BYTES = 512

interface Foreign {
  readonly magic: string
  readonly what: string
  readonly hint: string
}

const decompressor = (program: string): string => `decompress it first: ${program} FILE | sluice copy - …`

/**
 * Beginnings that no text has, in hexadecimal. Sources: the xz, LZ4 frame, 7z, RAR 5, snappy framing and Avro specifications; compress(1);
 * sqlite.org/fileformat; [MS-CFB]; ISO 32000-1.
 */
const FOREIGN: readonly Foreign[] = [
  { magic: 'fd377a585a00', what: 'compressed by xz', hint: decompressor('xz -dc') },
  { magic: '04224d18', what: 'compressed by lz4', hint: decompressor('lz4 -dc') },
  { magic: 'ff060000734e61507059', what: 'compressed by snappy', hint: decompressor('snzip -dc') },
  { magic: '1f9d', what: 'compressed by compress', hint: decompressor('gzip -dc') },
  { magic: '4c5a495001', what: 'compressed by lzip', hint: decompressor('lzip -dc') },
  { magic: '377abcaf271c', what: 'a 7z archive', hint: 'unpack it first: 7z x -so FILE | sluice copy - …' },
  { magic: '526172211a07', what: 'a RAR archive', hint: 'unpack it first' },
  { magic: '4f626a01', what: 'Avro', hint: 'write it anew as CSV, JSON Lines or Parquet' },
  { magic: '53514c69746520666f726d6174203300', what: 'an SQLite database', hint: 'write its table as CSV first' },
  { magic: 'd0cf11e0a1b11ae1', what: 'an Excel or other Office file', hint: 'save it as CSV first' },
  { magic: '255044462d', what: 'a PDF', hint: 'look for the data behind it' },
]

/** A tar's header has `ustar` here, behind a name that is filled up with NULs (POSIX pax, "ustar Interchange Format"). */
const USTAR_AT = 257
const TAR_NAME_BYTES = 100

/** UTF-16 is told by NULs in every other byte of this many, or of all there are. */
const UTF16_BYTES = 32

/**
 * Refuses what cannot be text in the encoding that was said, by the name of what it is: else the first odd byte in it would be the error.
 * A web page is text; it is refused where nobody said `--source-format`.
 *
 * @throws SLUICE_UNKNOWN_FORMAT, SLUICE_ENCODING
 */
export function refuseForeign(head: Uint8Array, o: { readonly url: string; readonly options: CopyOptions }): void {
  const { sourceFormat, encoding, onNul } = o.options
  const found = binary(head) ?? (sourceFormat === undefined ? webPage(head) : null)
  if (found !== null)
    throw new SluiceError('SLUICE_UNKNOWN_FORMAT', `this is ${found.what}, which sluice does not read`, {
      where: { url: o.url },
      hint: found.hint,
    })
  if (encoding !== undefined || onNul !== undefined) return
  const wide = wideText(head)
  if (wide !== null)
    throw new SluiceError('SLUICE_ENCODING', `this looks like ${wide.what}`, { where: { url: o.url }, hint: wide.hint })
}

function binary(head: Uint8Array): Omit<Foreign, 'magic'> | null {
  const hex = Buffer.from(head.subarray(0, 16)).toString('hex')
  const found = FOREIGN.find(({ magic }) => hex.startsWith(magic))
  if (found !== undefined) return found
  const tar =
    Buffer.from(head.subarray(USTAR_AT, USTAR_AT + 5)).toString('latin1') === 'ustar' &&
    head.subarray(0, TAR_NAME_BYTES).includes(0)
  return tar ? { what: 'a tar archive', hint: 'unpack it first: tar -xO -f FILE NAME | sluice copy - …' } : null
}

function webPage(head: Uint8Array): Omit<Foreign, 'magic'> | null {
  const text = Buffer.from(head).toString('utf8')
  if (!/^\ufeff?\s*<(?:!doctype\s+html|html)[\s>]/i.test(text)) return null
  return {
    what: 'a web page (HTML), perhaps one to sign in or one of an error',
    hint: 'look at it with sluice cat, and check the URL; --source-format takes it as it is',
  }
}

function wideText(head: Uint8Array): Omit<Foreign, 'magic'> | null {
  const [a, b, c, d] = head
  if ((a === 0xff && b === 0xfe && c === 0 && d === 0) || (a === 0 && b === 0 && c === 0xfe && d === 0xff))
    return { what: 'UTF-32', hint: 'convert it first: iconv -f UTF-32 -t UTF-8 FILE | sluice copy - …' }
  const look = head.subarray(0, UTF16_BYTES)
  if (look.byteLength < 4) return null
  const nulAt = (odd: number): boolean => look.every((byte, i) => (byte === 0) === (i % 2 === odd))
  const name = nulAt(1) ? 'utf-16le' : nulAt(0) ? 'utf-16be' : null
  return name === null ? null : { what: 'UTF-16 without a byte-order mark', hint: `say --encoding ${name}` }
}
