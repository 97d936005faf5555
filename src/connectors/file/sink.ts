import { SluiceError } from '../../core/errors.ts'
import type { CompressionName, FormatName, Sink } from '../../core/ports.ts'
import type { SinkRequest } from '../connector.ts'
import { createBytesSink } from './bytes-sink.ts'
import { endpointName, openWritableStore, parseEndpoint } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { compressionByName, formatOfName } from './file-format.ts'
import { MadeFolders } from './made-folders.ts'
import { misleadingName } from './misleading-name.ts'
import { createOutputFile } from './output-file.ts'
import { isPrefix, outputNames, sourceStem } from './output-name.ts'
import { createStreamTarget } from './output-target.ts'
import { PartGate } from './part-gate.ts'
import { createRowsSink } from './rows-sink.ts'

/** Writes files and objects: bytes as they are, or rows in a format. @throws SLUICE_USAGE where a flag does not fit what is written */
export async function openSink(request: SinkRequest): Promise<Sink> {
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
