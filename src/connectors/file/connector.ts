import type { Batch } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { CompressionName, FormatEncoder, FormatName, ObjectInfo, Sink } from '../../core/ports.ts'
import type { Connector, EndpointRequest, FileKind, SinkRequest } from '../connector.ts'
import { createBytesSink } from './bytes-sink.ts'
import { endpointName, openStore, openWritableStore, parseEndpoint } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { compressionByName, formatOfName, openEncoder } from './file-format.ts'
import { listMatches, matchObjects } from './match.ts'
import { MadeFolders } from './made-folders.ts'
import { misleadingName } from './misleading-name.ts'
import { hasFixedColumns } from './output-encoding.ts'
import { createOutputFile } from './output-file.ts'
import { isPrefix, outputNames, sourceStem } from './output-name.ts'
import { alignColumns } from './output-pieces.ts'
import { createStreamTarget } from './output-target.ts'
import { PartGate } from './part-gate.ts'
import { createRowsSink } from './rows-sink.ts'
import { createFileSource, readDecompressed } from './source.ts'

/** Files and objects: store × compression × format. */
export const fileConnector: Connector = {
  name: 'file',
  fileKind,
  isStream,
  openSource: createFileSource,
  openSink,
  readDecompressed,
  openEncoder: openRowsEncoder,
  list,
}

/** Rows of several files under one header, whichever columns each has and in whatever order. */
async function openRowsEncoder(format: FormatName, columns: readonly string[]): Promise<FormatEncoder> {
  const encoder = await openEncoder(format, columns, { url: '-' })
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

async function openSink(request: SinkRequest): Promise<Sink> {
  const endpoint = parseEndpoint(request.url)
  const { options, stdout } = request
  const { format, compression } = sinkKind(request, endpoint)
  warnOfName(request, endpoint)
  const gate = new PartGate(options.parallelism, options.maxMemory)
  const names = (partitions: number) =>
    outputNames(endpoint, {
      stem: sourceStem(request.sourceUrl, options.query),
      ending: ending(format, compression),
      partitions,
      single: options.singleFile === true,
      rolls: options.maxFileSize !== undefined,
    })
  if (endpoint.scheme === 'stdio') {
    if (stdout === undefined) throw new SluiceError('SLUICE_USAGE', 'standard output was not handed in')
    const openTarget = () => createStreamTarget(stdout)
    return createRowsSink(request, { store: null, folders: null, gate, openTarget, names, format, compression })
  }
  if (request.raw) refuseForBytes(request)
  const store = await openWritableStore(endpoint, request)
  if (request.raw) return createBytesSink(request, { store, endpoint })
  const folders = new MadeFolders(endpoint)
  const held = { bytes: 0 }
  const partBytes = store.partBytes(null, wantedPartBytes(request, gate))
  const openTarget = (place: { key: string; url: string }) =>
    createOutputFile(request, { ...place, store, gate, partBytes, held })
  return createRowsSink(request, { store, folders, gate, openTarget, names, format, compression })
}

/** Not where bytes of an unknown kind are copied: they may be what the name says. */
function warnOfName(request: SinkRequest, endpoint: Endpoint): void {
  if (isPrefix(endpoint) || (request.raw && sourceFormatByName(request.sourceUrl) === null)) return
  const warning = misleadingName(endpointName(endpoint), endpoint.url)
  if (warning !== null) request.context.warn(warning)
}

/** Flags that are about files of rows. */
function refuseForBytes({ options }: SinkRequest): void {
  const flag = [
    options.maxFileSize === undefined ? '' : '--max-file-size',
    options.singleFile === true ? '--single-file' : '',
    options.manifest === undefined ? '' : '--manifest',
  ].find((name) => name !== '')
  if (flag !== undefined)
    throw new SluiceError(
      'SLUICE_USAGE',
      `${flag} is about files that are made of rows; these are copied as they are`,
      {
        hint: 'leave it out, or say another --sink-format',
      },
    )
}

const MIB = 1024 * 1024
const LEAST_PART_BYTES = 5 * MIB

/** `--part-size`, or such that parts take no more than half of `--max-memory`; the store's own where that is more. */
function wantedPartBytes({ options }: SinkRequest, gate: PartGate): number | null {
  if (options.partSize !== undefined) return options.partSize
  if (options.maxMemory === undefined) return null
  const share = Math.floor(options.maxMemory / 2 / (gate.limit + 2) / MIB) * MIB
  return share >= DEFAULT_PART_BYTES ? null : Math.max(LEAST_PART_BYTES, share)
}

/** What stores take for files of unknown length. */
const DEFAULT_PART_BYTES = 16 * MIB

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
