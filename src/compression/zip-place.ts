import type { RangeReader, ZipOptions } from './zip-directory.ts'

/** The end record without its comment, and the longest comment (APPNOTE 4.3.16). Bytes. */
const END_BYTES = 22
const LONGEST_COMMENT = 0xffff
const ZIP64 = 0xffffffff

/**
 * An archive that does not fill its file: with something before it, from which its offsets do not count, or up to 64 KiB behind it. Null where there is
 * none, or no more than it. One range is read, and the first four bytes of the archive.
 */
export async function archiveWithin(reader: RangeReader, o: ZipOptions): Promise<RangeReader | null> {
  const from = Math.max(0, reader.size - 2 * LONGEST_COMMENT - END_BYTES)
  const tail = await bytesOf(reader, { start: from, end: reader.size }, o)
  for (let at = tail.byteLength - END_BYTES; at >= 0; at -= 1) {
    if (tail.readUInt32LE(at) !== 0x06054b50) continue
    const end = from + at + END_BYTES + tail.readUInt16LE(at + 20)
    if (end > reader.size) continue
    const [size, offset] = [tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)]
    const before = size === ZIP64 || offset === ZIP64 ? 0 : from + at - size - offset
    const start = before > 0 && (await beginsArchive(reader, before, o)) ? before : 0
    return start === 0 && end === reader.size ? null : partOf(reader, start, end)
  }
  return null
}

async function beginsArchive(reader: RangeReader, start: number, o: ZipOptions): Promise<boolean> {
  const head = await bytesOf(reader, { start, end: start + 4 }, o)
  return head.toString('latin1') === 'PK\u0003\u0004'
}

function partOf(reader: RangeReader, from: number, to: number): RangeReader {
  return {
    size: to - from,
    read: ({ start, end }, o) => reader.read({ start: from + start, end: Math.min(to, from + end) }, o),
  }
}

async function bytesOf(
  reader: RangeReader,
  range: { readonly start: number; readonly end: number },
  o: ZipOptions,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of reader.read(range, o)) chunks.push(chunk)
  return Buffer.concat(chunks)
}
