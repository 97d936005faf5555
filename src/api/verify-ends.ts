import type { ComparedBatch, Connector, EndpointRequest } from '../connectors/connector.ts'
import { SluiceError } from '../core/errors.ts'
import type { Source } from '../core/ports.ts'
import { applyMapping } from '../engine/mapping.ts'
import type { Mapping } from '../engine/mapping.ts'

/** One side of a comparison. */
export interface End {
  readonly url: string
  readonly request: EndpointRequest
  readonly connector: Connector
}

/** @throws SLUICE_NOT_YET */
export async function openSource(end: End): Promise<Source> {
  const source = await end.connector.openSource?.(end.request)
  if (source === undefined)
    throw new SluiceError('SLUICE_NOT_YET', `${end.connector.name} as a source is specified and not built yet`)
  return source
}

/** All rows of a source as the mapping has them, in its order. */
export async function* mapped(
  source: Source,
  mapping: Mapping,
  o: { form: 'csv' | 'rows'; signal: AbortSignal },
): AsyncGenerator<ComparedBatch> {
  for (const partition of await source.plan(o)) {
    const { url } = partition
    for await (const batch of source.read(partition, o)) yield { url, batch: applyMapping(mapping, batch, url) }
  }
}
