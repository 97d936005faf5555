import { RandomAccessReader, fromRandomAccessReaderPromise, getFileNameLowLevel, type Entry, type ZipFile } from 'yauzl'
import { SluiceError } from '../core/errors.ts'
import type { Abortable, ByteRange } from '../core/ports.ts'

/** Bytes by range: all that a zip needs of a store. */
export interface RangeReader {
  /** In bytes. */
  readonly size: number
  read(range: ByteRange, o: Abortable): AsyncIterable<Uint8Array>
}

export interface ZipOptions extends Abortable {
  /** For errors. */
  readonly url: string
}

/** One line of the directory. */
export interface DirectoryLine {
  readonly entry: Entry
  readonly name: string
}

export interface Directory {
  readonly lines: readonly DirectoryLine[]
  /** Offset at which an entry's data begin, by its own header. */
  dataStart(line: DirectoryLine): Promise<number>
}

/** Bytes fetched at once for the directory: one request for most archives, since it lies at the end. */
const FETCH_BYTES = 256 * 1024
/** Most entries of an archive: about 1 KB of memory each. */
const MOST_ENTRIES = 100_000

/**
 * Reads a zip's central directory.
 *
 * @throws SLUICE_COMPRESSION where it is not there (a cut file), corrupt, or its entries overlap
 */
export async function readDirectory(reader: RangeReader, o: ZipOptions): Promise<Directory> {
  const access = new DirectoryAccess(reader, o)
  const guarded = <T>(work: Promise<T>): Promise<T> =>
    Promise.race([work, access.broken]).catch((error: unknown) => {
      throw translate(error, o)
    })
  const options = { autoClose: false, decodeStrings: false, validateEntrySizes: false }
  const zip = await guarded(fromRandomAccessReaderPromise(access, reader.size, options))
  const directoryStart = Number(zip.readEntryCursor)
  const lines = await guarded(collect(zip, o))
  refuseOverlaps(lines, directoryStart, o)
  return {
    lines,
    dataStart: async (line) => {
      const header = await guarded(zip.readLocalFileHeaderPromise(line.entry, { minimal: false }))
      if (header.compressionMethod === line.entry.compressionMethod && header.fileName.equals(line.entry.fileNameRaw))
        return header.fileDataStart
      throw damaged(`the header of ${line.name} says something else than the directory`, {
        url: o.url,
        byte: line.entry.relativeOffsetOfLocalHeader,
      })
    },
  }
}

async function collect(zip: ZipFile, o: ZipOptions): Promise<DirectoryLine[]> {
  const lines: DirectoryLine[] = []
  for await (const entry of zip.eachEntry()) {
    if (lines.length === MOST_ENTRIES) throw damaged(`a zip of more than ${MOST_ENTRIES} entries`, o)
    // UTF-8 by its flag or by the Info-ZIP extra field, else code page 437 (APPNOTE, appendix D).
    const name = getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, false)
    lines.push({ entry, name })
  }
  return lines
}

/** Entries that share bytes are no archive that a tool would write, but how a few kilobytes come to stand for terabytes. */
function refuseOverlaps(lines: readonly DirectoryLine[], directoryStart: number, o: ZipOptions): void {
  const ordered = lines.toSorted((a, b) => a.entry.relativeOffsetOfLocalHeader - b.entry.relativeOffsetOfLocalHeader)
  ordered.forEach((line, index) => {
    const { relativeOffsetOfLocalHeader: start, compressedSize, fileNameLength } = line.entry
    const next = ordered[index + 1]?.entry.relativeOffsetOfLocalHeader ?? directoryStart
    // 30: a local header without its name.
    if (start + 30 + fileNameLength + compressedSize > next)
      throw damaged(`${line.name} overlaps what follows it`, { url: o.url, byte: start })
  })
}

function translate(error: unknown, o: ZipOptions): unknown {
  if (error instanceof SluiceError || o.signal.aborted) return error
  return damaged(error instanceof Error ? error.message : String(error), { url: o.url }, error)
}

function damaged(
  what: string,
  { url, byte }: { readonly url: string; readonly byte?: number },
  cause?: unknown,
): SluiceError {
  return new SluiceError('SLUICE_COMPRESSION', `not a whole zip archive: ${what}`, {
    where: { url, byte },
    cause,
  })
}

/** yauzl's view of a RangeReader. Fetches more than asked and keeps the last two stretches, since yauzl asks for a few bytes at a time. */
class DirectoryAccess extends RandomAccessReader {
  /** Rejects when yauzl's own code throws inside a callback. */
  readonly broken: Promise<never>
  readonly #reader: RangeReader
  readonly #o: ZipOptions
  #kept: { readonly start: number; readonly bytes: Buffer }[] = []
  #fail: (reason: unknown) => void = () => undefined

  constructor(reader: RangeReader, o: ZipOptions) {
    super()
    this.#reader = reader
    this.#o = o
    this.broken = new Promise((_, reject) => {
      this.#fail = reject
    })
    this.broken.catch(() => undefined)
  }

  override read(...[buffer, offset, length, position, callback]: Parameters<RandomAccessReader['read']>): void {
    this.#stretch(position, length)
      .then(
        (bytes) => {
          bytes.copy(buffer, offset)
          callback(bytes.byteLength === length ? null : new Error('it ends too early'))
        },
        (error: unknown) => callback(error instanceof Error ? error : new Error(String(error))),
      )
      .catch((error: unknown) => this.#fail(error))
  }

  /** Up to `length` bytes at `position`; fewer where the archive ends. */
  async #stretch(position: number, length: number): Promise<Buffer> {
    const end = Math.min(position + length, this.#reader.size)
    if (!(position >= 0 && position < end)) return Buffer.alloc(0)
    const found = this.#kept.find(({ start, bytes }) => start <= position && end <= start + bytes.byteLength)
    if (found !== undefined) return found.bytes.subarray(position - found.start, end - found.start)
    const start = end === this.#reader.size ? Math.max(0, Math.min(position, end - FETCH_BYTES)) : position
    const bytes = await this.#fetch({ start, end: Math.min(this.#reader.size, Math.max(end, start + FETCH_BYTES)) })
    this.#kept = [{ start, bytes }, ...this.#kept.slice(0, 1)]
    return bytes.subarray(position - start, end - start)
  }

  async #fetch(range: ByteRange): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this.#reader.read(range, this.#o)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }
}
