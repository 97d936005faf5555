import type { Batch } from '../core/batch.ts'
import type { Partition } from '../core/job.ts'
import type { Abortable, Source } from '../core/ports.ts'
import type { Column, Schema } from '../core/schema.ts'
import { TypeInferrer } from './infer-types.ts'
import type { Mapping } from './mapping.ts'

/** Rows that are looked at where the source can be read only once; they are kept for the copy, in at most so many bytes. */
const ROWS_KEPT = 100_000
const BYTES_KEPT = 64 * 1024 * 1024

interface InferRequest extends Abortable {
  /** What becomes of the rows before they reach the sink: its values are what types are inferred of. */
  readonly mapping: Mapping
  /** Whether values carry types of their own (JSON). */
  readonly typed: boolean
  readonly partitions: readonly Partition[]
}

/** Whether types must be inferred before the sink is prepared: where a table is created, or the sink wants them, and the source does not know all. */
export function mustInfer(schema: Schema, o: { create: boolean; wantsTypes: boolean }): boolean {
  if (schema.fixed === true && schema.columns.every((column) => column.type !== undefined)) return false
  return o.create || (o.wantsTypes && schema.columns.some(({ type, nativeType }) => (type ?? nativeType) === undefined))
}

/**
 * Decides the types of the mapped columns that have none yet: over the whole input where it can be read twice, else over its first 100,000
 * rows, which the returned source gives again before it goes on.
 */
export async function inferSource(source: Source, request: InferRequest): Promise<{ source: Source; schema: Schema }> {
  const { mapping, typed, partitions, signal } = request
  const looked: Looked = { names: mapping.schema.columns.map((column) => column.name), typed, byName: new Map() }
  if (source.replayable) {
    for (const partition of partitions)
      for await (const batch of source.read(partition, { form: 'rows', readAgain: true, signal }))
        look(mapping.apply(batch), looked)
    return { source, schema: withTypes(mapping.schema, looked) }
  }
  const [first] = partitions
  if (first === undefined) return { source, schema: mapping.schema }
  const kept: Batch[] = []
  let [rows, bytes] = [0, 0]
  const iterator = source.read(first, { form: 'rows', signal })[Symbol.asyncIterator]()
  while (rows < ROWS_KEPT && bytes < BYTES_KEPT) {
    const next = await iterator.next()
    if (next.done === true) break
    look(mapping.apply(next.value), looked)
    kept.push(next.value)
    rows += next.value.form === 'rows' ? next.value.rows.length : 0
    bytes += next.value.form === 'rows' ? next.value.sourceBytes : 0
  }
  return { source: withKept(source, kept, iterator), schema: withTypes(mapping.schema, looked) }
}

/** One inferrer a column, since JSON's keys, and files under a prefix, may bring columns in another order, or new ones. */
interface Looked {
  readonly names: readonly string[]
  readonly typed: boolean
  readonly byName: Map<string, TypeInferrer>
}

function look(batch: Batch, looked: Looked): void {
  if (batch.form !== 'rows') return
  for (const [i, name] of batch.columns.entries()) {
    const inferrer = looked.byName.get(name) ?? new TypeInferrer([name], { typed: looked.typed })
    looked.byName.set(name, inferrer)
    inferrer.addColumn(batch.rows, i)
  }
}

function withTypes(schema: Schema, looked: Looked): Schema {
  const inferred = (column: Column): Column => {
    if (column.type !== undefined || column.nativeType !== undefined) return column
    const [found] = looked.byName.get(column.name)?.result() ?? []
    if (found === undefined) return { ...column, type: 'string' }
    // A column without NULLs so far is not one that takes none.
    return { ...column, ...found, name: column.name, nullable: true }
  }
  const later = [...looked.byName.keys()].filter((name) => !looked.names.includes(name)).map((name) => ({ name }))
  return { ...schema, columns: [...schema.columns, ...later].map(inferred) }
}

/** A source whose only partition begins with batches that were read before. */
function withKept(source: Source, kept: Batch[], rest: AsyncIterator<Batch>): Source {
  async function* read(): AsyncGenerator<Batch> {
    try {
      for (let batch = kept.shift(); batch !== undefined; batch = kept.shift()) yield batch
      for (;;) {
        const next = await rest.next()
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await rest.return?.()
    }
  }
  return {
    forms: ['rows'],
    replayable: false,
    describe: (o) => source.describe(o),
    plan: (o) => source.plan(o),
    read,
    bytesRead: () => source.bytesRead(),
    close: () => source.close(),
  }
}
