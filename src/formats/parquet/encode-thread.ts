/* The thread that turns columns into the bytes of one row group. It shares nothing with the program: what goes wrong in it, or ends it, is told. */
import { parentPort, workerData } from 'node:worker_threads'
import {
  Compression,
  EnabledStatistics,
  Table,
  WriterPropertiesBuilder,
  wasmMemory,
  writeParquet,
} from 'parquet-wasm/esm'
import type { WriterProperties } from 'parquet-wasm/esm'
import { toArrowStream } from './arrow-ipc.ts'
import { dictionaryPays } from './dictionary-choice.ts'
import type { EncodeAnswer, EncodeRequest, ParquetCodec } from './encode-message.ts'
import { answerRequests } from './thread-requests.ts'

const CODECS: Readonly<Record<ParquetCodec, Compression>> = {
  snappy: Compression.SNAPPY,
  zstd: Compression.ZSTD,
  gzip: Compression.GZIP,
  // LZ4 without a suffix is Hadoop's own framing, which the format has given up (Compression.md, "LZ4_RAW").
  lz4: Compression.LZ4_RAW,
  brotli: Compression.BROTLI,
  none: Compression.UNCOMPRESSED,
}
/** More rows than any batch has: a batch is one row group. */
const ALL_ROWS = 2 ** 31 - 1

const { codec, dictionary } = workerData as { codec: ParquetCodec; dictionary: boolean }

function properties({ names, vectors }: EncodeRequest): WriterProperties {
  let builder = new WriterPropertiesBuilder()
    .setCompression(CODECS[codec])
    .setDictionaryEnabled(dictionary)
    .setMaxRowGroupSize(ALL_ROWS)
    // Those of pages go to the page indexes, which are not kept when row groups are joined: making them costs a tenth of the time.
    .setStatisticsEnabled(EnabledStatistics.Chunk)
  if (!dictionary) return builder.build()
  for (const [i, vector] of vectors.entries())
    if (!dictionaryPays(vector)) builder = builder.setColumnDictionaryEnabled(names[i] ?? '', false)
  return builder.build()
}

function encode(request: EncodeRequest): EncodeAnswer {
  const { names, vectors, rows } = request
  const own = properties(request)
  const file = writeParquet(Table.fromIPCStream(toArrowStream(names, vectors, rows)), own)
  return { file, wasmBytes: memoryBytes() }
}

function memoryBytes(): number {
  const { buffer } = wasmMemory() as unknown as { buffer: ArrayBuffer }
  return buffer.byteLength
}

answerRequests((request: EncodeRequest) => {
  try {
    const answer = encode(request)
    parentPort?.postMessage(answer, 'file' in answer ? [answer.file.buffer as ArrayBuffer] : [])
  } catch (error) {
    // After a trap the instance may be in any state: the thread is not used again.
    const fatal = error instanceof Error && error.name === 'RuntimeError'
    parentPort?.postMessage({ error: String(error), fatal } satisfies EncodeAnswer)
  }
})
