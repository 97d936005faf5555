import { byteSize, rowCount } from '../core/batch.ts'
import type { Batch, BatchForm } from '../core/batch.ts'
import type { Partition } from '../core/job.ts'
import { giveBack } from '../core/lent-buffers.ts'
import type { Abortable, Source } from '../core/ports.ts'
import type { Column, Schema } from '../core/schema.ts'
import { TypeInferrer } from './infer-types.ts'
import { placed } from './mapping.ts'
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
  /** In which form rows are looked at; where the source can be read only once, it gives no other later. */
  readonly form: 'csv' | 'rows'
}

/**
 * Whether types must be inferred before the sink is prepared: where a table is created, or the sink wants them, and the source does not know all.
 * `whole`: whether no column can come that the schema does not have.
 */
export function mustInfer(schema: Schema, o: { create: boolean; wantsTypes: boolean; whole: boolean }): boolean {
  const open = schema.columns.some(({ type, nativeType }) => (type ?? nativeType) === undefined)
  if (schema.fixed === true && schema.columns.every((column) => column.type !== undefined)) return false
  return o.create ? open || !o.whole : o.wantsTypes && open
}

/**
 * Decides the types of the mapped columns that have none yet: over the whole input where it can be read twice, else over its first 100,000
 * rows, which the returned source gives again before it goes on.
 */
export async function inferSource(source: Source, request: InferRequest): Promise<{ source: Source; schema: Schema }> {
  const { mapping, typed, partitions, form, signal } = request
  const typedNames = mapping.schema.columns.filter(({ type, nativeType }) => (type ?? nativeType) !== undefined)
  const looked: Looked = { typed, known: new Set(typedNames.map(({ name }) => name)), byName: new Map() }
  if (source.replayable) {
    for (const partition of partitions)
      for await (const batch of source.read(partition, { form, readAgain: true, signal })) {
        look(mapping, looked, { batch, url: partition.url })
        if (batch.form === 'csv') giveBack(batch.bytes)
      }
    return { source, schema: withTypes(mapping.schema, looked) }
  }
  const [first] = partitions
  if (first === undefined) return { source, schema: mapping.schema }
  const kept: Batch[] = []
  let [rows, bytes] = [0, 0]
  const iterator = source.read(first, { form, signal })[Symbol.asyncIterator]()
  while (rows < ROWS_KEPT && bytes < BYTES_KEPT) {
    const next = await iterator.next()
    if (next.done === true) break
    look(mapping, looked, { batch: next.value, url: first.url })
    kept.push(next.value)
    rows += rowCount(next.value)
    bytes += byteSize(next.value)
  }
  return { source: withKept(source, { kept, form }, iterator), schema: withTypes(mapping.schema, looked) }
}

/** One inferrer a column, since JSON's keys, and files under a prefix, may bring columns in another order, or new ones. */
interface Looked {
  readonly typed: boolean
  /** Columns whose types are known. */
  readonly known: ReadonlySet<string>
  readonly byName: Map<string, TypeInferrer>
}

/** Looks at columns that are open still: those that are text by now stay it. */
function look(mapping: Mapping, { typed, known, byName }: Looked, o: { batch: Batch; url: string }): void {
  const isOpen = (name: string): boolean => !known.has(name) && byName.get(name)?.isSettled !== true
  for (const { name, values } of placed(o.url, () => mapping.values(o.batch, isOpen))) {
    const inferrer = byName.get(name) ?? new TypeInferrer([name], { typed })
    byName.set(name, inferrer)
    inferrer.addValues(values)
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
  const names = new Set(schema.columns.map(({ name }) => name))
  const later = [...looked.byName.keys()].filter((name) => !names.has(name)).map((name) => ({ name }))
  return { ...schema, columns: [...schema.columns, ...later].map(inferred) }
}

/** A source whose only partition begins with batches that were read before. */
function withKept(
  source: Source,
  { kept, form }: { readonly kept: Batch[]; readonly form: BatchForm },
  rest: AsyncIterator<Batch>,
): Source {
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
    forms: [form],
    replayable: false,
    describe: (o) => source.describe(o),
    plan: (o) => source.plan(o),
    read,
    bytesRead: () => source.bytesRead(),
    close: () => source.close(),
  }
}
