import type { Value } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { FormatEncoder } from '../../core/ports.ts'
import { valueToAttribute } from './attribute-value.ts'

const EMPTY = new Uint8Array(0)

/**
 * Writes `{"Item":{…}}`, an item a line, as AWS's export to S3 does (Developer Guide, "DynamoDB table export output format"): no type is lost,
 * NULL is `{"NULL":true}`, a missing value is left out. A column that a batch has besides the first ones is written as well.
 */
export function createDynamoJsonEncoder(): FormatEncoder {
  let columns: readonly string[] = []
  let keys: readonly string[] = []
  return {
    encode: (batch) => {
      if (batch.form !== 'rows')
        throw new SluiceError('SLUICE_INTERNAL', `DynamoDB JSON cannot be made of ${batch.form}`)
      if (batch.columns !== columns) {
        columns = batch.columns
        keys = columns.map((name) => `${JSON.stringify(name)}:`)
      }
      let text = ''
      for (const row of batch.rows) text += `{"Item":{${itemText(row, keys)}}}\n`
      return Buffer.from(text)
    },
    end: () => EMPTY,
  }
}

function itemText(row: readonly Value[], keys: readonly string[]): string {
  let text = ''
  for (let j = 0; j < keys.length; j += 1) {
    const value = row[j]
    if (value !== undefined) text += `${text === '' ? '' : ','}${keys[j] ?? ''}${valueToAttribute(value)}`
  }
  return text
}
