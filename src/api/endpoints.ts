import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectorFor } from '../connectors/registry.ts'
import type { Connector, EndpointRequest } from '../connectors/connector.ts'
import { SluiceError } from '../core/errors.ts'
import { DEFAULT_RETRY_FOR_MS } from '../core/options.ts'
import type { CopyOptions, Environment } from '../core/options.ts'
import type { Reporter } from '../core/ports.ts'
import { mapsColumns } from '../engine/mapping.ts'

/** Which way a copy goes, and why. */
export interface Route {
  readonly source: Connector
  readonly sink: Connector
  /** Bytes are copied as they are. */
  readonly raw: boolean
  readonly name: string
  readonly reason: string
}

export interface Surroundings {
  readonly options: CopyOptions
  readonly env: Environment
  readonly reporter: Reporter
  readonly signal: AbortSignal
  readonly stdin?: AsyncIterable<Uint8Array> | undefined
  readonly stdout?: NodeJS.WritableStream | undefined
  readonly stateDir?: string | undefined
}

const NEVER = new AbortController().signal

/** What a request of the library says of its surroundings. */
export function surroundingsOf(
  request: Omit<Surroundings, 'reporter' | 'signal'> & { readonly signal?: AbortSignal | undefined },
  reporter: Reporter,
): Surroundings {
  const { options, env, signal = NEVER, stdin, stdout, stateDir } = request
  return { options, env, reporter, signal, stdin, stdout, stateDir }
}

const TEXT_FLAGS = [
  'delimiter',
  'quote',
  'escape',
  'header',
  'columns',
  'skipLines',
  'null',
  'empty',
  'ragged',
  'encoding',
  'onInvalidUtf8',
  'onNul',
  'lineEnd',
  'byPosition',
  'entry',
] as const

/** What a connector opens an endpoint with. */
export function endpointRequest(url: string, around: Surroundings): EndpointRequest {
  return {
    url,
    options: around.options,
    env: around.env,
    reporter: around.reporter,
    signal: around.signal,
    retryForMs: around.options.retryFor ?? DEFAULT_RETRY_FOR_MS,
    stdin: around.stdin,
    stdout: around.stdout,
    // Of the user's own, where there is no state folder.
    spoolDir: join(around.stateDir ?? join(tmpdir(), `sluice-${process.getuid?.() ?? 0}`), 'spool'),
  }
}

/**
 * Chooses the route by the two URLs and the options alone.
 *
 * @throws SLUICE_USAGE, SLUICE_NOT_YET
 */
export async function chooseRoute(sourceUrl: string, sinkUrl: string, around: Surroundings): Promise<Route> {
  const [source, sink] = [await connectorFor(sourceUrl), await connectorFor(sinkUrl)]
  if (source.openSource === undefined)
    throw new SluiceError('SLUICE_NOT_YET', `${source.name} as a source is specified and not built yet`)
  if (sink.openSink === undefined)
    throw new SluiceError('SLUICE_NOT_YET', `${sink.name} as a sink is specified and not built yet`)
  const { options } = around
  if (source.fileKind === undefined || sink.fileKind === undefined) {
    return {
      source,
      sink,
      raw: false,
      name: `${source.name} → ${sink.name}`,
      reason: tableReason(source, sink, options),
    }
  }
  const from = source.fileKind(endpointRequest(sourceUrl, around))
  const to = sink.fileKind(endpointRequest(sinkUrl, around))
  const why = rowsReason(from, to, options) ?? arrayReason(sourceUrl, sinkUrl, options)
  if (why === null)
    return {
      source,
      sink,
      raw: true,
      name: 'bytes',
      reason: 'format, compression and columns stay as they are: the bytes are copied',
    }
  return { source, sink, raw: false, name: 'rows → file', reason: why }
}

/** How rows come out of, or go into, what is no file. */
function tableReason(source: Connector, sink: Connector, options: CopyOptions): string {
  const out = source.fileKind === undefined ? source.readsBy?.(options) : undefined
  const into = sink.fileKind === undefined ? sink.writesBy?.(options) : undefined
  return [out, into].filter((reason) => reason !== undefined).join('; ') || 'rows are read and written one by one'
}

/** An option as a flag is spelled: `skipIfEmpty` is `skip-if-empty`. */
export function flagName(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

interface Kind {
  readonly format: string
  readonly compression: string
}

/** `.json` may be one array, which is no JSON Lines. */
function arrayReason(source: string, sink: string, { sourceFormat, sinkFormat }: CopyOptions): string | null {
  if (sourceFormat === 'raw' || sinkFormat === 'raw') return null
  const [from, to] = [source, sink].map((url) =>
    /\.(json|jsonl|ndjson)(?:\.\w+)?(?:[?#].*)?$/i.exec(url)?.[1]?.toLowerCase(),
  )
  return from === 'json' && to !== undefined && to !== 'json'
    ? 'a .json file may be one array, which is no JSON Lines'
    : null
}

/** Why rows must be read and written anew; null where bytes can be copied as they are. */
function rowsReason(from: Kind, to: Kind, options: CopyOptions): string | null {
  if (options.sourceFormat === 'raw' || options.sinkFormat === 'raw') return null
  const source = {
    format: options.sourceFormat ?? from.format,
    compression: options.sourceCompression ?? from.compression,
  }
  const sink = { format: options.sinkFormat ?? to.format, compression: options.sinkCompression ?? to.compression }
  if (mapsColumns(options)) return 'the flags choose or change columns'
  const shaped = TEXT_FLAGS.find((flag) => options[flag] !== undefined && options[flag] !== 'auto')
  if (shaped !== undefined) return `--${flagName(shaped)} is about rows`
  if (sink.format !== 'raw' && source.format !== 'raw' && sink.format !== source.format)
    return `${source.format} becomes ${sink.format}`
  if (sink.format === 'raw' && options.sinkCompression === undefined) return null
  if (source.format === 'raw' && options.sourceCompression === undefined && source.compression === 'none') return null
  return sink.compression === source.compression
    ? null
    : `compression ${source.compression} becomes ${sink.compression}`
}
