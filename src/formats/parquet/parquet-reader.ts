import type { Value } from '../../core/batch.ts'
import type { Column } from '../../core/schema.ts'
import { takeDecoder } from './decode-pool.ts'
import { fileEnd, MAGIC } from './footer.ts'
import { columnOf, leavesOf, schemaNodes } from './parquet-schema.ts'
import type { SchemaNode } from './parquet-schema.ts'
import { checkPages } from './page-checksums.ts'
import type { PageRun } from './page-checksums.ts'
import { TYPE, thriftStruct, writeThrift } from './raw-thrift.ts'
import type { ThriftStruct } from './raw-thrift.ts'
import { broken, readFooter } from './read-footer.ts'
import type { ReadRange } from './read-footer.ts'
export type { ReadRange } from './read-footer.ts'

/** Fields of parquet.thrift by struct. */
const FILE = { version: 1, schema: 2, rows: 3, groups: 4, metadata: 5, createdBy: 6, columnOrders: 7, encryption: 8 }
const GROUP = { columns: 1, bytes: 2, rows: 3, fileOffset: 5 }
const CHUNK = { path: 1, fileOffset: 2, metadata: 3, indexes: [4, 5, 6, 7], crypto: [8, 9] }
const ELEMENT = { type: 1, length: 2, converted: 6, logical: 10 }
const META = {
  type: 1,
  path: 3,
  statistics: 12,
  compressed: 7,
  dataPage: 9,
  indexPage: 10,
  dictionaryPage: 11,
  bloomFilter: [14, 15],
}
/**
 * Timestamps of old Spark files. The decoder would make nanoseconds of them, which years before 1677 and after 2262 have not: it is given them as what
 * they are, too, values of 12 bytes. Physical types of parquet.thrift.
 */
const INT96 = 3
const FIXED_LENGTH = 7
const INT96_BYTES = 12
/** Rows of a batch at most, and uncompressed bytes about. */
const BATCH_ROWS = 2048
const BATCH_BYTES = 512 * 1024
/** Longest row group that is read: it is in memory whole, compressed, and in the decoder's, whose memory ends at 4 GiB. */
const GROUP_BYTES = 1536 * 1024 * 1024

export interface ParquetGroupInfo {
  readonly rows: number
  /** Data rows of the file before it. */
  readonly firstRow: number
  /** Where its pages lie in the file; `[start, end)`. */
  readonly start: number
  readonly end: number
}

export interface ParquetRows {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Value[])[]
}

/** An open Parquet file. */
export interface ParquetReader {
  readonly columns: readonly Column[]
  readonly groups: readonly ParquetGroupInfo[]
  readonly rows: number
  readonly metadata: Readonly<Record<string, string>>
  readonly createdBy: string | null
  /**
   * The rows of one group in batches of a few thousand. One thread and the group's bytes, compressed and decoded, are in memory meanwhile.
   *
   * @throws SLUICE_PARQUET
   */
  rowsOf(group: number, signal: AbortSignal): AsyncGenerator<ParquetRows>
}

/**
 * Opens a Parquet file of `size` bytes by ranged reads: its footer now, a row group when it is asked for.
 *
 * @throws SLUICE_PARQUET where it is broken, cut or encrypted, and what `read` throws
 */
export async function openParquetReader(read: ReadRange, size: number): Promise<ParquetReader> {
  return new Reader(read, size, await readFooter(read, size))
}

class Reader implements ParquetReader {
  readonly columns: readonly Column[]
  readonly groups: readonly ParquetGroupInfo[]
  readonly rows: number
  readonly metadata: Readonly<Record<string, string>>
  readonly createdBy: string | null
  readonly #read: ReadRange
  readonly #footer: ThriftStruct
  readonly #leaves: readonly SchemaNode[]

