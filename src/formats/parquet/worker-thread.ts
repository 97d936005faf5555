import { Worker } from 'node:worker_threads'
import { siblingModule } from '../../core/sibling-module.ts'
import { parquetModule } from './wasm-module.ts'

/** A message to each thread, once: parquet-wasm's compiled code. Requests may come before. */
export interface ThreadStart {
  readonly module: object
}

/** Begins a thread of this folder. It keeps no process alive by itself. */
export function startThread(name: 'encode-thread' | 'decode-thread', data: unknown): Worker {
  const worker = new Worker(siblingModule(name, import.meta.url), { workerData: data })
  worker.unref()
  // Compiled while the thread begins; who waits for an answer hears of the thread's end.
  parquetModule().then(
    (module) => worker.postMessage({ module } satisfies ThreadStart),
    () => worker.terminate(),
  )
  return worker
}
