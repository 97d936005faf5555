import { describe, expect, it } from 'vitest'
import type { Batch, RowsBatch, Value } from '../../../../src/core/batch.ts'
import { SluiceError } from '../../../../src/core/errors.ts'
import { createDynamoJsonEncoder } from '../../../../src/formats/dynamodb-json/dynamodb-json-encoder.ts'
import { createDynamoJsonReader } from '../../../../src/formats/dynamodb-json/dynamodb-json-reader.ts'
import { typedFromJson } from '../../../../src/formats/dynamodb-json/typed-from-json.ts'

const signal = new AbortController().signal
const place = { signal, url: 'items.json', warn: () => undefined }

async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

async function read(text: string): Promise<{ columns: readonly string[]; batches: readonly RowsBatch[] }> {
  const reader = createDynamoJsonReader({ maxRowBytes: 1 << 20 })
  const head = await reader.head(chunksOf(text), place)
  const batches: RowsBatch[] = []
  for await (const batch of reader.read(chunksOf(text), head, { ...place, form: 'rows', from: head.first }))
    if (batch.form === 'rows') batches.push(batch)
  return { columns: head.columns.map((column) => column.name), batches }
}

const failure = async (text: string): Promise<SluiceError> => {
  try {
    await read(text)
  } catch (error) {
    if (error instanceof SluiceError) return error
  }
  throw new Error('it was read')
}

const all =
  '{"Item":{"id":{"S":"é\\n"},"n":{"N":"-1.5E+10"},"b":{"B":"AQI="},"t":{"BOOL":true},"z":{"NULL":true},"ss":{"SS":["a","b"]},"m":{"M":{"x":{"L":[]}}}}}'

describe('the reader', () => {
  it('reads wrapped and bare lines alike', async () => {
    const { columns, batches } = await read(`${all}\n{"id":{"S":"2"},"more":{"N":"1"}}\n`)
    expect(columns).toEqual(['id', 'n', 'b', 't', 'z', 'ss', 'm', 'more'])
    const typed = (text: string): Value => ({ kind: 'typed-json', text })
    expect(batches.flatMap((batch) => batch.rows)).toEqual([
      [
        'é\n',
        { kind: 'number', text: '-1.5E+10' },
        Buffer.from([1, 2]),
        true,
        null,
        typed('{"SS":["a","b"]}'),
        typed('{"M":{"x":{"L":[]}}}'),
        undefined,
      ],
      ['2', undefined, undefined, undefined, undefined, undefined, undefined, { kind: 'number', text: '1' }],
    ])
  })

  it('tells an attribute called Item, S or M from a wrapped item', async () => {
    const names = async (line: string): Promise<readonly string[]> => (await read(line)).columns
    expect(await names('{"Item":{"S":"x"}}')).toEqual(['Item'])
    expect(await names('{"Item":{"M":{"S":{"S":"x"}}}}')).toEqual(['Item'])
    expect(await names('{"Item":{"S":{"N":"1"}}}')).toEqual(['S'])
    expect(await names('{"Item":{"M":{"S":"x"}}}')).toEqual(['M'])
    expect(await names('{"Item":{"S":"x"},"id":{"N":"1"}}')).toEqual(['Item', 'id'])
  })

  it.each([
    ['{"Item":{"id":{"S":"1"}}}\n{"Item":{"id":{"X":"1"}}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":"plain"}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"N":"1x"}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"B":"a-b"}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"NS":["x"]}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"S":"\\ud800"}}', 'SLUICE_ENCODING'],
    ['{"id":{"S":"1"}}\n{"id":{"L":[{"S":"\\ud800"}]}}', 'SLUICE_ENCODING'],
  ])('names file, row and attribute of %s', async (text, code) => {
    expect(await failure(text)).toMatchObject({ code, where: { url: 'items.json', row: 2, line: 2, column: 'id' } })
  })
})

describe('the encoder', () => {
  const text = (batch: Batch): string => Buffer.from(createDynamoJsonEncoder().encode(batch)).toString()

  it('writes what was read, byte for byte', async () => {
    const lines = `${all}\n${all.replace('é', 'x')}\n`
    const [batch] = (await read(lines)).batches
    if (batch === undefined) throw new Error('no batch')
    expect(text(batch)).toBe(lines)
  })

  it('gives types to plain JSON, exactly', () => {
    expect(typedFromJson(' {"a" : [1, -2.50e3, "x\\"]", true, null, {}], "b":12345678901234567890123} ')).toBe(
      '{"M":{"a":{"L":[{"N":"1"},{"N":"-2.50e3"},{"S":"x\\"]"},{"BOOL":true},{"NULL":true},{"M":{}}]},"b":{"N":"12345678901234567890123"}}}',
    )
    expect(() => typedFromJson('{"a" 1}')).toThrow(expect.objectContaining({ code: 'SLUICE_JSON' }) as Error)
  })
})
