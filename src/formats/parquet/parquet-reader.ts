import type { Value } from '../../core/batch.ts'
import type { Column } from '../../core/schema.ts'
import { takeDecoder } from './decode-pool.ts'
import { fileEnd, MAGIC } from './footer.ts'
import { mendSchema, takeAsBytes } from './foreign-footer.ts'
import { MOST_MISSING_BYTES, pagesEnd, writerFaults } from './old-writers.ts'
import type { WriterFaults } from './old-writers.ts'
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
const META = {
  type: 1,
  path: 3,
  codec: 4,
  values: 5,
  statistics: 12,
  compressed: 7,
  dataPage: 9,
  indexPage: 10,
  dictionaryPage: 11,
  bloomFilter: [14, 15],
}
/** Physical types of parquet.thrift. */
const INT96 = 3
const FIXED_LENGTH = 7
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
  readonly #faults: WriterFaults

  constructor(read: ReadRange, size: number, footer: ThriftStruct) {
    this.#read = read
    this.#footer = footer
    if (footer.get(FILE.encryption) !== undefined) throw broken('the file is encrypted', 'decrypt it first')
    this.createdBy = footer.text(FILE.createdBy) ?? null
    this.#faults = writerFaults(this.createdBy)
    mendSchema(footer)
    const nodes = schemaNodes(footer)
    this.columns = nodes.map((node) => columnOf(node))
    this.#leaves = leavesOf(nodes)
    takeAsBytes(footer)
    const slack = this.#faults.shortChunks ? MOST_MISSING_BYTES : 0
    this.groups = groupInfos(footer, { size, leaves: this.#leaves.length, slack })
    this.rows = this.groups.reduce((sum, { rows }) => sum + rows, 0)
    // 0 stands for "not said" (parquet-rs 0.3).
    const said = footer.integer(FILE.rows) ?? 0
    if (said !== 0 && this.rows !== said) throw broken('its row groups have not as many rows as its footer says')
    this.metadata = Object.fromEntries(
      footer.structs(FILE.metadata).map((pair) => [pair.text(1) ?? '', pair.text(2) ?? '']),
    )
  }

  async *rowsOf(group: number, signal: AbortSignal): AsyncGenerator<ParquetRows> {
    const info = this.groups[group]
    if (info === undefined) throw broken(`it has no row group ${group}`)
    if (info.rows === 0) return
    if (this.#leaves.length === 0) return yield* emptyRows(info.rows)
    const body = await this.#read({ start: info.start, end: info.end })
    signal.throwIfAborted()
    if (body.byteLength !== info.end - info.start) throw broken(`row group ${group} is cut`)
    const ends = this.#trueEnds(group, body)
    checkPages(body, info.start, this.#pagesOf(group))
    const { arrowRows } = await import('./arrow-values.ts')
    const columns = this.columns.map(({ name }) => name)
    const decoder = takeDecoder()
    let rows = 0
    let whole = false
    try {
      await decoder.ask({ kind: 'open', file: this.#fileOf(group, body, ends), batchRows: this.#batchRows(group) })
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

  /** Where each column's pages end in the body, of a writer whose footers are not to be trusted with it; null: as the footer says. */
  #trueEnds(group: number, body: Uint8Array): readonly number[] | null {
    const { shortChunks, unsaidCompression } = this.#faults
    if (!shortChunks && !unsaidCompression) return null
    const { start: begin = 0 } = this.groups[group] ?? {}
    return chunksOf(this.#footer, group).map((chunk) => {
      const meta = chunk.struct(CHUNK.metadata)
      const compress = unsaidCompression && meta?.integer(META.codec) !== 0
      try {
        const start = chunkPlace(chunk, group).start - begin
        return pagesEnd(body, { start, values: meta?.integer(META.values) ?? 0, compress })
      } catch (error) {
        if (!(error instanceof RangeError)) throw error
        throw broken(`a page's header makes no sense (${error.message})`).at({ column: pathOf(chunk) })
      }
    })
  }

  #pagesOf(group: number): readonly PageRun[] {
    return chunksOf(this.#footer, group).map((chunk) => ({ column: pathOf(chunk), ...chunkPlace(chunk, group) }))
  }

  /** A file of one row group: its bytes behind the magic ones, and a footer whose offsets are moved. What Arrow's schema would add is left out. */
  #fileOf(group: number, body: Uint8Array, ends: readonly number[] | null): Uint8Array {
    const { start = 0 } = this.groups[group] ?? {}
    const original = this.#footer.structs(FILE.groups)[group]
    if (original === undefined) throw broken(`it has no row group ${group}`)
    const shift = BigInt(MAGIC.byteLength - start)
    const footer = thriftStruct()
    for (const [id, { type, value }] of this.#footer.entries()) if (id !== FILE.metadata) footer.set(id, type, value)
    footer.set(FILE.rows, TYPE.i64, BigInt(original.integer(GROUP.rows) ?? 0))
    footer.set(FILE.groups, TYPE.list, { of: TYPE.struct, items: [movedGroup(original, shift, ends)] })
    const end = fileEnd(writeThrift(footer))
    const file = new Uint8Array(MAGIC.byteLength + body.byteLength + end.byteLength)
    file.set(MAGIC)
    file.set(body, MAGIC.byteLength)
    file.set(end, MAGIC.byteLength + body.byteLength)
    return file
  }
}

/**
 * A copy of a row group's metadata with its offsets moved; indexes and bloom filters, which lie elsewhere, are left out. `ends`: of the columns in the
 * body, where the footer's lengths are not true.
 */
function movedGroup(group: ThriftStruct, shift: bigint, ends: readonly number[] | null): ThriftStruct {
  const chunks = group.structs(GROUP.columns).map((chunk, i) => {
    const meta = thriftStruct()
    for (const [id, { type, value }] of chunk.struct(CHUNK.metadata)?.entries() ?? []) {
      const isPlace = id === META.dataPage || id === META.indexPage || id === META.dictionaryPage
      if (META.bloomFilter.includes(id)) continue
      // No page lies at 0: some writers say so where there is none (parquet-mr 1.12).
      if (!isPlace) meta.set(id, type, value)
      else if (typeof value === 'bigint' && value > 0n) meta.set(id, type, value + shift)
    }
    const end = ends?.[i]
    if (end !== undefined)
      meta.set(META.compressed, TYPE.i64, BigInt(end + MAGIC.byteLength) - BigInt(chunkPlace(chunk, 0).start) - shift)
    if (meta.integer(META.type) === INT96) meta.set(META.type, TYPE.i32, FIXED_LENGTH).delete(META.statistics)
    return thriftStruct([CHUNK.fileOffset, TYPE.i64, 0n], [CHUNK.metadata, TYPE.struct, meta])
  })
  const moved = thriftStruct()
  for (const [id, { type, value }] of group.entries()) if (id !== GROUP.fileOffset) moved.set(id, type, value)
  return moved.set(GROUP.columns, TYPE.list, { of: TYPE.struct, items: chunks })
}

/** Rows of a file without columns: pandas writes a table's index as such. */
function* emptyRows(rows: number): Generator<ParquetRows> {
  for (let left = rows; left > 0; left -= BATCH_ROWS)
    yield { columns: [], rows: Array.from({ length: Math.min(left, BATCH_ROWS) }, () => []) }
}

function chunksOf(footer: ThriftStruct, group: number): readonly ThriftStruct[] {
  return footer.structs(FILE.groups)[group]?.structs(GROUP.columns) ?? []
}

function groupInfos(
  footer: ThriftStruct,
  o: { size: number; leaves: number; slack: number },
): readonly ParquetGroupInfo[] {
  let firstRow = 0
  return footer.structs(FILE.groups).map((group, i) => {
    const rows = group.integer(GROUP.rows) ?? 0
    const chunks = group.structs(GROUP.columns)
    if (rows < 0 || chunks.length !== o.leaves) throw broken(`row group ${i} has not the columns of the schema`)
    const places = chunks.map((chunk) => chunkPlace(chunk, i))
    const start = places.reduce((least, place) => Math.min(least, place.start), o.size)
    const saidEnd = places.reduce((most, place) => Math.max(most, place.end), 0)
    // A group without rows has no bytes, and its chunks any offset (pyarrow's empty tables).
    if (rows > 0 && chunks.length > 0 && (start < MAGIC.byteLength || saidEnd > o.size || start > saidEnd))
      throw broken(
        `row group ${i} is said to lie where the file has no bytes`,
        'the file is cut: fetch or make it anew',
      )
    const end = Math.max(start, Math.min(saidEnd + o.slack, o.size))
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
