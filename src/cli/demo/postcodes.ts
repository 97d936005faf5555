import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { crc32, createDeflateRaw } from 'node:zlib'

/** The one file in the zip. */
const ENTRY = Buffer.from('ukpostcodes.csv')
const LETTERS = 'ABDEFGHJLNPQRSTUWXYZ'
/** One postcode of so many has no place: they are what --skip-if-empty leaves out. */
const NOWHERE = 250
/** Rows put together before they are compressed: about 400 KiB. */
const BATCH_ROWS = 10_000
/** 1 December 2020, 00:00, as MS-DOS has date and time (APPNOTE 4.4.6); the third experiment's file is of that month. */
const DOS_DATE = ((2020 - 1980) << 9) | (12 << 5) | 1

/**
 * A zip with one CSV file of postcodes in the shape of the third experiment's, the same for the same number of rows; each postcode once, some without
 * a place. A zip without zip64 ends at 4 GiB, which is some hundred million rows. Resolves with the zip's size in bytes.
 */
export async function writePostcodesZip(path: string, rows: number): Promise<number> {
  const file = createWriteStream(path)
  const deflate = createDeflateRaw({ level: 6 })
  let [crc, plainBytes, packedBytes] = [0, 0, 0]
  // Sizes and checksum are known at the end only: bit 3 says that they follow the data (APPNOTE 4.4.4).
  const shared = (sizes: readonly [crc: number, packed: number, plain: number]): Buffer => {
    const bytes = Buffer.alloc(26)
    bytes.writeUInt16LE(20, 0)
    bytes.writeUInt16LE(8, 2)
    bytes.writeUInt16LE(8, 4)
    bytes.writeUInt16LE(DOS_DATE, 8)
    for (const [i, value] of sizes.entries()) bytes.writeUInt32LE(value, 10 + 4 * i)
    bytes.writeUInt16LE(ENTRY.byteLength, 22)
    return bytes
  }
  const head = Buffer.concat([signature(3, 4), shared([0, 0, 0]), ENTRY])
  file.write(head)
  deflate.on('data', (chunk: Buffer) => {
    packedBytes += chunk.byteLength
    if (!file.write(chunk)) {
      deflate.pause()
      file.once('drain', () => deflate.resume())
    }
  })
  for (const text of postcodes(rows)) {
    const bytes = Buffer.from(text)
    crc = crc32(bytes, crc)
    plainBytes += bytes.byteLength
    if (!deflate.write(bytes)) await once(deflate, 'drain')
  }
  deflate.end()
  await finished(deflate)
  const sizes = [crc, packedBytes, plainBytes] as const
  const descriptor = Buffer.alloc(12)
  for (const [i, value] of sizes.entries()) descriptor.writeUInt32LE(value, 4 * i)
  // Behind the name's length come extra, comment, disk and attributes, and where the entry begins: all 0.
  const entry = Buffer.concat([signature(1, 2), Buffer.from([20, 0]), shared(sizes), Buffer.alloc(14), ENTRY])
  const end = Buffer.alloc(18)
  end.writeUInt16LE(1, 4)
  end.writeUInt16LE(1, 6)
  end.writeUInt32LE(entry.byteLength, 8)
  end.writeUInt32LE(head.byteLength + packedBytes + 4 + descriptor.byteLength, 12)
  file.end(Buffer.concat([signature(7, 8), descriptor, entry, signature(5, 6), end]))
  await finished(file)
  return file.bytesWritten
}

/** "PK" and two bytes: what begins each part of a zip (APPNOTE 4.3). */
function signature(a: number, b: number): Buffer {
  return Buffer.from([0x50, 0x4b, a, b])
}

/** The file in pieces: a header, then rows in the order of their postcodes, as the real file has them. */
function* postcodes(rows: number): Generator<string> {
  let text = 'id,postcode,latitude,longitude\n'
  for (let i = 1; i <= rows; i += 1) {
    const place =
      i % NOWHERE === 0
        ? ','
        : `${spread(i, 2_654_435_761, [49.9, 60.8]).toFixed(6)},${spread(i, 40_503_001, [-8.1, 1.7]).toFixed(6)}`
    text += `${i},${postcode(i - 1)},${place}\n`
    if (i % BATCH_ROWS === 0 || i === rows) {
      yield text
      text = ''
    }
  }
}

/** The n-th postcode: area of two letters and, past 464,000,000, of more; district and sector of a digit or two; unit of two letters. */
function postcode(n: number): string {
  const letter = (value: number): string => LETTERS[value % LETTERS.length] ?? ''
  const unit = n % 400
  const sector = Math.floor(n / 400)
  const [district, area] = [sector % 290, Math.floor(sector / 290)]
  const beyond = Math.floor(area / 400)
  return `${letter(Math.floor(area / 20))}${letter(area)}${1 + Math.floor(district / 10)}${beyond === 0 ? '' : `-${beyond}`} ${district % 10}${letter(Math.floor(unit / 20))}${letter(unit)}`
}

/** A number of the range that looks as if it came by chance: multiplicative hashing (Knuth, The Art of Computer Programming, 6.4). */
function spread(i: number, factor: number, [from, to]: readonly [number, number]): number {
  return from + ((Math.imul(i, factor) >>> 0) / 2 ** 32) * (to - from)
}
