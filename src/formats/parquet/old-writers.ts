import { readThriftAt, TYPE, writeThrift } from './raw-thrift.ts'

/** Fields of parquet.thrift: PageHeader, DataPageHeader and DataPageHeaderV2. */
const PAGE = { compressed: 3, data: 5, dataV2: 8 }
const DATA = { values: 1 }
const DATA_V2 = { isCompressed: 7 }

/** What old versions of writers said wrongly of their pages. */
export interface WriterFaults {
  /** A column's length is too short by the header of its dictionary (parquet-mr before 1.2.9, PARQUET-816). */
  readonly shortChunks: boolean
  /** Pages of version 2 are said not to be compressed, and are (parquet-cpp 1, ARROW-10353). */
  readonly unsaidCompression: boolean
}

/** How much longer than said a column may be, in bytes: headers of dictionaries have some twenty. */
export const MOST_MISSING_BYTES = 100

/** By what a footer says of who made the file. */
export function writerFaults(createdBy: string | null): WriterFaults {
  const [, writer, major = '0', minor = '0', patch = '0'] =
    /^(parquet-mr|parquet-cpp)(?:$| version (\d+)\.(\d+)(?:\.(\d+))?)/.exec(createdBy ?? '') ?? []
  const version = Number(major) * 1e6 + Number(minor) * 1e3 + Number(patch)
  return {
    shortChunks: writer === 'parquet-mr' && version < 1_002_009,
    unsaidCompression: writer === 'parquet-cpp' && version < 2_000_000,
  }
}

/**
 * Where the pages of a column end that begins at an offset of the row group's bytes and has so many values. `compress`: pages of version 2 are marked as
 * compressed on the way.
 *
 * @throws RangeError where a header makes no sense
 */
export function pagesEnd(body: Uint8Array, o: { start: number; values: number; compress: boolean }): number {
  let at = o.start
  for (let values = 0; values < o.values;) {
    const { value: header, end } = readThriftAt(body, at)
    const dataV2 = header.struct(PAGE.dataV2)
    if (o.compress && dataV2?.get(DATA_V2.isCompressed) === false) {
      const marked = writeThrift(
        header.set(PAGE.dataV2, TYPE.struct, dataV2.set(DATA_V2.isCompressed, TYPE.true, true)),
      )
      if (marked.byteLength === end - at) body.set(marked, at)
    }
    const size = header.integer(PAGE.compressed) ?? -1
    if (size < 0 || end + size > body.byteLength) throw new RangeError('a page that ends behind its row group')
    values += (header.struct(PAGE.data) ?? dataV2)?.integer(DATA.values) ?? 0
    at = end + size
  }
  return at
}
