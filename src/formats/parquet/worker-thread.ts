import { Worker } from 'node:worker_threads'

/**
 * Begins a thread of this folder. It keeps no process alive by itself; beside the program's own build the file is TypeScript, as this one is then.
 */
export function startThread(name: 'encode-thread' | 'decode-thread', data: unknown): Worker {
  const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const worker = new Worker(new URL(`./${name}${ending}`, import.meta.url), { workerData: data })
  worker.unref()
  return worker
}
