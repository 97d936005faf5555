import { SluiceError } from '../../../core/errors.ts'
import { answerOf, listOf, numberOf } from '../answer.ts'
import { keyReader } from './put-batch.ts'
import type { KeyAttribute } from '../table-info.ts'

/** What BatchWriteItem answered. */
export interface BatchAnswer {
  /** Keys of the items that were not taken; null where all were. */
  readonly unprocessed: readonly string[] | null
  /** Capacity units that it cost; null where nobody asked. */
  readonly units: number | null
}

const ALL_TAKEN = Buffer.from('{"UnprocessedItems":{}}')
const TAKEN: BatchAnswer = { unprocessed: null, units: null }

/** Reads an answer. @throws SLUICE_PROTOCOL where it does not say what became of the items */
export function readAnswer(
  bytes: Buffer,
  o: { readonly table: string; readonly keys: readonly KeyAttribute[] },
): BatchAnswer {
  if (bytes.equals(ALL_TAKEN)) return TAKEN
  const answer = answerOf(parsed(bytes), 'object')
  const tables = answerOf(answer['UnprocessedItems'], 'UnprocessedItems')
  const [capacity] = listOf(answer['ConsumedCapacity'])
  const units = capacity === undefined ? null : numberOf(capacity['CapacityUnits'])
  // A server may name the table by its ARN; no other table was written to.
  const requests = Object.values(tables).flatMap(listOf)
  if (requests.length === 0) return { unprocessed: null, units }
  const keyOf = keyReader(o.keys)
  const unprocessed = requests.map((request) => {
    const key = keyOf(answerOf(answerOf(request['PutRequest'], 'PutRequest')['Item'], 'item'))
    if (key === null) throw new SluiceError('SLUICE_PROTOCOL', 'an item came back unprocessed without its key')
    return key
  })
  return { unprocessed, units }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new SluiceError('SLUICE_PROTOCOL', 'the answer to BatchWriteItem is no JSON', { cause: error })
  }
}

/** The puts that came back. @throws SLUICE_PROTOCOL where one came back that was not sent */
export function matchPuts<T extends { readonly key: string }>(puts: readonly T[], keys: readonly string[]): Set<T> {
  const byKey = new Map(puts.map((put) => [put.key, put]))
  const back = new Set<T>()
  for (const key of keys) {
    const put = byKey.get(key)
    if (put === undefined)
      throw new SluiceError('SLUICE_PROTOCOL', 'an item came back unprocessed that was not in the request')
    back.add(put)
  }
  return back
}
