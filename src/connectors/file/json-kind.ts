import { SluiceError } from '../../core/errors.ts'
import type { FormatName } from '../../core/ports.ts'
import { isFileList } from './beside-data.ts'

/** A name, and a value that says its type: an attribute as DynamoDB writes it. */
const ATTRIBUTE = String.raw`"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:S|N|B|BOOL|NULL|M|L|SS|NS|BS)"\s*:`
const ITEM = new RegExp(String.raw`^\s*\{\s*"Item"\s*:\s*\{\s*(?:\}\s*\}|${ATTRIBUTE})`)
/** What `aws dynamodb scan` prints: formats/dynamodb-json reads it. */
const ANSWER = new RegExp(
  String.raw`^\s*\{\s*(?:"(?:Count|ScannedCount)"\s*:\s*\d+\s*,\s*)*"Items"\s*:\s*\[\s*\{\s*${ATTRIBUTE}`,
)
const CHANGE = new RegExp(String.raw`^\s*\{\s*"Metadata"\s*:\s*\{\s*"WriteTimestampMicros"\s*:\s*\{\s*"N"\s*:`)

/**
 * What lines of JSON are by their first bytes: items, as DynamoDB's export to S3 writes them, or rows. Where somebody says the format, nobody asks.
 *
 * @throws SLUICE_UNKNOWN_FORMAT for what holds no rows: an incremental export, a list of files
 */
export function jsonKind(head: string, url: string): Extract<FormatName, 'jsonl' | 'dynamodb-json'> {
  if (ITEM.test(head) || ANSWER.test(head)) return 'dynamodb-json'
  if (CHANGE.test(head))
    throw new SluiceError(
      'SLUICE_UNKNOWN_FORMAT',
      "this is an incremental export of DynamoDB's: changes, and no items",
      {
        where: { url },
        hint: 'export the table in full; or --source-format jsonl, for its lines as they are',
      },
    )
  if (isFileList(head))
    throw new SluiceError('SLUICE_UNKNOWN_FORMAT', 'this lists the files of an output, and holds no rows', {
      where: { url },
      hint: 'choose the files by a glob, as in s3://bucket/prefix/*.parquet; or give the list a name with "manifest" in it',
    })
  return 'jsonl'
}
