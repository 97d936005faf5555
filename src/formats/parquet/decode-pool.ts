import type { Worker } from 'node:worker_threads'
import type { DecodeAnswer, DecodeRequest } from './decode-message.ts'
import { broken } from './read-footer.ts'
import { startThread } from './worker-thread.ts'

/** Threads that wait for the next row group, at most, and how long: starting one takes 0.1 s to 0.3 s, so that many small row groups share them. */
const IDLE_THREADS = 4
const IDLE_MS = 5000
/** A thread whose WebAssembly memory, which never shrinks, grew past this is not used again: 256 MiB. */
const THREAD_MEMORY_BYTES = 256 * 1024 * 1024

const idle: Worker[] = []

/** A thread that decodes one row group at a time. */
export interface Decoder {
  ask(request: DecodeRequest): Promise<DecodeAnswer>
  /** Gives the thread back; one that broke, or is in mid-group (`whole` false), ends. */
  release(whole: boolean): Promise<void>
}

export function takeDecoder(): Decoder {
  const worker = idle.pop() ?? startThread('decode-thread', null)
  worker.removeAllListeners()
  // Told to who waits for its answer, by 'exit'; without a listener it would end the process.
  worker.on('error', () => undefined)
  let wasmBytes = 0
  return {
    ask: async (request) => {
      const answer = await ask(worker, request)
      if (answer.kind === 'failed') throw broken(plainReason(answer.error))
      wasmBytes = answer.wasmBytes
      return answer
    },
    release: async (whole) => {
      if (whole && idle.length < IDLE_THREADS && wasmBytes <= THREAD_MEMORY_BYTES) keepIdle(worker)
      else await worker.terminate()
    },
  }
}

/** The decoder's words without the names that its libraries put before them: `Error: Parquet argument error: External: …`. */
function plainReason(text: string): string {
  const named =
    /^(?:(?:Error|RuntimeError|RangeError|External|EOF|ParquetError|Parquet (?:argument )?error|Arrow(?: error)?|[A-Z][a-z]+ error): )+/
  return text.replace(named, '').trim()
}

function keepIdle(worker: Worker): void {
  const drop = (): void => {
    const at = idle.indexOf(worker)
    if (at >= 0) idle.splice(at, 1)
  }
  idle.push(worker)
  worker.once('exit', drop)
  const timer = setTimeout(() => {
    // Taken meanwhile, and perhaps given back: then another timer watches it.
    if (worker.listeners('exit').includes(drop)) {
      drop()
      void worker.terminate()
    }
  }, IDLE_MS)
  timer.unref()
}

/** One question to the thread and its answer; it keeps the process alive meanwhile. */
function ask(worker: Worker, request: DecodeRequest): Promise<DecodeAnswer> {
  return new Promise((resolve, reject) => {
    let fault = ''
    const onError = (error: unknown): void => {
      fault = error instanceof Error ? error.message : String(error)
    }
    const settle = (how: () => void): void => {
      worker.off('error', onError).off('exit', onExit).off('message', onMessage)
      worker.unref()
      how()
    }
    const onExit = (code: number): void =>
      settle(() => reject(broken(plainReason(fault) || `the decoder ended (${code})`)))
    const onMessage = (answer: DecodeAnswer): void => settle(() => resolve(answer))
    worker.on('error', onError).on('exit', onExit).on('message', onMessage)
    worker.ref()
    worker.postMessage(request, request.kind === 'open' ? [request.file.buffer as ArrayBuffer] : [])
  })
}
