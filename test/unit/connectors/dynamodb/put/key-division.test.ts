import { expect, it } from 'vitest'
import { KeyDivision } from '../../../../../src/connectors/dynamodb/put/key-division.ts'
import type { KeyAttribute, KeyType } from '../../../../../src/connectors/dynamodb/table-info.ts'
import { joinKeys, keyText } from '../../../../../src/connectors/dynamodb/item/validate.ts'
import { recordCursor } from '../../../../../src/formats/csv/record-cursor.ts'

const shape = { delimiter: ',', quote: '"', escape: '"' }

/** The threads of records whose first columns are keys of these types. */
function threadsOf(text: string, types: readonly KeyType[], threads: number): number[] {
  const division = new KeyDivision(keysOf(types), threads)
  const cursor = recordCursor(Buffer.from(text), shape)
  const columns = types.map((_, i) => i)
  const found: number[] = []
  while (cursor.next() === 'row') found.push(division.ofRecord(cursor, columns))
  return found
}

const keysOf = (types: readonly KeyType[]): KeyAttribute[] => types.map((type, i) => ({ name: `k${i}`, type }))

it.each<[KeyType, readonly string[]]>([
  ['S', ['ab', '"ab"']],
  ['N', ['100', '1e2', '0100.0', '"1E+2"', '10e1', '100.', '+100', '1000e-1', '.1e3']],
  ['N', ['-0.0205', '-205e-4', '-00.02050']],
  ['N', ['0', '-0', '0.00', '0e7']],
  ['B', ['AA==', 'AB==', '"AA=="']],
])('%s: what is the same key to DynamoDB goes to the same thread: %j', (kind, spellings) => {
  const texts = spellings.map((text) => text.replaceAll('"', ''))
  for (const threads of [2, 3, 7, 8]) {
    const found = threadsOf(spellings.map((text) => `${text},x\n`).join(''), [kind], threads)
    // Parsed rows come with the key's canonical text.
    const division = new KeyDivision(keysOf([kind]), threads)
    found.push(...texts.map((text) => division.ofKey(keyText(text, { type: kind, key: 'partition' }))))
    expect(new Set(found).size).toBe(1)
  }
})

it.each([2, 3, 5, 8])('gives each of %d threads about as many keys', (threads) => {
  const count = 8000
  const texts = {
    S: Array.from({ length: count }, (_, i) => `AB${i} 1CD`),
    N: Array.from({ length: count }, (_, i) => String(i)),
  }
  const keys: readonly number[][] = [
    threadsOf(texts.S.map((text) => `${text}\n`).join(''), ['S'], threads),
    threadsOf(texts.N.map((text) => `${text}\n`).join(''), ['N'], threads),
    // One partition, and another sort key each.
    threadsOf(texts.N.map((text) => `one,${text}\n`).join(''), ['S', 'N'], threads),
    texts.S.map((text) => new KeyDivision(keysOf(['S']), threads).ofKey(text)),
  ]
  for (const found of keys)
    for (let thread = 0; thread < threads; thread += 1) {
      const share = found.filter((one) => one === thread).length / count
      expect(share).toBeGreaterThan(0.8 / threads)
      expect(share).toBeLessThan(1.2 / threads)
    }
})

it('a row without its key goes somewhere', () => {
  expect(threadsOf('\n', ['S', 'S'], 4)).toEqual([0])
})

it('a pair of keys goes to the same thread, from CSV in whatever columns and from parsed rows', () => {
  const division = new KeyDivision(keysOf(['S', 'N']), 8)
  for (const [partition, sort] of [
    ['ü 3', '10'],
    ['', '2'],
    ['a""b', '1.50'],
  ] as const) {
    const cursor = recordCursor(Buffer.from(`${sort},x,"${partition}"\n`), shape)
    cursor.next()
    const own = joinKeys(partition.replace('""', '"'), keyText(sort, { type: 'N', key: 'sort' }))
    expect(division.ofRecord(cursor, [2, 0])).toBe(division.ofKey(own))
  }
})
