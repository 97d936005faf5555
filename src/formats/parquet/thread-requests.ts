import { parentPort } from 'node:worker_threads'
import { initSync } from 'parquet-wasm/esm'
import type { SyncInitInput } from 'parquet-wasm/esm'
import type { ThreadStart } from './worker-thread.ts'

/** Hands requests to `answer`, in a thread, as soon as parquet-wasm's code is there. Until then they wait: one at a time is sent. */
export function answerRequests<Request extends object>(answer: (request: Request) => void): void {
  let waiting: Request[] | null = []
  parentPort?.on('message', (message: Request | ThreadStart) => {
    if ('module' in message) {
      initSync({ module: message.module as SyncInitInput })
      const first = waiting ?? []
      waiting = null
      for (const request of first) answer(request)
    } else if (waiting === null) answer(message)
    else waiting.push(message)
  })
}
