import { expect, it } from 'vitest'
import type { Value } from '../../../../../src/core/batch.ts'
import { PutBatch } from '../../../../../src/connectors/dynamodb/put/put-batch.ts'
import { attributeOf, type Attribute } from '../../../../../src/connectors/dynamodb/item/type-map.ts'
import { CsvItemEncoder } from '../../../../../src/connectors/dynamodb/item/wire-json.ts'
import { RowItemEncoder } from '../../../../../src/connectors/dynamodb/item/wire-rows.ts'
import { recordCursor } from '../../../../../src/formats/csv/record-cursor.ts'

const frame = { prefix: Buffer.from('['), suffix: Buffer.from(']') }
const shape = { delimiter: ',', quote: '"', escape: '"' }

function attributes(types: Record<string, string | undefined>): Attribute[] {
  const o = { keys: [{ name: 'id', type: 'S' as const }], typed: false }
  return Object.entries(types).map(([name, nativeType]) =>
    attributeOf({ name, nativeType }, { ...o, explicit: nativeType !== undefined }),
  )
}

function fromCsv(text: string, types: Record<string, string | undefined>, nulls: 'omit' | 'NULL' = 'omit'): unknown {
  const encoder = new CsvItemEncoder(attributes(types), { nulls, sorted: false })
  const batch = new PutBatch(frame)
  const cursor = recordCursor(Buffer.from(text), shape)
  const keys: string[] = []
  while (cursor.next() === 'row') {
    const start = batch.at
    const end = encoder.encode(cursor, batch)
    const put = { key: encoder.key, state: 'open' as const, bytes: batch.bytes, start, end, tries: 0 }
    keys.push(encoder.key)
    const extent = { pending: 1, accepted: 0, superseded: 0 }
    batch.puts.push({ ...put, extent, uncertain: false, next: null, superseded: false })
    batch.at = end
  }
  const puts = JSON.parse(batch.finish().toString('utf8')) as { PutRequest: { Item: unknown } }[]
  return { keys, items: puts.map((put) => put.PutRequest.Item) }
}

it('writes CSV bytes as items: what JSON wants escaped is, and nothing else', () => {
  const odd = 'ü€😀\u0001\u001f\\\t/'
  expect(fromCsv(`k,${odd}\n"k""2","a,\nb"\n`, { id: undefined, 'na"me': undefined })).toEqual({
    keys: ['k', 'k"2'],
    items: [
      { id: { S: 'k' }, 'na"me': { S: odd } },
      { id: { S: 'k"2' }, 'na"me': { S: 'a,\nb' } },
    ],
  })
})

it('leaves nothing out where a text is empty, and leaves out what is not there', () => {
  expect(fromCsv('k,,""\r\n', { id: undefined, a: undefined, b: undefined })).toMatchObject({
    items: [{ id: { S: 'k' }, b: { S: '' } }],
  })
  expect(fromCsv('k,\n', { id: undefined, a: 'N' }, 'NULL')).toMatchObject({ items: [{ a: { NULL: true } }] })
})

it('both encoders write the same', () => {
  const types = { id: undefined, n: 'N', flag: 'BOOL', l: 'L', s: 'SS', t: undefined }
  const text = 'k,1.50,TRUE,"[1.0,{""a"":[]}]","[""x"",""y""]",ü"\n'.replace('ü"', 'ü')
  const row: Value[] = ['k', '1.50', 'TRUE', '[1.0,{"a":[]}]', '["x","y"]', 'ü']
  const encoder = new RowItemEncoder(attributes(types), { nulls: 'omit', sorted: false })
  const { text: wire, key } = encoder.encode(row)
  expect(fromCsv(text, types)).toEqual({ keys: [key], items: [JSON.parse(`{${wire}}`) as unknown] })
})

