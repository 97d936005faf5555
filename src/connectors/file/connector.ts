import { SluiceError } from '../../core/errors.ts'
import type { CompressionName, FormatName, ObjectInfo, Sink } from '../../core/ports.ts'
import type { Connector, EndpointRequest, FileKind, SinkRequest } from '../connector.ts'
import { createBytesSink } from './bytes-sink.ts'
import { endpointName, openStore, openWritableStore, parseEndpoint } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { compressionByName, formatOfName, openEncoder } from './file-format.ts'
import { listMatches, matchObjects } from './match.ts'
import { convertedName, isPrefix, makeFolder, outputKey, outputUrl } from './output-name.ts'
import { createStoreTarget, createStreamTarget } from './output-target.ts'
import { createRowsSink } from './rows-sink.ts'
import { createFileSource, readDecompressed } from './source.ts'

/** Files and objects: store × compression × format. */
export const fileConnector: Connector = {
  name: 'file',
  fileKind,
  openSource: createFileSource,
  openSink,
  readDecompressed,
  openEncoder: (format, columns) => openEncoder(format, columns, '-'),
  list,
}

function fileKind(request: EndpointRequest): FileKind {
  const name = endpointName(parseEndpoint(request.url))
  return { format: formatOfName(name) ?? 'raw', compression: compressionByName(name) }
}

async function openSink(request: SinkRequest): Promise<Sink> {
  const endpoint = parseEndpoint(request.url)
  const { format, compression } = sinkKind(request, endpoint)
  if (endpoint.scheme === 'stdio') {
    if (request.stdout === undefined) throw new SluiceError('SLUICE_USAGE', 'standard output was not handed in')
    return createRowsSink(request, { target: createStreamTarget(request.stdout), format, compression })
  }
  const store = await openWritableStore(endpoint, request)
  if (request.raw) return createBytesSink(request, { store, endpoint })
  const key = isPrefix(endpoint)
    ? outputKey(endpoint, convertedName(request.sourceUrl, ending(format, compression)))
    : endpoint.key
  await makeFolder(endpoint, key)
  const target = createStoreTarget(request, { store, key, url: outputUrl(endpoint, key) })
  return createRowsSink(request, { target, format, compression })
}

/** The output's format and compression: by flag, by name, else the source's. */
function sinkKind(request: SinkRequest, endpoint: Endpoint): { format: FormatName; compression: CompressionName } {
  const name = isPrefix(endpoint) ? '' : endpointName(endpoint)
  const sourceFormat = request.options.sourceFormat ?? sourceFormatByName(request.sourceUrl) ?? 'raw'
  return {
    format: request.options.sinkFormat ?? formatOfName(name) ?? sourceFormat,
    compression: request.options.sinkCompression ?? compressionByName(name),
  }
}

function sourceFormatByName(url: string): FormatName | null {
  return /^postgres(ql)?:/i.test(url) ? null : formatOfName(endpointName(parseEndpoint(url)))
}

function ending(format: FormatName, compression: CompressionName): string {
  return format + (compression === 'gzip' ? '.gz' : compression === 'zstd' ? '.zst' : '')
}

async function* list(request: EndpointRequest): AsyncGenerator<ObjectInfo> {
  const endpoint = parseEndpoint(request.url)
  const store = await openStore(endpoint, request)
  const o = { signal: request.signal, glob: request.options.glob !== false }
  try {
    if (endpoint.key.endsWith('/')) for await (const match of listMatches(store, endpoint, o)) yield match.info
    else for (const match of await matchObjects(store, endpoint, o)) yield match.info
  } finally {
    await store.close()
  }
}