  constructor(read: ReadRange, size: number, footer: ThriftStruct) {
    this.#read = read
    this.#footer = footer
    if (footer.get(FILE.encryption) !== undefined) throw broken('the file is encrypted', 'decrypt it first')
    const nodes = schemaNodes(footer)
    this.columns = nodes.map((node) => columnOf(node))
    this.#leaves = leavesOf(nodes)
    for (const element of footer.structs(FILE.schema)) if (element.integer(ELEMENT.type) === INT96) takeAsBytes(element)
    this.groups = groupInfos(footer, { size, leaves: this.#leaves.length })
    this.rows = this.groups.reduce((sum, { rows }) => sum + rows, 0)
    if (this.rows !== footer.integer(FILE.rows)) throw broken('its row groups have not as many rows as its footer says')
    this.metadata = Object.fromEntries(
      footer.structs(FILE.metadata).map((pair) => [pair.text(1) ?? '', pair.text(2) ?? '']),
    )
    this.createdBy = footer.text(FILE.createdBy) ?? null
  }

  async *rowsOf(group: number, signal: AbortSignal): AsyncGenerator<ParquetRows> {
    const info = this.groups[group]
    if (info === undefined) throw broken(`it has no row group ${group}`)
    if (info.rows === 0) return
    const body = await this.#read({ start: info.start, end: info.end })
    signal.throwIfAborted()
    if (body.byteLength !== info.end - info.start) throw broken(`row group ${group} is cut`)
    checkPages(body, info.start, this.#pagesOf(group))
    const { arrowRows } = await import('./arrow-values.ts')
    const columns = this.columns.map(({ name }) => name)
    const decoder = takeDecoder()
    let rows = 0
    let whole = false
    try {
      await decoder.ask({ kind: 'open', file: this.#fileOf(group, body), batchRows: this.#batchRows(group) })
      for (;;) {
        signal.throwIfAborted()
        const answer = await decoder.ask({ kind: 'next' })
        if (answer.kind !== 'batch' || answer.stream === null) break
        const batch = arrowRows(answer.stream, this.#leaves)
        rows += batch.length
        yield { columns, rows: batch }
      }
      whole = true
    } finally {
      await decoder.release(whole)
    }
    if (rows !== info.rows) throw broken(`row group ${group} has ${rows} rows, where its footer says ${info.rows}`)
  }

  /** Rows of a batch, so that it has some hundred KiB: by the group's own mean. */
  #batchRows(group: number): number {
    const bytes = this.#footer.structs(FILE.groups)[group]?.integer(GROUP.bytes) ?? 0
    const rows = this.groups[group]?.rows ?? 0
    return bytes <= 0 ? BATCH_ROWS : Math.min(BATCH_ROWS, Math.max(1, Math.floor((BATCH_BYTES * rows) / bytes)))
  }

  #pagesOf(group: number): readonly PageRun[] {
    const chunks = this.#footer.structs(FILE.groups)[group]?.structs(GROUP.columns) ?? []
    return chunks.map((chunk) => ({ column: pathOf(chunk), ...chunkPlace(chunk, group) }))
  }

  /** A file of one row group: its bytes behind the magic ones, and a footer whose offsets are moved. What Arrow's schema would add is left out. */
  #fileOf(group: number, body: Uint8Array): Uint8Array {
    const { start = 0 } = this.groups[group] ?? {}
    const original = this.#footer.structs(FILE.groups)[group]
    if (original === undefined) throw broken(`it has no row group ${group}`)
    const shift = BigInt(MAGIC.byteLength - start)
    const footer = thriftStruct()
    for (const [id, { type, value }] of this.#footer.entries()) if (id !== FILE.metadata) footer.set(id, type, value)
    footer.set(FILE.rows, TYPE.i64, BigInt(original.integer(GROUP.rows) ?? 0))
    footer.set(FILE.groups, TYPE.list, { of: TYPE.struct, items: [movedGroup(original, shift)] })
    const end = fileEnd(writeThrift(footer))
    const file = new Uint8Array(MAGIC.byteLength + body.byteLength + end.byteLength)
    file.set(MAGIC)
    file.set(body, MAGIC.byteLength)
    file.set(end, MAGIC.byteLength + body.byteLength)
    return file
  }
}

/** A copy of a row group's metadata with its offsets moved; indexes and bloom filters, which lie elsewhere, are left out. */
function movedGroup(group: ThriftStruct, shift: bigint): ThriftStruct {
  const chunks = group.structs(GROUP.columns).map((chunk) => {
    const meta = thriftStruct()
    for (const [id, { type, value }] of chunk.struct(CHUNK.metadata)?.entries() ?? []) {
      const isPlace = id === META.dataPage || id === META.indexPage || id === META.dictionaryPage
      if (!META.bloomFilter.includes(id))
        meta.set(id, type, isPlace && typeof value === 'bigint' && value > 0n ? value + shift : value)
    }
    if (meta.integer(META.type) === INT96) meta.set(META.type, TYPE.i32, FIXED_LENGTH).delete(META.statistics)
    return thriftStruct([CHUNK.fileOffset, TYPE.i64, 0n], [CHUNK.metadata, TYPE.struct, meta])
  })
  const moved = thriftStruct()
  for (const [id, { type, value }] of group.entries()) if (id !== GROUP.fileOffset) moved.set(id, type, value)
  return moved.set(GROUP.columns, TYPE.list, { of: TYPE.struct, items: chunks })
}

function takeAsBytes(element: ThriftStruct): void {
  element.set(ELEMENT.type, TYPE.i32, FIXED_LENGTH).set(ELEMENT.length, TYPE.i32, INT96_BYTES)
  element.delete(ELEMENT.converted).delete(ELEMENT.logical)
}

function groupInfos(footer: ThriftStruct, o: { size: number; leaves: number }): readonly ParquetGroupInfo[] {
  let firstRow = 0
  return footer.structs(FILE.groups).map((group, i) => {
    const rows = group.integer(GROUP.rows) ?? 0
    const chunks = group.structs(GROUP.columns)
    if (rows < 0 || chunks.length !== o.leaves) throw broken(`row group ${i} has not the columns of the schema`)
    const places = chunks.map((chunk) => chunkPlace(chunk, i))
    const start = places.reduce((least, place) => Math.min(least, place.start), o.size)
    const end = places.reduce((most, place) => Math.max(most, place.end), 0)
    // A group without rows has no bytes, and its chunks any offset (pyarrow's empty tables).
    if (rows > 0 && chunks.length > 0 && (start < MAGIC.byteLength || end > o.size || start > end))
      throw broken(
        `row group ${i} is said to lie where the file has no bytes`,
        'the file is cut: fetch or make it anew',
      )
    if (end - start > GROUP_BYTES)
      throw broken(
        `row group ${i} has ${end - start} bytes; sluice reads up to ${GROUP_BYTES}`,
        'write it in smaller row groups',
      )
    firstRow += rows
    return { rows, firstRow: firstRow - rows, start, end }
  })
}

function pathOf(chunk: ThriftStruct): string {
  const names = chunk.struct(CHUNK.metadata)?.list(META.path) ?? []
  return names.map((name) => (name instanceof Uint8Array ? Buffer.from(name).toString() : '')).join('.')
}

function chunkPlace(chunk: ThriftStruct, group: number): { start: number; end: number } {
  const meta = chunk.struct(CHUNK.metadata)
  if (CHUNK.crypto.some((id) => chunk.get(id) !== undefined) || meta === undefined)
    throw broken('columns are encrypted', 'decrypt the file first: sluice has no keys')
  if (chunk.get(CHUNK.path) !== undefined) throw broken(`row group ${group} lies in another file`)
  const data = meta.integer(META.dataPage) ?? 0
  const dictionary = meta.integer(META.dictionaryPage) ?? 0
  // Some writers say 0 where there is no dictionary.
  const start = dictionary > 0 ? Math.min(data, dictionary) : data
  return { start, end: start + (meta.integer(META.compressed) ?? 0) }
}
