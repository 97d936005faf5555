import type { Abortable, Store } from '../../core/ports.ts'
import type { Match } from './match.ts'

/** Enough of a list to know it by. */
const LOOK_BYTES = 2048
/** Lists that a warning names. */
const MOST_NAMED = 5

/** `{"entries":[{"url":…`: what `--manifest` writes, and Amazon Redshift's UNLOAD. */
const FILE_LIST = /^\s*\{\s*"entries"\s*:\s*\[\s*(?:\]|\{\s*"url"\s*:)/
/** manifest-summary.json and manifest-files.json of DynamoDB's export to S3 (developer guide, "DynamoDB table export output format"). */
const EXPORT_LIST = /^\s*\{[^]*"(?:dataFileS3Key|manifestFilesS3Key|exportArn)"\s*:/
const EXPORT_CHECKSUM = /(?:^|\/)manifest-(?:summary|files)\.(?:md5|checksum)$/

/**
 * What Spark, Hive, Hadoop, Dask and Databricks write beside Parquet files: marks of success, footers of all files in one, transactions, checksums. Known by
 * their whole names: a name that only begins with `_` may be data.
 */
const PARQUET_SIDE_FILE = /(?:^|\/)(?:_SUCCESS|_(?:common_)?metadata|_(?:started|committed)_\d+|\.[^/]+\.crc)$/

/** Whether these are the first bytes of a list of files. */
export function isFileList(head: string): boolean {
  return FILE_LIST.test(head)
}

/**
 * Objects under a prefix or glob without those that only tell of the others: manifests of outputs, of ours and of DynamoDB's exports, their checksums, and
 * what stands beside Parquet files. A manifest is known by its name, which holds the word, and its first bytes; each is looked at. Tells what is passed over.
 */
export async function withoutLists(
  matches: readonly Match[],
  o: Abortable & { readonly store: Store; readonly warn: (message: string) => void },
): Promise<readonly Match[]> {
  if (matches.length < 2) return matches
  const lists = new Set<Match>()
  for (const match of matches) {
    const { name, info } = match
    if (EXPORT_CHECKSUM.test(name) || PARQUET_SIDE_FILE.test(name)) lists.add(match)
    else if (/manifest/i.test(name.slice(name.lastIndexOf('/') + 1)) && isList(await headOf(info, o))) lists.add(match)
  }
  if (lists.size === 0 || lists.size === matches.length) return matches
  const names = [...lists].slice(0, MOST_NAMED).map(({ name }) => name)
  const more = lists.size > names.length ? ` and ${lists.size - names.length} more` : ''
  o.warn(`passed over, for they tell of files and hold no rows: ${names.join(', ')}${more}`)
  return matches.filter((match) => !lists.has(match))
}

function isList(head: string): boolean {
  return FILE_LIST.test(head) || EXPORT_LIST.test(head)
}

async function headOf(info: Match['info'], o: Abortable & { readonly store: Store }): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of o.store.read(info, { start: 0, end: Math.min(LOOK_BYTES, info.size ?? LOOK_BYTES) }, o))
    chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}
