import { once } from 'node:events'
import { connectorFor } from '../connectors/registry.ts'
import { SluiceError } from '../core/errors.ts'
import type { Source } from '../core/ports.ts'
import type { Mapping } from '../engine/mapping.ts'
import { Progressor } from '../engine/progress.ts'
import { requireText, within } from './border.ts'
import { onlyName, refuseUnheeded } from './unheeded.ts'
import { endpointRequest, surroundingsOf } from './endpoints.ts'
import type { CatRequest, OutputStream } from './requests.ts'
import { mapColumns, readRows } from './rows.ts'

/**
 * The bytes of a file, an object, or all that match, decompressed, to a stream; with `as`, their rows in that format.
 *
 * @throws what reading throws; what was written by then stays written
 */
export async function cat(url: string, request: CatRequest): Promise<void> {
  requireText('url', url)
  return within(request, (inside) => catWithin(url, inside))
}

async function catWithin(url: string, request: CatRequest): Promise<void> {
  const { options, stdout } = request
  const around = surroundingsOf(request, new Progressor(undefined))
  const connector = await connectorFor(url)
  refuseUnheeded(options, { source: onlyName(connector.name), defaults: request.defaults })
  const endpoint = endpointRequest(url, around)
  if (connector.openSource === undefined)
    throw new SluiceError('SLUICE_NOT_YET', `cat of ${connector.name} is specified and not built yet`)
  if (request.as === undefined && connector.readDecompressed !== undefined) {
    for await (const chunk of connector.readDecompressed(endpoint)) await write(stdout, chunk, around.signal)
    return
  }
  const source = await connector.openSource(endpoint)
  try {
    // What is no file has no bytes to show: its rows are shown as CSV.
    const { as: format = 'csv' } = request
    const { signal } = around
    const mapping = mapColumns(await source.describe({ signal, everyColumn: format === 'csv' }), options, url)
    await writeRows(source, mapping, { format, stdout, signal })
  } finally {
    await source.close()
  }
}

async function writeRows(
  source: Source,
  mapping: Mapping,
  o: { format: 'csv' | 'jsonl'; stdout: OutputStream; signal: AbortSignal },
): Promise<void> {
  const { format, stdout, signal } = o
  const files = await connectorFor('-')
  const encoder = await files.openEncoder?.(
    format,
    mapping.schema.columns.map((column) => column.name),
  )
  if (encoder === undefined) throw new SluiceError('SLUICE_NOT_YET', `rows cannot be printed as ${format} yet`)
  for await (const batch of readRows(source, signal)) await write(stdout, encoder.encode(mapping.apply(batch)), signal)
  await write(stdout, encoder.end(), signal)
}

async function write(stdout: OutputStream, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  if (bytes.byteLength > 0 && !stdout.write(bytes)) await once(stdout, 'drain', { signal })
}
