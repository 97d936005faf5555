import type { Batch } from '../core/batch.ts'
import type { Value } from '../core/batch.ts'
import type { Source } from '../core/ports.ts'

/** All rows of a source, partition after partition. */
export async function* readRows(source: Source, signal: AbortSignal): AsyncGenerator<Extract<Batch, { form: 'rows' }>> {
  for (const partition of await source.plan({ signal }))
    for await (const batch of source.read(partition, { form: 'rows', signal })) if (batch.form === 'rows') yield batch
}

/** A value as people read it; null for NULL and for a missing value. */
export function displayText(value: Value): string | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value.text
}
