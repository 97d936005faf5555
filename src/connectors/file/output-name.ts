import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import { translateLocalError } from '../../stores/local/local-error.ts'
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

/** Makes the folder of an output whose name comes from the source. @throws SLUICE_ACCESS_DENIED, SLUICE_LOCAL_IO, SLUICE_DISK_FULL */
export async function makeFolder(sink: Endpoint, key: string): Promise<void> {
  if (sink.scheme !== 'file' || !isPrefix(sink)) return
  const folder = dirname(key)
  try {
    await mkdir(folder, { recursive: true })
  } catch (error) {
    throw translateLocalError(error, folder)
  }
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
