import { SluiceError } from '../../core/errors.ts'
import { endpointName, parseEndpoint } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'

/** Whether outputs go under the name rather than to it. */
export function isPrefix(endpoint: Endpoint): boolean {
  return endpoint.scheme !== 'stdio' && endpoint.key.endsWith('/')
}

/** The key of a partition's output: the sink's own, or the partition's name under its prefix. */
export function outputKey(sink: Endpoint, partitionId: string): string {
  return isPrefix(sink) ? sink.key + partitionId : sink.key
}

/**
 * A name that comes from a store must not lead out of the folder it is put under, nor fall together with another:
 * `../x`, `a//b` and `./a` are fine keys in S3, and no files.
 *
 * @throws SLUICE_USAGE
 */
export function requireFileName(sink: Endpoint, partitionId: string): void {
  if (sink.scheme !== 'file' || !isPrefix(sink)) return
  const bad =
    partitionId.includes('\0') ||
    partitionId.split('/').some((piece) => piece === '' || piece === '.' || piece === '..')
  if (bad)
    throw new SluiceError('SLUICE_USAGE', `"${partitionId}" cannot be a file under ${sink.url}`, {
      where: { url: sink.url },
      hint: 'copy such objects one by one, each to a name of its own',
    })
}

/** The URL of an output, for people. */
export function outputUrl(sink: Endpoint, key: string): string {
  return sink.scheme === 's3' ? `s3://${key}` : isPrefix(sink) ? sink.url + key.slice(sink.key.length) : sink.url
}

/** What outputs under a prefix are called by: the source file's name without its endings, the table's name, or `data`. */
export function sourceStem(sourceUrl: string, query?: string): string {
  const stem = /^(postgres(ql)?|dynamodb):/i.test(sourceUrl)
    ? tableStem(sourceUrl, query)
    : endpointName(parseEndpoint(sourceUrl))
        .replace(/\/$/, '')
        .replace(/(\.(csv|tsv|tab|jsonl|ndjson|json|parquet))?(\.(gz|gzip|zst|zstd|zip|bz2))?$/i, '')
  return stem === '' || stem === '.' || stem === '..' || /[*?[{]/.test(stem) ? 'data' : stem
}

/** The last piece of `schema.table`, in quotes or not, or of `dynamodb://region/table`; what no file name can hold becomes `_`. */
function tableStem(url: string, query: string | undefined): string {
  if (query !== undefined) return ''
  const written = /^dynamodb:/i.test(url)
    ? /^[^?#]*\/([^/?#]*)/.exec(url)?.[1]
    : /[?&]table=([^&#]*)/.exec(url)?.[1]?.replaceAll('+', ' ')
  const name = decodeSafely(written ?? '')
  const last = /(?:^|\.)("(?:[^"]|"")*"|[^."]*)$/.exec(name)?.[1] ?? name
  const plain = last.startsWith('"') ? last.slice(1, -1).replaceAll('""', '"') : last
  // Control characters, and what is a separator or a pattern somewhere.
  return plain.replace(/[\p{Cc}/\\*?[{]/gu, '_')
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** How the files of an output are called. Numbers count from 1 and have five digits, so that names sort as they were made. */
export interface OutputNames {
  /** Whether each partition has a file of its own; else all go into one. */
  readonly perPartition: boolean
  /** Key and URL of a file: of the partition by its place in the plan, and the number in its sequence. */
  place(partition: number, sequence: number): { readonly key: string; readonly url: string }
}

/**
 * A name stands for one file, a prefix for one a partition, where there are several: `people-00003.parquet`. With `rolls` (`--max-file-size`) a sequence
 * of files follows: `people-00003-00001.parquet`.
 *
 * @throws SLUICE_USAGE for a sequence of files without a prefix
 */
export function outputNames(
  sink: Endpoint,
  o: { stem: string; ending: string; partitions: number; single: boolean; rolls: boolean },
): OutputNames {
  if (!isPrefix(sink)) {
    if (o.rolls)
      throw new SluiceError('SLUICE_USAGE', '--max-file-size makes several files, which need a prefix', {
        where: { url: sink.url },
        hint: 'let the name end in /',
      })
    return { perPartition: false, place: () => ({ key: sink.key, url: outputUrl(sink, sink.key) }) }
  }
  const perPartition = o.partitions > 1 && !o.single
  return {
    perPartition,
    place: (partition, sequence) => {
      const numbers = [...(perPartition ? [partition] : []), ...(o.rolls ? [sequence] : [])]
      const name = [o.stem, ...numbers.map((number) => String(number).padStart(5, '0'))].join('-')
      const key = outputKey(sink, `${name}.${o.ending}`)
      return { key, url: outputUrl(sink, key) }
    },
  }
}
