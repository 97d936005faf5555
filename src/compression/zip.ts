import { crc32, createInflateRaw } from 'node:zlib'
import { SluiceError } from '../core/errors.ts'
import { shellQuote } from '../core/shell-quote.ts'
import { ByteCursor } from './byte-cursor.ts'
import { joinSmallChunks } from './chunk-joiner.ts'
import { stripCompressionExtension } from './detect.ts'
import { compressionFault } from './fault.ts'
import { translateZlib } from './gzip.ts'
import { ENGINE_CHUNK_BYTES, runEngine, type Engine } from './run-engine.ts'
import { archiveWithin } from './zip-place.ts'
import {
  readDirectory,
  type Directory,
  type DirectoryLine,
  type RangeReader,
  type ZipOptions,
} from './zip-directory.ts'
import { unzstd } from './zstd.ts'

export type { RangeReader, ZipOptions } from './zip-directory.ts'

/** One file of an archive, by the archive's directory. Sizes in bytes. */
export interface ZipEntry {
  readonly name: string
  readonly size: number
  readonly compressedSize: number
  /** APPNOTE 4.4.5; 0 stored, 8 deflate and 93 zstd can be read. */
  readonly method: number
  readonly encrypted: boolean
  readonly crc32: number
}

export interface ZipArchive {
  readonly url: string
  /** Everything in it save folders, in the directory's order. */
  entries(): readonly ZipEntry[]
  /** Those with the ending of a known format (also below that of a compression), not under `__MACOSX/`, not a README. */
  dataEntries(): readonly ZipEntry[]
  /**
   * The entry's bytes, decompressed, in order, pull-driven, read as one range; size and CRC-32 are checked at the end.
   *
   * @throws SLUICE_COMPRESSION: encrypted, an unknown method, cut, corrupt, larger or smaller than the directory says
   */
  readEntry(entry: ZipEntry, o: ZipOptions): AsyncGenerator<Uint8Array, void, undefined>
}

const DATA_ENDING = /\.(?:csv|tsv|tab|jsonl|ndjson|json|parquet)$/i
const README = /(?:^|\/)readme(?:\.[^/]*)?$/i
/** macOS puts resource forks beside files: under `__MACOSX/`, or by this prefix. */
const RESOURCE_FORK = /(?:^__MACOSX\/|\/__MACOSX\/|(?:^|\/)\._[^/]*$)/
/** Names that a message lists at most. */
const LISTED_NAMES = 10

const METHODS: Readonly<Record<number, string>> = {
  9: 'deflate64',
  12: 'bzip2',
  14: 'LZMA',
  95: 'xz',
  98: 'PPMd',
  99: 'AES',
}

/**
 * Opens a zip archive by its directory: two or three range requests, whatever the archive's size.
 *
 * @throws SLUICE_COMPRESSION where the directory is missing (a cut file) or corrupt
 */
export async function openZip(given: RangeReader, o: ZipOptions): Promise<ZipArchive> {
  const { reader, directory } = await findDirectory(given, o)
  const lines = new Map<ZipEntry, DirectoryLine>()
  for (const line of directory.lines) {
    if (!line.name.endsWith('/')) lines.set(entryOf(line), line)
  }
  const entries = [...lines.keys()]
  return {
    url: o.url,
    entries: () => entries,
    dataEntries: () => entries.filter((entry) => isData(entry.name)),
    readEntry: (entry, place) => {
      const line = lines.get(entry)
      if (line === undefined) throw new SluiceError('SLUICE_INTERNAL', `${entry.name} is not an entry of this archive`)
      return readEntry({ entry, line, directory, reader }, place)
    },
  }
}

/** The directory, also of an archive with something before it (a program that unpacks it) or behind it, which nobody pays for who has neither. */
async function findDirectory(
  reader: RangeReader,
  o: ZipOptions,
): Promise<{ reader: RangeReader; directory: Directory }> {
  try {
    return { reader, directory: await readDirectory(reader, o) }
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== 'SLUICE_COMPRESSION') throw error
    const within = await archiveWithin(reader, o)
    if (within === null) throw error
    return { reader: within, directory: await readDirectory(within, o) }
  }
}

function entryOf({ entry, name }: DirectoryLine): ZipEntry {
  const { uncompressedSize: size, compressedSize, compressionMethod: method } = entry
  return { name, size, compressedSize, method, encrypted: entry.isEncrypted(), crc32: entry.crc32 }
}

function isData(name: string): boolean {
  if (README.test(name) || RESOURCE_FORK.test(name) || /\.zip$/i.test(name)) return false
  return DATA_ENDING.test(stripCompressionExtension(name))
}

/**
 * The entry of that name, or without a name the only data entry.
 *
 * @throws SLUICE_ARCHIVE_ENTRY which names the candidates
 */
