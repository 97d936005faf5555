import { once } from 'node:events'
import { connectorFor } from '../connectors/registry.ts'
import { SluiceError } from '../core/errors.ts'
import { Progressor } from '../engine/progress.ts'
import { endpointRequest } from './endpoints.ts'
import type { CatRequest, OutputStream } from './requests.ts'
import { mapColumns, readRows } from './rows.ts'

/**
 * The bytes of a file, an object, or all that match, decompressed, to a stream; with `as`, their rows in that format.
 *
 * @throws what reading throws; what was written by then stays written
 */
export async function cat(url: string, request: CatRequest): Promise<void> {
  const { options, stdout } = request
  const signal = request.signal ?? new AbortController().signal
  const connector = await connectorFor(url)
  if (connector.openSource === undefined || connector.readDecompressed === undefined)
    throw new SluiceError('SLUICE_NOT_YET', `cat of ${connector.name} is specified and not built yet`)
  const endpoint = endpointRequest(url, {
    options,
    env: request.env,
    reporter: new Progressor(undefined),
    signal,
    stdin: request.stdin,
  })
  if (request.as === undefined) {
    for await (const chunk of connector.readDecompressed(endpoint)) await write(stdout, chunk, signal)
    return
  }
  const source = await connector.openSource(endpoint)
  try {
    const mapping = mapColumns(await source.describe({ signal }), options, url)
    const names = mapping.schema.columns.map((column) => column.name)
    const encoder = await connector.openEncoder?.(request.as, names)
    if (encoder === undefined)
      throw new SluiceError('SLUICE_NOT_YET', `rows of ${connector.name} cannot be printed yet`)
    for await (const batch of readRows(source, signal))
      await write(stdout, encoder.encode(mapping.apply(batch)), signal)
    await write(stdout, encoder.end(), signal)
  } finally {
    await source.close()
  }
}

async function write(stdout: OutputStream, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  if (bytes.byteLength > 0 && !stdout.write(bytes)) await once(stdout, 'drain', { signal })
}
