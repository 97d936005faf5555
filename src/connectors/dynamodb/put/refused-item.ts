import { SluiceError } from '../../../core/errors.ts'
import { shown } from '../item/number.ts'
import type { KeyAttribute } from '../table-info.ts'
import type { Put } from './put-batch.ts'

/**
 * Whether the server refused a request for what is in it: for one item (ValidationException, ItemCollectionSizeLimitExceededException), which it does not name,
 * or for the size of all of them. One by one, the others are taken.
 */
export function isAboutItems({ code }: SluiceError): boolean {
  return code === 'SLUICE_VALUE' || code === 'SLUICE_CONSTRAINT'
}

/** What the server said of a request that held nothing but this put, with the item's key. */
export function aboutItem(error: SluiceError, put: Put, keys: readonly KeyAttribute[]): SluiceError {
  return new SluiceError(error.code, `${error.message}: the item whose key is ${keyOf(put, keys)}`, {
    where: error.where,
    hint: 'mend the row with this key',
    cause: error.cause,
  })
}

function keyOf(put: Put, keys: readonly KeyAttribute[]): string {
  // Behind the separator.
  const { PutRequest } = JSON.parse(put.bytes.toString('utf8', put.start + 1, put.end)) as {
    readonly PutRequest: { readonly Item: Readonly<Record<string, Readonly<Record<string, unknown>>>> }
  }
  return keys.map(({ name, type }) => `${name} = ${shown(String(PutRequest.Item[name]?.[type]))}`).join(', ')
}
