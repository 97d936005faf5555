import type { Worker } from 'node:worker_threads'
import type { ColumnType, ColumnVector, ColumnsBatch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Column } from '../../core/schema.ts'
import { emptyVector } from './empty-vector.ts'
import type { EncodeAnswer, EncodeRequest, ParquetCodec } from './encode-message.ts'
import { footerOf, fileBody } from './footer.ts'
import { patchSchema } from './patch-schema.ts'
import { startThread } from './worker-thread.ts'
export type { ParquetCodec } from './encode-message.ts'

/**
 * A thread whose WebAssembly memory, which never shrinks, grew past this is replaced: 256 MiB. Row groups of 122,880 rows need a fraction of it
 * (measured: see docs); those that need more get a new thread each, which costs about 0.1 s.
 */
const THREAD_MEMORY_BYTES = 256 * 1024 * 1024

/** One row group: what lies between the magic bytes and the footer of a file of its own, and that footer (thrift). */
export interface ParquetGroup {
  readonly body: Uint8Array
  readonly footer: Uint8Array
  readonly rows: number
}

/** Encodes row groups side by side in threads. */
export interface ParquetEncoder {
  /**
   * Footer of a file without row groups: what every file of these columns begins with. Rejected with SLUICE_PARQUET where the columns cannot be written as
   * Parquet.
   */
  readonly schemaFooter: Promise<Uint8Array>
  /**
   * One batch as one row group. Takes the batch's memory away (it is transferred to a thread). Waits for a free thread; how many wait is the caller's to bound.
   *
   * @throws SLUICE_PARQUET where a row group cannot be made or its thread broke
   */
  encode(batch: ColumnsBatch): Promise<ParquetGroup>
  /** Ends all threads; what is being encoded is rejected. */
  close(): Promise<void>
}

export interface ParquetEncoderOptions {
  /** Each with its `layout`. */
  readonly columns: readonly Column[]
  readonly codec: ParquetCodec
  /** Threads at most; each holds one row group. They start when they are needed. */
  readonly workers: number
  /** Default true. */
  readonly dictionary?: boolean | undefined
}

/**
 * The first thread begins at once, and is not waited for.
 *
 * @throws SLUICE_PARQUET where the columns are none of a Parquet file
 */
export function openParquetEncoder(o: ParquetEncoderOptions): ParquetEncoder {
  const types = layoutsOf(o.columns)
  const pool = new ThreadPool(o)
  const names = o.columns.map((column) => column.name)
  const vectors = types.map((type) => emptyVector(type))
  const schemaFooter = pool.run({ names, vectors, rows: 0 }).then(({ file }) => patchSchema(footerOf(file), types))
  // Whoever begins a file hears of it.
  schemaFooter.catch(() => undefined)
  return new Encoder(pool, { names, types, schemaFooter })
}

class Encoder implements ParquetEncoder {
  readonly schemaFooter: Promise<Uint8Array>
  readonly #pool: ThreadPool
  readonly #names: readonly string[]
  readonly #types: readonly string[]

  constructor(
    pool: ThreadPool,
    o: { names: readonly string[]; types: readonly ColumnType[]; schemaFooter: Promise<Uint8Array> },
  ) {
    this.#pool = pool
    this.#names = o.names
    this.#types = o.types.map((type) => JSON.stringify(type))
    this.schemaFooter = o.schemaFooter
  }