export function pickEntry(archive: ZipArchive, name: string | undefined): ZipEntry {
  const data = archive.dataEntries()
  const all = archive.entries()
  const found = name === undefined ? data : all.filter((entry) => entry.name === name)
  if (found.length === 1 && found[0] !== undefined) return found[0]
  const where = { url: archive.url }
  const fault = (what: string, hint: string): SluiceError =>
    new SluiceError('SLUICE_ARCHIVE_ENTRY', what, { where, hint })
  const [first] = found
  if (first !== undefined && found.every((entry) => entry.name === first.name))
    throw fault(
      `${first.name} is in the archive ${found.length} times`,
      'unpack it first, and load the file that is meant: a name cannot tell them apart',
    )
  if (name !== undefined)
    throw fault(
      `no entry ${name} in the archive; it has ${listed(data.length > 0 ? data : all)}`,
      'say --entry with one of its names',
    )
  if (all.length === 0)
    throw fault('there is no file in the archive; it has no entries', 'check that it is the right one')
  if (data.length === 0)
    throw fault(
      `no data file in the archive; it has ${listed(all)}`,
      'say --entry NAME, and --source-format where the name does not tell; an archive in it must be unpacked first',
    )
  throw new SluiceError('SLUICE_ARCHIVE_ENTRY', `${data.length} data files in the archive: ${listed(data)}`, { where })
}

function listed(entries: readonly ZipEntry[]): string {
  if (entries.length === 0) return 'no entries'
  const names = entries.slice(0, LISTED_NAMES).map((entry) => entry.name)
  const more = entries.length - names.length
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ')
}

/** @throws SLUICE_COMPRESSION with what reads it instead */
function refuseUnread(entry: ZipEntry, where: { readonly url: string; readonly byte: number }): void {
  const { name, method, encrypted } = entry
  const [what, how] = encrypted
    ? ['encrypted', 'unpack it first, with its password: 7z x -so -pPASSWORD']
    : [`compressed by ${METHODS[method] ?? `method ${method}`}`, 'unpack it first: 7z x -so']
  if (!encrypted && (method === 0 || method === 8 || method === 93)) return
  throw new SluiceError('SLUICE_COMPRESSION', `${name} is ${what}, which sluice does not read`, {
    where,
    hint: `${how} ARCHIVE ${shellQuote([name])} | sluice copy - …`,
  })
}

interface OpenEntry {
  readonly entry: ZipEntry
  readonly line: DirectoryLine
  readonly directory: Directory
  readonly reader: RangeReader
}

async function* readEntry(open: OpenEntry, o: ZipOptions): AsyncGenerator<Uint8Array, void, undefined> {
  const { entry } = open
  const at = open.line.entry.relativeOffsetOfLocalHeader
  refuseUnread(entry, { url: o.url, byte: at })
  const start = await open.directory.dataStart(open.line)
  const cursor = new ByteCursor(open.reader.read({ start, end: start + entry.compressedSize }, o), {
    signal: o.signal,
    position: start,
  })
  try {
    yield* joinSmallChunks(checked(decoded(cursor, entry, o), entry, { ...o, byte: start }))
    if ((await cursor.take(1)).byteLength > 0) {
      throw compressionFault(`${entry.name} ends before its data do`, { url: o.url, byte: cursor.position - 1 })
    }
  } finally {
    await cursor.close()
  }
}

async function* decoded(
  cursor: ByteCursor,
  entry: ZipEntry,
  o: ZipOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (entry.method === 93) {
    yield* unzstd(cursor, o.url)
  } else if (entry.method === 0) {
    for (let chunk = await cursor.next(); chunk !== null; chunk = await cursor.next()) yield chunk
  } else {
    const start = cursor.position
    const engine: Engine = createInflateRaw({ chunkSize: ENGINE_CHUNK_BYTES })
    try {
      yield* runEngine(engine, cursor)
    } catch (error) {
      throw translateZlib(error, o.url, start + engine.bytesWritten)
    }
  }
}

/** Hands bytes on while they are no more than announced; checks size and CRC-32 at the end. */
async function* checked(
  chunks: AsyncIterable<Uint8Array>,
  entry: ZipEntry,
  o: { readonly url: string; readonly byte: number },
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0
  let checksum = 0
  for await (const chunk of chunks) {
    size += chunk.byteLength
    if (size > entry.size)
      throw compressionFault(`${entry.name} is larger than the directory says (${entry.size} bytes)`, {
        url: o.url,
        byte: o.byte,
      })
    checksum = crc32(chunk, checksum)
    yield chunk
  }
  if (size < entry.size)
    throw compressionFault(`${entry.name} is cut: ${size} of ${entry.size} bytes`, { url: o.url, byte: o.byte })
  if (checksum !== entry.crc32)
    throw compressionFault(`${entry.name} has a wrong checksum: the data is corrupt`, { url: o.url, byte: o.byte })
}
