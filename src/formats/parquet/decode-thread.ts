/* The thread that decodes one row group at a time: bytes of a Parquet file in, Arrow IPC streams of a few thousand rows out, one each time it is asked. */
import { parentPort } from 'node:worker_threads'
import { readParquet, wasmMemory } from 'parquet-wasm/esm'
import type { RecordBatch } from 'parquet-wasm/esm'
import type { DecodeAnswer, DecodeRequest } from './decode-message.ts'
import { answerRequests } from './thread-requests.ts'

/** Batches that are decoded and not yet asked for: one row group. */
let batches: RecordBatch[] = []

function answer(request: DecodeRequest): DecodeAnswer {
  if (request.kind === 'open') {
    for (const batch of batches) batch.free()
    const table = readParquet(request.file, { batchSize: request.batchRows })
    batches = table.recordBatches()
    table.free()
    return { kind: 'opened', wasmBytes: memoryBytes() }
  }
  const batch = batches.shift()
  return { kind: 'batch', stream: batch === undefined ? null : batch.intoIPCStream(), wasmBytes: memoryBytes() }
}

function memoryBytes(): number {
  const { buffer } = wasmMemory() as unknown as { buffer: ArrayBuffer }
  return buffer.byteLength
}

answerRequests((request: DecodeRequest) => {
  try {
    const reply = answer(request)
    const moved = reply.kind === 'batch' && reply.stream !== null ? [reply.stream.buffer as ArrayBuffer] : []
    parentPort?.postMessage(reply, moved)
  } catch (error) {
    batches = []
    parentPort?.postMessage({ kind: 'failed', error: String(error) } satisfies DecodeAnswer)
  }
})