it.each<[Value, object]>([
  [{ kind: 'number', text: '1e5' }, { N: '1e5' }],
  [true, { BOOL: true }],
  [null, { NULL: true }],
  [new Uint8Array([0, 1]), { B: 'AAE=' }],
  [{ kind: 'json', text: '[0.10]' }, { L: [{ N: '0.10' }] }],
  [{ kind: 'typed-json', text: '{"NS":["1","2"]}' }, { NS: ['1', '2'] }],
])('keeps the type that %j says of itself', (value, expected) => {
  const typed = { keys: [], typed: true, explicit: false }
  const own: Attribute[] = [
    { ...attributeOf({ name: 'id' }, typed), kind: 'S', key: 'partition' },
    attributeOf({ name: 'v' }, typed),
  ]
  const { text } = new RowItemEncoder(own, { nulls: 'NULL', sorted: false }).encode(['k', value])
  expect(JSON.parse(`{${text}}`)).toEqual({ id: { S: 'k' }, v: expected })
})

it.each([
  '{"SS":[]}',
  '{"NS":["1","1.0"]}',
  '{"L":[{"X":"1"}]}',
  '{"N":"NaN"}',
  '{}',
  '{"S":"a","N":"1"}',
  `${'{"L":['.repeat(33)}${']}'.repeat(33)}`,
])('refuses %s', (text) => {
  const own = [{ name: 'id', kind: 'any' as const, key: null, converts: false }]
  const encoder = new RowItemEncoder([{ ...own[0], name: 'k', kind: 'S', key: 'partition', converts: false }, ...own], {
    nulls: 'NULL',
    sorted: false,
  })
  expect(() => encoder.encode(['k', { kind: 'typed-json', text }])).toThrow(
    expect.objectContaining({ code: 'SLUICE_VALUE' }) as Error,
  )
})

it('refuses an attribute without a name, where a row has it', () => {
  const own = attributes({ id: undefined, '': undefined })
  const encoder = new RowItemEncoder(own, { nulls: 'omit', sorted: false })
  expect(encoder.encode(['k', undefined]).text).toBe('"id":{"S":"k"}')
  for (const value of ['x', true, { kind: 'number', text: '1' } as const])
    expect(() => encoder.encode(['k', value])).toThrow(expect.objectContaining({ code: 'SLUICE_VALUE' }) as Error)
})

it('sends numbers without a plus, which some servers refuse, and texts with theirs', () => {
  expect(
    fromCsv('k,+5,+1.5e3,"[+7]"\n'.replace('[+7]', '[""+7""]'), { id: undefined, n: 'N', m: 'N', s: 'NS' }),
  ).toEqual({
    keys: ['k'],
    items: [{ id: { S: 'k' }, n: { N: '5' }, m: { N: '1.5e3' }, s: { NS: ['7'] } }],
  })
  const own: Attribute[] = [
    { name: 'id', kind: 'S', key: 'partition', converts: false },
    { name: 'v', kind: 'any', key: null, converts: false },
  ]
  const encoder = new RowItemEncoder(own, { nulls: 'NULL', sorted: false })
  const typed = '{"L":[{"N":"+5"},{"S":"+5"},{"NS":["+1","2"]},{"SS":["+1"]},{"M":{"N":{"S":"+1"},"NS":{"L":[]}}}]}'
  expect(JSON.parse(`{${encoder.encode(['k', { kind: 'typed-json', text: typed }]).text}}`)).toEqual({
    id: { S: 'k' },
    v: { L: [{ N: '5' }, { S: '+5' }, { NS: ['1', '2'] }, { SS: ['+1'] }, { M: { N: { S: '+1' }, NS: { L: [] } } }] },
  })
})

it.each(['{"a":"\\ud800"}', '["\\udc00x"]', '{"\\ud800":1}'])('refuses half of a surrogate pair in %s', (text) => {
  const own: Attribute[] = [
    { name: 'id', kind: 'S', key: 'partition', converts: false },
    { name: 'v', kind: 'any', key: null, converts: false },
  ]
  const encoder = new RowItemEncoder(own, { nulls: 'NULL', sorted: false })
  expect(() => encoder.encode(['k', { kind: 'json', text }])).toThrow(
    expect.objectContaining({ code: 'SLUICE_ENCODING' }) as Error,
  )
  expect(encoder.encode(['k', { kind: 'json', text: '["\\ud83d\\ude00"]' }]).text).toContain('😀')
})
