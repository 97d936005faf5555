import type { Batch, BatchForm } from '../core/batch.ts'
import type { Value } from '../core/batch.ts'
import { SluiceError } from '../core/errors.ts'
import type { CopyOptions } from '../core/options.ts'
import type { Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import type { Schema } from '../core/schema.ts'
import { compileMapping } from '../engine/mapping.ts'
import type { Mapping } from '../engine/mapping.ts'
import { columnValues } from '../formats/csv/column-values.ts'
import { rewriteRecords } from '../formats/csv/rewrite.ts'
import { plainJson } from '../formats/typed-json.ts'

/** All rows of a source, partition after partition. */
export async function* readRows(source: Source, signal: AbortSignal): AsyncGenerator<Extract<Batch, { form: 'rows' }>> {
  for (const partition of await source.plan({ signal }))
    for await (const batch of source.read(partition, { form: 'rows', signal })) if (batch.form === 'rows') yield batch
}

/** The mapping of a source's columns. @throws SLUICE_COLUMN_MISSING, which names the source; SLUICE_USAGE */
export function mapColumns(described: Schema, options: CopyOptions, url: string): Mapping {
  try {
    return compileMapping(described, options, { rewrite: rewriteRecords, values: columnValues })
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'SLUICE_COLUMN_MISSING') throw error.at({ url: redactUrl(url) })
    throw error
  }
}

/** In which form types are inferred: CSV as it is where all can have it, whose values are looked at only where they are open. */
export function inferredForm(ends: readonly { readonly forms: readonly BatchForm[] }[]): 'csv' | 'rows' {
  return ends.every(({ forms }) => forms.includes('csv')) ? 'csv' : 'rows'
}

/** A value as people read it; null for NULL and for a missing value. */
export function displayText(value: Value): string | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  return value.kind === 'typed-json' ? plainJson(value.text) : value.text
}
