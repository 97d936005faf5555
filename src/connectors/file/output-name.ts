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

/** The URL of an output, for people. */
export function outputUrl(sink: Endpoint, key: string): string {
  return sink.scheme === 's3' ? `s3://${key}` : isPrefix(sink) ? sink.url + key.slice(sink.key.length) : sink.url
}

/** The name that a converted file gets under a prefix: the source's, with the new ending. */
export function convertedName(sourceUrl: string, ending: string): string {
  const name = endpointName(parseEndpoint(sourceUrl)).replace(/\/$/, '')
  const stem = name.replace(/(\.(csv|tsv|tab|jsonl|ndjson|json))?(\.(gz|gzip|zst|zstd|zip|bz2))?$/i, '')
  return `${stem === '' || /[*?[{]/.test(stem) ? 'data' : stem}.${ending}`
}
