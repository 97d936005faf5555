import type { Value } from '../../src/core/batch.ts'
import { createDynamoJsonReader } from '../../src/formats/dynamodb-json/dynamodb-json-reader.ts'
import { describeFormat, type FormatSample } from './format-suite.ts'

const open = () => createDynamoJsonReader({ maxRowBytes: 1024 * 1024 })
const columns = ['id', 'name', 'note']
const number = (text: string): Value => ({ kind: 'number', text })
const sample = (name: string, text: string, rows: readonly (readonly Value[])[]): FormatSample => ({
  name,
  bytes: Buffer.from(text),
  columns,
  rows,
})

const many = Array.from({ length: 12_000 }, (_, i): readonly Value[] => [
  number(`${i}`),
  `näme ${i % 977}`,
  i % 7 === 0 ? undefined : { kind: 'typed-json', text: `{"SS":["é${i}"]}` },
])
const item = (i: number): object => ({
  id: { N: `${i}` },
  name: { S: `näme ${i % 977}` },
  ...(i % 7 === 0 ? {} : { note: { SS: [`é${i}`] } }),
})

describeFormat('dynamodb-json', {
  open,
  named: true,
  samples: [
    sample(
      'small',
      '{"Item":{"id":{"N":"1"},"name":{"S":"a"},"note":{"NULL":true}}}\r\n\n{"name":{"S":"b"},"id":{"N":"2"},"note":{"BOOL":false}}',
      [
        [number('1'), 'a', null],
        [number('2'), 'b', false],
      ],
    ),
    sample('many, wrapped', many.map((_, i) => JSON.stringify({ Item: item(i) })).join('\n'), many),
    sample('many, bare', many.map((_, i) => JSON.stringify(item(i))).join('\n'), many),
  ],
})
