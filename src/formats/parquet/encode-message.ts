import type { ColumnVector } from '../../core/batch.ts'

/** How pages are compressed. `lz4` is LZ4_RAW. */
export type ParquetCodec = 'snappy' | 'zstd' | 'gzip' | 'lz4' | 'brotli' | 'none'

/** What the encoding thread is asked: one row group. The vectors' memory moves with it. */
export interface EncodeRequest {
  readonly names: readonly string[]
  readonly vectors: readonly ColumnVector[]
  readonly rows: number
}

/** A whole Parquet file of one row group and the size of the thread's wasm memory, in bytes; or what went wrong. */
export type EncodeAnswer =
  { readonly file: Uint8Array; readonly wasmBytes: number } | { readonly error: string; readonly fatal: boolean }
