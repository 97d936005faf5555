import { Worker } from 'node:worker_threads'
import { siblingModule } from '../../core/sibling-module.ts'

/** Begins a thread of this folder. It keeps no process alive by itself. */
export function startThread(name: 'encode-thread' | 'decode-thread', data: unknown): Worker {
  const worker = new Worker(siblingModule(name, import.meta.url), { workerData: data })
  worker.unref()
  return worker
}
