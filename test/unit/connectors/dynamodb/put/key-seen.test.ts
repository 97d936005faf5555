import { expect, it } from 'vitest'
import { SeenKeys } from '../../../../../src/connectors/dynamodb/put/key-seen.ts'

it('knows each key again, and takes no other for it', () => {
  const seen = new SeenKeys()
  const keys = Array.from({ length: 200_000 }, (_, i) => `AB${i} ${i % 7}CD`)
  expect(keys.filter((key) => seen.add(key))).toEqual([])
  expect(seen.count).toBe(keys.length)
  expect(keys.every((key) => seen.add(key))).toBe(true)
  expect(seen.add('')).toBe(false)
  expect(seen.add('')).toBe(true)
})
