import { crc32 } from 'node:zlib'
import { SluiceError } from '../../core/errors.ts'
import { readThriftAt } from './raw-thrift.ts'
import { broken } from './read-footer.ts'

/** Fields of PageHeader in parquet.thrift. */
const PAGE = { compressed: 3, crc: 4 }

/** Pages of one column in a row group. */
export interface PageRun {
  /** Name of the column, as a path where it is nested: `a.list.element`. */
  readonly column: string
  /** Offsets in the file; `[start, end)`. */
  readonly start: number
  readonly end: number
}

/**
 * Checks the CRC-32 of each page that carries one (parquet.thrift, PageHeader: of the page as it lies in the file, behind its header). A column whose first
 * page has none is passed over: writers give one to all or to none. `body` begins at offset `at` of the file. About 1 ms for 2 MiB.
 *
 * @throws SLUICE_PARQUET with column and byte of a page that is not what was written
 */
export function checkPages(body: Uint8Array, at: number, runs: readonly PageRun[]): void {
  for (const { column, start, end } of runs) {
    for (let next = start - at; next < end - at;) {
      const page = pageAt(body, next, { column, at })
      if (page.crc === undefined) break
      const bytes = body.subarray(page.begin, page.end)
      if (page.end > end - at || crc32(bytes) !== page.crc)
        throw spoilt(column, at + next, 'a page is not what its checksum says')
      next = page.end
    }
  }
}

function pageAt(
  body: Uint8Array,
  next: number,
  o: { column: string; at: number },
): { crc: number | undefined; begin: number; end: number } {
  try {
    const { value, end } = readThriftAt(body, next)
    const crc = value.integer(PAGE.crc)
    const size = value.integer(PAGE.compressed) ?? 0
    if (size < 0) throw new RangeError('a page of negative size')
    return { crc: crc === undefined ? undefined : crc >>> 0, begin: end, end: end + size }
  } catch (error) {
    throw error instanceof RangeError
      ? spoilt(o.column, o.at + next, `a page's header makes no sense (${error.message})`)
      : error
  }
}

function spoilt(column: string, byte: number, why: string): SluiceError {
  return broken(why, 'the file was damaged after it was written: fetch or make it anew').at({ column, byte })
}
