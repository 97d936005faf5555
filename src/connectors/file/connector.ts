import type { Batch } from '../../core/batch.ts'
import type { FormatEncoder, FormatName, ObjectInfo } from '../../core/ports.ts'
import type { Connector, EndpointRequest, FileKind } from '../connector.ts'
import { endpointName, openStore, parseEndpoint } from './endpoint.ts'
import { compressionByName, formatOfName, openEncoder } from './file-format.ts'
import { listMatches, matchObjects } from './match.ts'
import { createFileSource, readDecompressed } from './source.ts'

/** Files and objects: store × compression × format. */
export const fileConnector: Connector = {
  name: 'file',
  fileKind,
  isStream,
  openSource: createFileSource,
  openSink: async (request) => (await import('./sink.ts')).openSink(request),
  readDecompressed,
  openEncoder: openRowsEncoder,
  list,
}

/** Rows of several files under one header, whichever columns each has and in whatever order. */
async function openRowsEncoder(format: FormatName, columns: readonly string[]): Promise<FormatEncoder> {
  const encoder = await openEncoder(format, columns, { url: '-' })
  const [{ hasFixedColumns }, { alignColumns }] = await Promise.all([
    import('./output-encoding.ts'),
    import('./output-pieces.ts'),
  ])
  if (!hasFixedColumns(format)) return encoder
  const align = (batch: Batch): Batch => (batch.form === 'rows' ? alignColumns(batch, columns) : batch)
  return { ...encoder, encode: (batch) => encoder.encode(align(batch)) }
}

function fileKind(request: EndpointRequest): FileKind {
  const name = endpointName(parseEndpoint(request.url))
  return { format: formatOfName(name) ?? 'raw', compression: compressionByName(name) }
}

async function isStream(url: string): Promise<boolean> {
  const { scheme, key } = parseEndpoint(url)
  if (scheme !== 'file') return scheme === 'stdio'
  const { isSpecialFile } = await import('../../stores/local-store.ts')
  return isSpecialFile(key)
}

async function* list(request: EndpointRequest): AsyncGenerator<ObjectInfo> {
  const endpoint = parseEndpoint(request.url)
  const store = await openStore(endpoint, request)
  const o = { signal: request.signal, glob: request.options.glob !== false }
  try {
    if (endpoint.key.endsWith('/')) {
      let found = 0
      for await (const { info } of listMatches(store, endpoint, o)) {
        found += 1
        yield info
      }
      if (found === 0 && endpoint.scheme === 'file') await requireLocalFolder(endpoint.key)
    } else for (const match of await matchObjects(store, endpoint, o)) yield match.info
  } finally {
    await store.close()
  }
}

/** An empty folder is fine; one that is not there is none. S3 has no folders, only keys that begin alike. */
async function requireLocalFolder(key: string): Promise<void> {
  const { requireFolder } = await import('../../stores/local-store.ts')
  await requireFolder(key)
}
