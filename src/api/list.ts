import { connectorFor } from '../connectors/registry.ts'
import { SluiceError } from '../core/errors.ts'
import type { ObjectInfo } from '../core/ports.ts'
import { Progressor } from '../engine/progress.ts'
import { enter, requireText } from './border.ts'
import { endpointRequest } from './endpoints.ts'
import type { ReadRequest } from './requests.ts'

/** Objects and files under a prefix, or that match a glob, in key order, page by page. @throws SLUICE_NOT_FOUND, SLUICE_NOTHING_MATCHES */
export async function* list(url: string, request: ReadRequest): AsyncGenerator<ObjectInfo> {
  requireText('url', url)
  const entered = enter(request)
  try {
    yield* listWithin(url, entered.request)
  } catch (error) {
    throw entered.told(error)
  } finally {
    entered.leave()
  }
}

async function* listWithin(
  url: string,
  request: ReadRequest & { readonly signal: AbortSignal },
): AsyncGenerator<ObjectInfo> {
  const { signal } = request
  const connector = await connectorFor(url)
  if (connector.list === undefined) throw new SluiceError('SLUICE_USAGE', `${connector.name} has nothing to list`)
  yield* connector.list(
    endpointRequest(url, {
      options: request.options,
      env: request.env,
      reporter: new Progressor(undefined),
      signal,
      stdin: request.stdin,
    }),
  )
}