  async encode(batch: ColumnsBatch): Promise<ParquetGroup> {
    this.#check(batch)
    const { vectors, rows } = batch
    const { file } = await this.#pool.run({ names: this.#names, vectors, rows })
    return { body: fileBody(file), footer: footerOf(file), rows }
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  /** A vector that is not what the file's schema says would make a file that nobody can read. */
  #check({ vectors, rows }: ColumnsBatch): void {
    const wrong = vectors.findIndex((vector, i) => {
      return vector.length !== rows || JSON.stringify(vector.type) !== this.#types[i]
    })
    if (vectors.length !== this.#types.length || wrong >= 0)
      throw new SluiceError('SLUICE_INTERNAL', 'columns that are not those of the Parquet file', {
        where: { column: this.#names[wrong] },
      })
  }
}

interface Waiting {
  readonly resolve: (worker: Worker) => void
  readonly reject: (error: SluiceError) => void
}

/** Threads, each with one request at a time. */
class ThreadPool {
  readonly #options: ParquetEncoderOptions
  readonly #idle: Worker[] = []
  readonly #all = new Set<Worker>()
  /** Callers that wait for a thread: the caller's batches, so as many as the caller holds. */
  readonly #waiting: Waiting[] = []
  #closed = false

  constructor(options: ParquetEncoderOptions) {
    this.#options = options
  }

  async run(request: EncodeRequest): Promise<Extract<EncodeAnswer, { file: Uint8Array }>> {
    const worker = await this.#take()
    let keep = false
    try {
      const answer = await ask(worker, request)
      keep = 'file' in answer ? answer.wasmBytes <= THREAD_MEMORY_BYTES : !answer.fatal
      if ('error' in answer) throw failed(answer.error)
      return answer
    } finally {
      await this.#give(worker, keep)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const { reject } of this.#waiting.splice(0)) reject(failed('the encoder was closed'))
    await Promise.all([...this.#all].map((worker) => worker.terminate()))
    this.#all.clear()
    this.#idle.length = 0
  }

  async #take(): Promise<Worker> {
    if (this.#closed) throw failed('the encoder was closed')
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    if (this.#all.size < Math.max(1, this.#options.workers)) return this.#start()
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  #start(): Worker {
    const worker = startThread('encode-thread', {
      codec: this.#options.codec,
      dictionary: this.#options.dictionary !== false,
    })
    this.#all.add(worker)
    // Told to who waits for its answer, by 'exit'; without a listener it would end the process.
    worker.on('error', () => undefined)
    return worker
  }

  async #give(worker: Worker, keep: boolean): Promise<void> {
    if (this.#closed) return
    let free = worker
    if (!keep) {
      this.#all.delete(worker)
      await worker.terminate()
      if (this.#closed || this.#waiting.length === 0) return
      free = this.#start()
    }
    const next = this.#waiting.shift()
    if (next === undefined) this.#idle.push(free)
    else next.resolve(free)
  }
}

/** One request and its answer. The thread keeps the process alive only meanwhile. */
function ask(worker: Worker, request: EncodeRequest): Promise<EncodeAnswer> {
  return new Promise((resolve, reject) => {
    let fault = ''
    const onError = (error: unknown): void => {
      fault = error instanceof Error ? error.message : String(error)
    }
    const onExit = (code: number): void => settle(() => reject(failed(fault || `its thread ended (${code})`)))
    const onMessage = (answer: EncodeAnswer): void => settle(() => resolve(answer))
    const settle = (how: () => void): void => {
      worker.off('error', onError).off('exit', onExit).off('message', onMessage)
      worker.unref()
      how()
    }
    worker.on('error', onError).on('exit', onExit).on('message', onMessage)
    worker.ref()
    worker.postMessage(request, [...new Set(request.vectors.flatMap(buffersOf))])
  })
}

function buffersOf({ validity, offsets, values, items }: ColumnVector): ArrayBuffer[] {
  // An empty buffer may be one that several share: it stays.
  const own = [validity?.buffer, offsets?.buffer, values.buffer].filter(
    (buffer) => buffer instanceof ArrayBuffer && buffer.byteLength > 0,
  ) as ArrayBuffer[]
  return items === null ? own : [...own, ...buffersOf(items)]
}

function failed(why: string): SluiceError {
  return new SluiceError('SLUICE_PARQUET', `a row group cannot be made: ${why}`, {
    hint: 'smaller row groups need less memory: --row-group-rows, --row-group-bytes',
  })
}

function layoutsOf(columns: readonly Column[]): readonly ColumnType[] {
  if (columns.length === 0)
    throw new SluiceError('SLUICE_USAGE', 'a Parquet file needs a column, and the source has none', {
      hint: 'JSON Lines can have rows without columns',
    })
  const seen = new Set<string>()
  return columns.map(({ name, layout }) => {
    if (layout === undefined)
      throw new SluiceError('SLUICE_INTERNAL', 'a column without a layout', { where: { column: name } })
    if (seen.has(name))
      throw new SluiceError('SLUICE_PARQUET', `two columns of the name ${name}`, {
        where: { column: name },
        hint: 'give one of them another name',
      })
    seen.add(name)
    checkDecimal(layout, name)
    return layout
  })
}

function checkDecimal(type: ColumnType, column: string): void {
  if (type.kind === 'list') return checkDecimal(type.item, column)
  if (type.kind !== 'decimal') return
  const { precision, scale } = type
  if (!(precision >= 1 && precision <= 38 && scale >= 0 && scale <= precision))
    throw new SluiceError('SLUICE_PARQUET', `decimal(${precision},${scale}) is none that Parquet has`, {
      where: { column },
      hint: 'precision 1 to 38, scale 0 to precision: --numeric decimal(p,s)',
    })
}
