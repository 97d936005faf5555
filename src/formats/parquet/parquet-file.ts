import { SluiceError } from '../../core/errors.ts'
import { MAGIC, fileEnd } from './footer.ts'
import { TYPE, readThrift, thriftStruct, writeThrift } from './raw-thrift.ts'
import type { ThriftStruct } from './raw-thrift.ts'
import type { ParquetGroup } from './parquet-encoder.ts'

/** Fields of parquet.thrift by struct. */
const FILE = { version: 1, schema: 2, rows: 3, groups: 4, metadata: 5, createdBy: 6, columnOrders: 7 }
const GROUP = { columns: 1, rows: 3, fileOffset: 5, ordinal: 7 }
const CHUNK = { fileOffset: 2, metadata: 3, offsetIndex: [4, 5], columnIndex: [6, 7] }
const CHUNK_META = {
  statistics: 12,
  compressedBytes: 7,
  dataPage: 9,
  indexPage: 10,
  dictionaryPage: 11,
  bloomFilter: [14, 15],
}
const STATISTICS = { bounds: [1, 2, 5, 6, 7, 8] }
/** Longest minimum or maximum that a footer keeps, in bytes: a value of 20 MB would be there eight times. Without one readers skip nothing. */
const BOUND_BYTES = 1024
/** A footer's length has 32 bits, and readers take it as signed. */
const FOOTER_BYTES = 2 ** 31 - 1

/**
 * Joins row groups, in the order in which they are added, to one file. Row groups are moved as bytes: of their metadata only the offsets change,
 * statistics stay as they are byte by byte. Keeps some hundred bytes a column of each row group for the footer.
 */
export class ParquetFile {
  readonly #schema: ThriftStruct
  readonly #version: string
  /** Row groups as bytes of thrift. */
  readonly #groups: Uint8Array[] = []
  #footerBytes = 0
  #rows = 0n
  #at = MAGIC.byteLength

  /** `schemaFooter` as the encoder has it; `version` of sluice. */
  constructor(o: { readonly schemaFooter: Uint8Array; readonly version: string }) {
    this.#schema = readThrift(o.schemaFooter)
    this.#version = o.version
  }

  /** The file's first bytes. */
  begin(): Uint8Array {
    return MAGIC.slice()
  }

  /**
   * The bytes of the next row group. A batch without rows adds nothing.
   *
   * @throws SLUICE_PARQUET where the footer would be longer than the format allows
   */
  add(group: ParquetGroup): Uint8Array {
    const shift = BigInt(this.#at - MAGIC.byteLength)
    let bodyEnd = MAGIC.byteLength
    for (const rowGroup of readThrift(group.footer).structs(FILE.groups)) {
      for (const chunk of rowGroup.structs(GROUP.columns)) bodyEnd = Math.max(bodyEnd, moveChunk(chunk, shift))
      moveBy(rowGroup, GROUP.fileOffset, shift)
      // Optional, and 16 bits wide: files of more row groups leave it out.
      rowGroup.delete(GROUP.ordinal)
      this.#keep(writeThrift(rowGroup))
      this.#rows += BigInt(rowGroup.integer(GROUP.rows) ?? 0)
    }
    const body = group.body.subarray(0, bodyEnd - MAGIC.byteLength)
    this.#at += body.byteLength
    return body
  }

  /** The file's last bytes, of a file without row groups too. `metadata` becomes its key-value metadata. */
  end(metadata: Readonly<Record<string, string>>): Uint8Array {
    const file = thriftStruct()
    for (const id of [FILE.version, FILE.schema, FILE.columnOrders]) copyField(this.#schema, file, id)
    file.set(FILE.rows, TYPE.i64, this.#rows)
    file.set(FILE.groups, TYPE.list, { of: TYPE.struct, items: this.#groups })
    const pairs = Object.entries(metadata).map(([key, value]) =>
      thriftStruct([1, TYPE.binary, Buffer.from(key)], [2, TYPE.binary, Buffer.from(value)]),
    )
    if (pairs.length > 0) file.set(FILE.metadata, TYPE.list, { of: TYPE.struct, items: pairs })
    // "<application> version <version>", as parquet.thrift has it.
    file.set(FILE.createdBy, TYPE.binary, Buffer.from(`sluice version ${this.#version}`))
    return fileEnd(writeThrift(file))
  }

  #keep(bytes: Uint8Array): void {
    this.#footerBytes += bytes.byteLength
    if (this.#footerBytes > FOOTER_BYTES)
      throw new SluiceError('SLUICE_PARQUET', 'the file has too many row groups and columns for one footer', {
        hint: 'larger row groups (--row-group-rows), or more files (--max-file-size)',
      })
    this.#groups.push(Uint8Array.from(bytes))
  }
}

/**
 * Moves what a column chunk's metadata says of places in the file; returns where its pages ended before. The page indexes, which lie behind the
 * pages and hold places themselves, are left out: they are optional.
 */
function moveChunk(chunk: ThriftStruct, shift: bigint): number {
  moveBy(chunk, CHUNK.fileOffset, shift)
  for (const id of [...CHUNK.offsetIndex, ...CHUNK.columnIndex]) chunk.delete(id)
  const meta = chunk.struct(CHUNK.metadata)
  if (meta === undefined) throw new SluiceError('SLUICE_INTERNAL', 'a column chunk without metadata')
  for (const id of CHUNK_META.bloomFilter) meta.delete(id)
  const data = meta.integer(CHUNK_META.dataPage) ?? 0
  const begin = Math.min(data, meta.integer(CHUNK_META.dictionaryPage) ?? data)
  for (const id of [CHUNK_META.dataPage, CHUNK_META.indexPage, CHUNK_META.dictionaryPage]) moveBy(meta, id, shift)
  const statistics = meta.struct(CHUNK_META.statistics)
  const long = STATISTICS.bounds.some((id) => (statistics?.bytes(id)?.byteLength ?? 0) > BOUND_BYTES)
  if (long) for (const id of STATISTICS.bounds) statistics?.delete(id)
  return begin + (meta.integer(CHUNK_META.compressedBytes) ?? 0)
}

function moveBy(struct: ThriftStruct, id: number, shift: bigint): void {
  const value = struct.get(id)
  // 0 stands for "not said" (ColumnChunk.file_offset).
  if (typeof value === 'bigint' && value > 0n) struct.set(id, TYPE.i64, value + shift)
}

function copyField(from: ThriftStruct, to: ThriftStruct, id: number): void {
  const field = from.entries().find(([own]) => own === id)?.[1]
  if (field !== undefined) to.set(id, field.type, field.value)
}
