import type { Value } from '../../core/batch.ts'
import { toSluiceError } from '../../core/errors.ts'
import type { FormatReader, ReadPlace } from '../../core/ports.ts'
import { createJsonLinesReader, type JsonLinesReaderOptions } from '../jsonl/jsonl-reader.ts'
import type { RowBlock } from '../jsonl/row-reader.ts'
import { parseJson } from '../typed-json.ts'
import { attributeToValue } from './attribute-value.ts'

/**
 * Reads DynamoDB's JSON, one item a line: `{"Item":{…}}` as AWS's export to S3 writes it, and bare `{"id":{"S":"a"}}`; an array of either; and
 * `{"Items":[…],"Count":…}`, as DynamoDB answers and AWS's command line prints it. Text is taken as it is,
 * NUL characters included, which DynamoDB can hold.
 */
export function createDynamoJsonReader(
  options: Omit<JsonLinesReaderOptions, 'unwrap' | 'answer' | 'onTail'>,
): FormatReader {
  return createJsonLinesReader({ ...options, unwrap: unwrapItems, answer: ANSWER, onTail: warnOfMore })
}

/** What `aws dynamodb scan` and `query` print begins so: no attribute is a bare array. */
const ANSWER = /^\s*\{\s*(?:"(?:Count|ScannedCount)"\s*:\s*\d+\s*,\s*)*"Items"\s*:\s*\[/

/** A page is not the table. */
function warnOfMore(tail: object, o: ReadPlace): void {
  for (const [name, value] of Object.entries(tail))
    if ((name === 'NextToken' || name === 'LastEvaluatedKey') && value !== null)
      o.warn(`${o.url} is not all of what was scanned: it ends with a ${name}, behind which there was more`)
}

/** Items out of parsed lines. @throws SLUICE_JSON, SLUICE_ENCODING, with their place */
function unwrapItems(block: RowBlock, first: readonly string[], url: string): RowBlock {
  const columns = [...first]
  const at = new Map(columns.map((name, i) => [name, i]))
  const item = block.columns.indexOf('Item')
  const rows = block.rows.map((line, i) => {
    const row: Value[] = []
    const set = (name: string, attribute: unknown): void => {
      let column = at.get(name)
      if (column === undefined) {
        column = columns.push(name) - 1
        at.set(name, column)
      }
      try {
        row[column] = attributeToValue(attribute)
      } catch (error) {
        throw toSluiceError(error).at({ url, ...block.places[i], column: name })
      }
    }
    const wrapped = wrappedItem(line, item)
    if (wrapped !== null) for (const [name, attribute] of Object.entries(wrapped)) set(name, attribute)
    else for (const [j, value] of line.entries()) if (value !== undefined) set(block.columns[j] ?? '', parsed(value))
    return row
  })
  // Every row has all columns of its batch: holes would be passed over by loops.
  return { ...block, columns, rows: rows.map((row) => Array.from(columns, (_, j) => row[j])) }
}

/**
 * What is inside of `{"Item":{…}}`; null for a bare item. An item with the one attribute `Item` looks the same, save that its value says a type
 * where an item has names: what can be read as a wrapped item is one.
 */
function wrappedItem(line: readonly Value[], item: number): object | null {
  const value = item < 0 ? undefined : line[item]
  if (value === undefined || line.some((other, j) => j !== item && other !== undefined)) return null
  const content = parsed(value)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return null
  const attributes = Object.values(content)
  if (attributes.length !== 1) return content
  try {
    attributeToValue(attributes[0])
    return content
  } catch {
    return isAttribute(content) ? null : content
  }
}

function isAttribute(content: object): boolean {
  try {
    attributeToValue(content)
    return true
  } catch {
    return false
  }
}

/** A value of the line as JSON.parse has it; what is no object or array is no attribute, and is told so. */
function parsed(value: Value): unknown {
  if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array))
    return value.kind === 'json' ? parseJson(value.text) : Number(value.text)
  return value
}
